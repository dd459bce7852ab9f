//! What is written down, and the calls that show it.

use super::*;

#[tokio::test]
async fn every_attempt_is_written_down() {
    let chaos = playing("key:sk-:close; model:big-1:latency:1ms:status:529; ok").await;
    let mut client = Client::connect(&chaos).await;
    client.ask(OPENAI, &question(true)).await;
    let first = client.response().await;
    let body = json!({ "model": "small-1", "messages": [] });
    client.ask(ANTHROPIC, &body).await;
    let second = client.response().await;
    client.send(client::post(OPENAI, "x-api-key: sk-real\r\n", &body.to_string())).await;
    assert_eq!(client.rest().await.bytes, b"");
    chaos.settled().await;

    let attempts = chaos.attempts();
    let numbers: Vec<_> = attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert!(attempts.is_sorted_by_key(|attempt| attempt.at));
    assert!(attempts.iter().all(|attempt| attempt.took.is_some() && !attempt.client_closed));
    let [one, two, three] = &attempts[..] else { panic!("{attempts:?}") };
    assert_eq!(
        (one.path.as_str(), one.model.as_str(), one.key.as_str(), one.stream),
        (OPENAI, "big-1", "test-a", true)
    );
    assert_eq!(
        (one.mode.as_str(), one.status, one.bytes),
        ("latency:1ms:status:529", Some(529), first.bytes.len() as u64)
    );
    assert_eq!((two.path.as_str(), two.model.as_str(), two.stream), (ANTHROPIC, "small-1", false));
    assert_eq!((two.mode.as_str(), two.status, two.bytes), ("ok", Some(200), second.bytes.len() as u64));
    assert_eq!((three.mode.as_str(), three.status, three.bytes), ("close", None, 0));
    assert!(three.key.starts_with("sha256:") && !three.key.contains("sk-"), "{}", three.key);
}

#[tokio::test]
async fn what_was_met_is_counted_and_forgetting_changes_no_count() {
    let chaos = playing("2*status:529 | close-at-accept | ok").await;
    let mut client = Client::connect(&chaos).await;
    for status in [529, 529] {
        client.ask(OPENAI, &question(false)).await;
        assert_eq!(client.response().await.status(), status);
    }
    chaos.settled().await;
    chaos.forget();
    assert_eq!(Client::connect(&chaos).await.rest().await.bytes, b"");
    client.ask_last(OPENAI, &question(true)).await;
    client.rest().await;
    chaos.settled().await;
    let counts = [("close-at-accept", 1), ("ok", 1), ("status:529", 2)];
    assert_eq!(chaos.tally(), counts.map(|(mode, times)| (mode.to_owned(), times)).into());
    assert_eq!((chaos.begun(), chaos.attempts().len()), (4, 2));
}

#[tokio::test]
async fn a_caller_who_leaves_early_is_written_down() {
    let chaos = playing("latency:1h | no-continue | ok").await;
    let mut early = Client::connect(&chaos).await;
    early.ask(OPENAI, &question(false)).await;
    early.silence().await;
    assert!(chaos.attempts()[0].took.is_none(), "under way");
    drop(early);
    chaos.settled().await;
    let mut half = Client::connect(&chaos).await;
    half.send(format!("POST {OPENAI} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{{")).await;
    half.silence().await;
    drop(half);
    chaos.settled().await;
    let attempts = chaos.attempts();
    assert!(attempts.iter().all(|attempt| attempt.client_closed && attempt.status.is_none()), "{attempts:?}");
    assert_eq!(attempts.len(), 2);
}

#[tokio::test]
async fn the_record_and_the_mode_are_a_call_away() {
    let chaos = playing("status:529").await;
    let mut client = Client::connect(&chaos).await;
    client.ask(OPENAI, &question(false)).await;
    assert_eq!(client.response().await.status(), 529);
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    client.send(get("/chaos/attempts")).await;
    let attempts = client.response().await.json();
    assert_eq!(
        (attempts[0]["mode"].as_str(), attempts[0]["status"].as_u64()),
        (Some("status:529"), Some(529))
    );
    assert!(attempts[0]["at_ms"].is_f64() && attempts[0]["client_closed"] == false);

    client.send(client::post("/chaos/mode", "", "reset | latency:1ms")).await;
    assert_eq!(client.response().await.text(), "reset | latency:1ms\n");
    client.send(get("/chaos/mode")).await;
    assert_eq!(client.response().await.text(), "reset | latency:1ms\n");
    client.send(client::post("/chaos/mode", "", "stal:after=3")).await;
    let refused = client.response().await;
    assert_eq!(
        (refused.status(), refused.text().as_str()),
        (400, "mode `stal:after=3`: there is no mode `stal`\n")
    );
    assert_eq!(chaos.rules().to_string(), "reset | latency:1ms", "a mistake changes nothing");

    client.send("DELETE /chaos/attempts HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(client.response().await.status(), 200);
    assert_eq!(chaos.attempts(), []);
    client.send(get("/v1/models")).await;
    assert_eq!(client.response().await.status(), 404);
    client.ask(OPENAI, &question(false)).await;
    assert_eq!(client.rest().await.bytes, b"");
    chaos.settled().await;
    let numbers: Vec<_> =
        chaos.attempts().iter().map(|attempt| (attempt.number, attempt.mode.clone())).collect();
    assert_eq!(numbers, [(2, "reset".to_owned())]);
}

#[tokio::test]
async fn the_same_calls_with_the_same_seed_are_answered_alike() {
    let mut runs = Vec::new();
    for seed in [7, 7, 8] {
        let chaos = start(script("percent:40:status:529").seed(seed)).await;
        let mut client = Client::connect(&chaos).await;
        let mut statuses = Vec::new();
        for _ in 0..50 {
            client.ask(OPENAI, &question(false)).await;
            statuses.push(client.response().await.status());
        }
        runs.push(statuses);
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
    assert!(runs[0].contains(&200) && runs[0].contains(&529));
}

#[tokio::test]
async fn it_stops_when_told_and_cuts_what_is_under_way() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(serve(listener, script("silent"), async {
        let _ = stopped.await;
    }));
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = client::post(OPENAI, "", &question(true).to_string());
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
    assert!(tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 1000]).await.unwrap() > 0);
    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens");
    assert_eq!(tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 1000]).await.unwrap(), 0, "cut");
}

//! Connections that end too early, and requests that are refused half-read.

use super::client::End;
use super::*;

#[tokio::test]
async fn an_early_end_looks_like_a_good_one_to_http() {
    let response = stream("eof:after=2").await;
    assert!(response.is_complete() && response.end == End::Closed);
    assert_eq!(response.data().len(), 3, "the role and two pieces");
    assert!(response.text().ends_with("\n\n"));

    let response = stream("eof:after=2:cut=line").await;
    assert!(response.is_complete());
    assert!(response.text().ends_with(|last: char| last != '\n'), "{}", response.text());

    let response = stream("eof:after=2:cut=char").await;
    assert!(response.is_complete());
    let error = String::from_utf8(response.body()).expect_err("half a character").utf8_error();
    assert_eq!((error.valid_up_to(), error.error_len()), (response.body().len() - 1, None));

    for rules in ["eof:after=1", "eof:after=1:cut=line", "eof:after=1:cut=char"] {
        let response = whole(rules).await;
        assert!(response.is_complete(), "{rules}");
        assert!(serde_json::from_slice::<Value>(&response.body()).is_err(), "{rules}");
    }
    assert!(String::from_utf8(whole("eof:after=1:cut=char").await.body()).is_err());
}

#[tokio::test]
async fn the_connection_ends_within_the_body() {
    for (rules, end) in [("fin:after=2", End::Closed), ("reset:after=2", End::Reset)] {
        let response = stream(rules).await;
        assert_eq!((response.end, response.is_complete()), (end, false), "{rules}");
        assert_eq!(response.chunks().len(), 3, "the role and two pieces");
        let response = whole(rules).await;
        assert_eq!((response.end, response.is_complete()), (end, false), "{rules}");
        assert!(!response.raw().is_empty());
        assert!(answer(rules, ANTHROPIC, true).await.chunks().len() > 3);
    }
}

#[tokio::test]
async fn the_connection_ends_before_the_head() {
    for (rules, end) in [("close", End::Closed), ("reset", End::Reset), ("latency:1ms:close", End::Closed)] {
        let response = whole(rules).await;
        assert_eq!((response.bytes.len(), response.end), (0, end), "{rules}");
    }
}

#[tokio::test]
async fn the_connection_ends_as_soon_as_it_is_open() {
    let chaos = playing("close-at-accept | ok").await;
    let client = Client::connect(&chaos).await;
    assert_eq!(client.rest().await.bytes, b"");
    let mut client = Client::connect(&chaos).await;
    client.ask(OPENAI, &question(false)).await;
    assert_eq!(client.response().await.status(), 200);
    let modes: Vec<_> = chaos.attempts().into_iter().map(|attempt| attempt.mode).collect();
    assert_eq!(modes, ["close-at-accept", "ok"]);
}

#[tokio::test]
async fn a_stale_connection_closes_when_it_is_used_again() {
    let chaos = playing("stale").await;
    let mut client = Client::connect(&chaos).await;
    client.ask(OPENAI, &question(false)).await;
    assert_eq!(client.response().await.status(), 200);
    client.silence().await;
    client.ask(OPENAI, &question(false)).await;
    assert_eq!(client.rest().await.bytes, b"");
    let mut fresh = Client::connect(&chaos).await;
    fresh.ask(OPENAI, &question(false)).await;
    assert_eq!(fresh.response().await.status(), 200);
}

#[tokio::test]
async fn a_connection_serves_request_after_request_also_sent_at_once() {
    let chaos = playing("ok").await;
    let mut client = Client::connect(&chaos).await;
    let body = question(false).to_string();
    client.send(client::post(OPENAI, "", &body).repeat(3)).await;
    for number in 1..=3 {
        assert_eq!(client.response().await.json()["id"], format!("chatcmpl-{number}"));
    }
}

#[tokio::test]
async fn a_chunked_request_is_read() {
    let chaos = playing("ok").await;
    let mut client = Client::connect(&chaos).await;
    let body = question(false).to_string();
    let (first, second) = body.split_at(10);
    let head = format!("POST {OPENAI} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    client.send(format!("{head}a\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n", second.len())).await;
    assert_eq!(client.response().await.status(), 200);
}

fn expecting(body: &str) -> String {
    let length = body.len();
    format!("POST {OPENAI} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n")
}

#[tokio::test]
async fn the_go_ahead_comes_or_never_does() {
    let body = question(false).to_string();
    let chaos = playing("ok | no-continue").await;
    let mut client = Client::connect(&chaos).await;
    client.send(expecting(&body)).await;
    client.read_to("HTTP/1.1 100 Continue\r\n\r\n").await;
    client.send(&body).await;
    assert_eq!(client.response().await.status(), 200);

    client.send(expecting(&body)).await;
    client.silence().await;
    client.send(&body).await;
    assert_eq!(client.response().await.status(), 200);
}

#[tokio::test]
async fn an_early_error_comes_while_the_body_is_under_way_and_reaches_who_goes_on_sending() {
    let chaos = playing("early:413").await;
    let mut client = Client::connect(&chaos).await;
    client.send(format!("POST {OPENAI} HTTP/1.1\r\nhost: x\r\ncontent-length: 4000000\r\n\r\n{{")).await;
    let head = client.read_to("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 413") && head.contains("connection: close"), "{head}");
    // Far more than the sockets' buffers hold: without lingering, closing would reset it.
    client.send(vec![b'x'; 3_999_999]).await;
    assert_eq!(client.rest().await.end, End::Closed);
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
/// `:method: POST` on stream 1, no more to come.
const HEADERS: &[u8] = b"\x00\x00\x01\x01\x05\x00\x00\x00\x01\x83";
const SETTINGS: &[u8] = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x04\x01\x00\x00\x00\x00";

#[tokio::test]
async fn http2_goes_away_refuses_and_resets() {
    let reset = b"\x00\x00\x04\x03\x00\x00\x00\x00\x01";
    let goaway = b"\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00";
    for (rules, expected) in [
        ("h2:goaway", [goaway.as_slice(), &[0, 0, 0, 0]].concat()),
        ("h2:refused", [reset.as_slice(), &[0, 0, 0, 7]].concat()),
        ("h2:reset", [reset.as_slice(), &[0, 0, 0, 2]].concat()),
        ("ok", [goaway.as_slice(), &[0, 0, 0, 13]].concat()),
    ] {
        let chaos = playing(rules).await;
        let mut client = Client::connect(&chaos).await;
        client.send([PREFACE, HEADERS].concat()).await;
        tokio::io::AsyncWriteExt::shutdown(&mut client.stream).await.unwrap();
        let came = client.rest().await.bytes;
        assert!(came.starts_with(SETTINGS) && came.ends_with(&expected), "{rules}: {came:x?}");
        let begun = came.windows(8).any(|window| window == b": begun\n");
        assert_eq!(begun, rules == "h2:reset");
        assert_eq!(chaos.attempts()[0].mode, rules);
    }
    assert_eq!(whole("h2:goaway").await.status(), 505, "HTTP/1 is told so");
}

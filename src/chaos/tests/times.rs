//! Answers that come late, or never.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::Instant;

use super::*;

const SHORT: Duration = Duration::from_millis(30);

#[tokio::test]
async fn a_delay_comes_before_the_head() {
    for rules in ["latency:30ms", "latency:30ms:status:529", "contention:capacity=1:base=30ms"] {
        let start = Instant::now();
        let response = whole(rules).await;
        assert!(start.elapsed() >= SHORT, "{rules}");
        assert_eq!(response.status(), if rules.ends_with("529") { 529 } else { 200 });
    }
}

#[tokio::test]
async fn slow_headers_begin_at_once() {
    let chaos = playing("slow-headers:30ms").await;
    let mut client = Client::connect(&chaos).await;
    client.ask_last(OPENAI, &question(true)).await;
    assert_eq!(client.read_to("\r\n").await, "HTTP/1.1 200 OK\r\n");
    let start = Instant::now();
    client.read_to("\r\n\r\n").await;
    assert!(start.elapsed() >= SHORT / 2, "{:?}", start.elapsed());
    assert!(client.rest().await.bytes.ends_with(b"[DONE]\n\n\r\n0\r\n\r\n"));
}

#[tokio::test]
async fn a_silent_answer_has_a_head_and_then_nothing() {
    for stream in [true, false] {
        let chaos = playing("silent").await;
        let mut client = Client::connect(&chaos).await;
        client.ask(OPENAI, &question(stream)).await;
        let head = client.read_to("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200"));
        client.silence().await;
        drop(client);
        chaos.settled().await;
        assert!(chaos.attempts()[0].client_closed);
    }
    assert!(stream("silent:10ms").await.is_complete());
}

#[tokio::test]
async fn contention_answers_late_instead_of_failing() {
    // Two attempts that never end are the load: a third takes three halves of the base.
    let chaos = playing("model:held:silent; contention:capacity=2:base=40ms").await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(&chaos).await;
        client.ask(OPENAI, &json!({ "model": "held", "messages": [] })).await;
        client.read_to("\r\n\r\n").await;
        held.push(client);
    }
    let mut client = Client::connect(&chaos).await;
    let start = Instant::now();
    client.ask(OPENAI, &question(false)).await;
    assert_eq!(client.response().await.status(), 200);
    assert!(start.elapsed() >= Duration::from_millis(60), "{:?}", start.elapsed());
}

#[tokio::test]
async fn content_comes_at_the_pace_of_the_mode_or_of_the_script() {
    for script in [script("pace:10ms"), script("ok").pace(Duration::from_millis(10))] {
        let chaos = start(script).await;
        let mut client = Client::connect(&chaos).await;
        let start = Instant::now();
        client.ask_last(OPENAI, &question(true)).await;
        assert!(client.rest().await.is_complete());
        assert!(start.elapsed() >= Duration::from_millis(40), "{:?}", start.elapsed());
    }
}

#[tokio::test]
async fn keep_alives_are_not_content() {
    for (path, stream, sign) in [
        (OPENAI, true, ": keep-alive\n\n"),
        (ANTHROPIC, true, "event: ping\n"),
        (OPENAI, false, "\r\n1\r\n\n\r\n1\r\n\n\r\n"),
    ] {
        let chaos = playing("keepalive-only:every=1ms").await;
        let mut client = Client::connect(&chaos).await;
        client.ask(path, &question(stream)).await;
        let mut came = String::new();
        for _ in 0..3 {
            came += &client.read_to(sign).await;
        }
        assert!(!came.contains("delta"), "{came}");
        assert_eq!(came.contains("message_start"), path == ANTHROPIC);
    }
}

#[tokio::test]
async fn empty_deltas_follow_the_role_for_ever() {
    for (path, role, empty) in [
        (OPENAI, "\"role\":\"assistant\"", "{\"content\":\"\"}"),
        (ANTHROPIC, "message_start", "\"text\":\"\""),
    ] {
        let chaos = playing("role-only:every=1ms").await;
        let mut client = Client::connect(&chaos).await;
        client.ask(path, &question(true)).await;
        client.read_to(role).await;
        for _ in 0..3 {
            let came = client.read_to(empty).await;
            assert!(!came.contains("\"an\""), "{came}");
        }
        drop(client);
        chaos.settled().await;
        assert!(chaos.attempts()[0].client_closed);
    }
}

#[tokio::test]
async fn a_stall_goes_on_or_never_does() {
    let chaos = playing("stall:after=2 | stall:after=2:for=30ms").await;
    let mut client = Client::connect(&chaos).await;
    client.ask(OPENAI, &question(true)).await;
    client.read_to("\"sw\"").await;
    client.read_to("\n\n\r\n").await;
    client.silence().await;

    let mut client = Client::connect(&chaos).await;
    client.ask_last(OPENAI, &question(true)).await;
    client.read_to("\"sw\"").await;
    let start = Instant::now();
    assert!(client.rest().await.bytes.ends_with(b"[DONE]\n\n\r\n0\r\n\r\n"));
    assert!(start.elapsed() >= SHORT / 2, "{:?}", start.elapsed());
}

#[tokio::test]
async fn nobody_listens_for_a_while_and_then_somebody_does() {
    let chaos = playing("refuse:for=300ms | ok").await;
    let mut before = TcpStream::connect(chaos.address()).await.unwrap();
    let mut refused = false;
    // The kernel may still hold a few connections that nobody accepted.
    for _ in 0..100 {
        refused |= TcpStream::connect(chaos.address()).await.is_err();
        if refused {
            break;
        }
    }
    assert!(refused, "the port still answers");
    assert!(tokio::io::AsyncReadExt::read(&mut before, &mut [0; 8]).await.is_err(), "a reset");
    let mut client = loop {
        match TcpStream::connect(chaos.address()).await {
            Ok(_) => break Client::connect(&chaos).await,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    client.ask(OPENAI, &question(false)).await;
    assert_eq!(client.response().await.status(), 200);
    assert_eq!(chaos.attempts()[0].mode, "refuse:for=300ms");
}

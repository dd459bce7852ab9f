//! The listener's end, in two phases.

use axum::Router;
use tokio::net::TcpStream;

use crate::http2::{self, DATA, GOAWAY};
use crate::probe;
use crate::server::Server;

#[tokio::test]
async fn a_stream_under_way_finishes_while_idle_connections_close() {
    let (mut probe, routes) = probe::stream();
    let mut server = Server::start("", routes).await;
    let mut streaming = server.connect().await;
    streaming.get("/stream").await;
    probe.began().await;
    probe.say("first").await;
    streaming.read_to("first").await;
    let silent = server.connect().await;
    let mut idle = server.connect().await;
    idle.get("/hello").await;
    assert_eq!(idle.response().await.body, "hello");

    server.signal();
    assert_eq!(idle.closed_cleanly().await, "");
    assert_eq!(silent.closed().await, "");
    assert!(TcpStream::connect(server.address()).await.is_err(), "nobody new is let in");
    probe.say("last").await;
    streaming.read_to("last").await;
    probe.finish();
    assert!(streaming.closed_cleanly().await.ends_with("0\r\n\r\n"), "the stream is whole");
    server.ended().await;
}

#[tokio::test]
async fn a_request_under_way_is_answered_and_told_to_close() {
    let (mut probe, routes) = probe::slow();
    let mut server = Server::start("", routes).await;
    let mut idle = server.connect().await;
    idle.get("/hello").await;
    idle.response().await;
    let mut client = server.connect().await;
    client.get("/slow").await;
    probe.began().await;
    server.signal();
    idle.closed().await;
    probe.say("done").await;
    let answer = client.closed_cleanly().await;
    assert!(answer.contains("connection: close") && answer.ends_with("done"), "{answer}");
    server.ended().await;
}

#[tokio::test]
async fn http2_streams_finish_too() {
    let (mut probe, routes) = probe::stream();
    let mut server = Server::start("", routes).await;
    let mut client = server.connect_http2().await;
    client.send(&http2::get(1, "/stream", &[])).await;
    probe.began().await;
    server.signal();
    while client.frame().await.unwrap().kind != GOAWAY {}
    probe.say("last").await;
    probe.finish();
    let mut data = Vec::new();
    while let Some(frame) = client.frame().await {
        if frame.kind == DATA {
            data.extend(frame.payload);
        }
    }
    assert_eq!(data, b"last");
    server.ended().await;
}

#[tokio::test]
async fn what_is_left_after_the_grace_is_cut() {
    let (mut probe, routes) = probe::stream();
    let mut server = Server::start("shutdown_grace = \"50ms\"", routes).await;
    let mut client = server.connect().await;
    client.get("/stream").await;
    probe.began().await;
    probe.say("first").await;
    client.read_to("first").await;
    server.signal();
    assert!(!client.closed().await.ends_with("0\r\n\r\n"), "a cut stream must not look whole");
    probe.dropped().await;
    server.ended().await;
}

#[tokio::test]
async fn http2_streams_are_cut_after_the_grace_too() {
    let (mut probe, routes) = probe::slow();
    let mut server = Server::start("shutdown_grace = \"50ms\"", routes).await;
    let mut client = server.connect_http2().await;
    client.send(&http2::get(1, "/slow", &[])).await;
    probe.began().await;
    server.signal();
    client.closed().await;
    probe.dropped().await;
    server.ended().await;
}

#[tokio::test]
async fn without_connections_it_ends_at_once() {
    let mut server = Server::start("shutdown_grace = \"1h\"", Router::new()).await;
    server.signal();
    server.ended().await;
}

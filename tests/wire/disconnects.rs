//! Clients that leave: what was done for them is dropped, promptly.

use tokio::io::AsyncWriteExt;

use crate::http2::{self, DATA};
use crate::probe;
use crate::server::Server;

#[tokio::test]
async fn leaving_in_mid_stream_drops_the_body() {
    let (mut probe, routes) = probe::stream();
    let server = Server::start("", routes).await;
    let mut client = server.connect().await;
    client.get("/stream").await;
    probe.began().await;
    probe.say("first").await;
    client.read_to("first").await;
    drop(client);
    probe.dropped().await;
    server.serves_and_stops().await;
}

#[tokio::test]
async fn leaving_before_the_answer_drops_the_handler() {
    let (mut probe, routes) = probe::slow();
    let server = Server::start("", routes).await;
    let mut client = server.connect().await;
    client.get("/slow").await;
    probe.began().await;
    drop(client);
    probe.dropped().await;
    server.serves_and_stops().await;
}

#[tokio::test]
async fn closing_only_the_sending_half_counts_as_leaving() {
    let (mut probe, routes) = probe::slow();
    let server = Server::start("", routes).await;
    let mut client = server.connect().await;
    client.get("/slow").await;
    probe.began().await;
    client.stream().shutdown().await.unwrap();
    probe.dropped().await;
    assert_eq!(client.closed().await, "");
    server.serves_and_stops().await;
}

#[tokio::test]
async fn a_half_close_after_a_whole_answer_takes_nothing_away() {
    let (mut probe, routes) = probe::slow();
    let server = Server::start("", routes).await;
    let mut client = server.connect().await;
    client.get("/slow").await;
    probe.began().await;
    probe.say("whole").await;
    client.read_to("whole").await;
    client.stream().shutdown().await.unwrap();
    assert_eq!(client.closed_cleanly().await, "");
    server.serves_and_stops().await;
}

#[tokio::test]
async fn an_http2_reset_drops_the_handler_and_keeps_the_connection() {
    let (mut probe, routes) = probe::slow();
    let server = Server::start("", routes).await;
    let mut client = server.connect_http2().await;
    client.send(&http2::get(1, "/slow", &[])).await;
    probe.began().await;
    client.send(&http2::reset(1)).await;
    probe.dropped().await;
    client.send(&http2::get(3, "/hello", &[])).await;
    assert_eq!(client.response(3).await.1, "hello");
    drop(client);
    server.serves_and_stops().await;
}

#[tokio::test]
async fn an_http2_client_that_leaves_in_mid_stream_drops_the_body() {
    let (mut probe, routes) = probe::stream();
    let server = Server::start("", routes).await;
    let mut client = server.connect_http2().await;
    client.send(&http2::get(1, "/stream", &[])).await;
    probe.began().await;
    probe.say("first").await;
    while client.frame().await.unwrap().kind != DATA {}
    drop(client);
    probe.dropped().await;
    server.serves_and_stops().await;
}

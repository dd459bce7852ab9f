//! Clients that are late.

use std::time::Duration;

use axum::Router;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, interval};

use crate::http2::{self, GOAWAY};
use crate::probe;
use crate::server::Server;

const LONG: &str = "60s";

fn settings(header: &str, idle: &str) -> String {
    format!("header_timeout = \"{header}\"\nidle_timeout = \"{idle}\"")
}

#[tokio::test]
async fn no_bytes_at_all_is_a_late_head() {
    let server = Server::start(&settings("50ms", LONG), Router::new()).await;
    assert_eq!(server.connect().await.closed().await, "");
    server.serves_and_stops().await;
}

#[tokio::test]
async fn half_a_head_is_cut() {
    let server = Server::start(&settings("50ms", LONG), Router::new()).await;
    for half in ["G", "PRI * HT", "GET /hello HTTP/1.1\r\nhost: x\r\n"] {
        let mut client = server.connect().await;
        client.send(half).await;
        assert_eq!(client.closed().await, "", "{half:?}");
    }
    server.serves_and_stops().await;
}

#[tokio::test]
async fn a_trickled_head_is_cut_although_bytes_keep_coming() {
    let server = Server::start(&settings("200ms", LONG), Router::new()).await;
    let mut client = server.connect().await;
    let start = Instant::now();
    client.send("GET /hello HTTP/1.1\r\nx: ").await;
    let mut pace = interval(Duration::from_millis(10));
    while client.stream().write_all(b"x").await.is_ok() {
        pace.tick().await;
        assert!(start.elapsed() < Duration::from_secs(10), "still open");
    }
    assert!(start.elapsed() >= Duration::from_millis(200), "{:?}", start.elapsed());
    server.serves_and_stops().await;
}

#[tokio::test]
async fn the_second_head_has_its_own_time() {
    let server = Server::start(&settings("50ms", LONG), Router::new()).await;
    let mut client = server.connect().await;
    client.get("/hello").await;
    assert_eq!(client.response().await.body, "hello");
    client.send("GET /hel").await;
    assert_eq!(client.closed().await, "");
    server.serves_and_stops().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_in_good_order_and_not_before_its_time() {
    // The head timer is the shorter one: quiet between requests must not count as a head.
    let server = Server::start(&settings("50ms", "300ms"), Router::new()).await;
    let mut client = server.connect().await;
    client.get("/hello").await;
    assert_eq!(client.response().await.body, "hello");
    let start = Instant::now();
    assert_eq!(client.closed_cleanly().await, "");
    assert!(start.elapsed() >= Duration::from_millis(250), "{:?}", start.elapsed());
    server.serves_and_stops().await;
}

#[tokio::test]
async fn an_idle_http2_connection_is_told_to_go() {
    let server = Server::start(&settings(LONG, "100ms"), Router::new()).await;
    let mut client = server.connect_http2().await;
    client.send(&http2::get(1, "/hello", &[])).await;
    assert_eq!(client.response(1).await, (http2::STATUS_200, "hello".to_owned()));
    assert!(client.closed().await.contains(&GOAWAY));
    server.serves_and_stops().await;
}

#[tokio::test]
async fn an_idle_http2_connection_that_ignores_it_is_cut() {
    let server = Server::start(&settings("100ms", "100ms"), Router::new()).await;
    let mut client = server.connect_http2().await;
    client.polite = false;
    client.send(&http2::get(1, "/hello", &[])).await;
    client.response(1).await;
    assert!(client.closed().await.contains(&GOAWAY));
    server.serves_and_stops().await;
}

#[tokio::test]
async fn an_http2_connection_without_a_request_is_a_late_head() {
    let server = Server::start(&settings("50ms", LONG), Router::new()).await;
    assert!(server.connect_http2().await.closed().await.is_empty());
    server.serves_and_stops().await;
}

#[tokio::test]
async fn an_answer_may_take_longer_than_every_timer_of_the_client() {
    let (mut probe, routes) = probe::slow();
    let server = Server::start(&settings("20ms", "50ms"), routes).await;
    let mut client = server.connect().await;
    client.get("/slow").await;
    probe.began().await;
    // Other connections come and go for several times the idle time meanwhile.
    for _ in 0..3 {
        assert_eq!(server.connect().await.closed().await, "");
        let mut idle = server.connect().await;
        idle.get("/hello").await;
        assert!(idle.closed_cleanly().await.ends_with("hello"));
    }
    probe.say("at last").await;
    assert_eq!(client.response().await.body, "at last");
    server.serves_and_stops().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut() {
    let (mut probe, routes) = probe::flood();
    let server = Server::start(&settings(LONG, "100ms"), routes).await;
    let mut client = server.connect().await;
    client.get("/flood").await;
    probe.began().await;
    probe.dropped().await;
    server.serves_and_stops().await;
}

#[tokio::test]
async fn an_http2_client_that_opens_no_window_is_cut() {
    let (mut probe, routes) = probe::flood();
    let server = Server::start(&settings(LONG, "100ms"), routes).await;
    let mut client = server.connect_http2().await;
    client.send(&http2::get(1, "/flood", &[])).await;
    probe.began().await;
    probe.dropped().await;
    server.serves_and_stops().await;
}

#[tokio::test]
async fn a_client_that_pipelines_and_does_not_read_is_cut() {
    let server = Server::start(&settings(LONG, "100ms"), Router::new()).await;
    let mut client = server.connect().await;
    let request = "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1000);
    while client.try_send(&request).await {}
    server.serves_and_stops().await;
}

//! The protocols themselves, and the number of connections.

use std::io;

use axum::Router;
use axum::routing::get;

use crate::http2;
use crate::server::Server;

#[tokio::test]
async fn http2_with_prior_knowledge_serves_streams_side_by_side() {
    let server = Server::start("", Router::new()).await;
    let mut client = server.connect_http2().await;
    client.send(&http2::get(1, "/hello", &[])).await;
    assert_eq!(client.response(1).await, (http2::STATUS_200, "hello".to_owned()));
    client.send(&[http2::get(3, "/hello", &[]), http2::get(5, "/hello", &[])].concat()).await;
    let mut ended = Vec::new();
    while ended.len() < 2 {
        let frame = client.frame().await.unwrap();
        if frame.ends_stream() {
            ended.push(frame.stream);
        }
    }
    ended.sort_unstable();
    assert_eq!(ended, [3, 5]);
    drop(client);
    server.serves_and_stops().await;
}

#[tokio::test]
async fn http_1_0_is_answered_and_closed() {
    let server = Server::start("", Router::new()).await;
    let mut client = server.connect().await;
    client.send("GET /hello HTTP/1.0\r\n\r\n").await;
    let answer = client.closed_cleanly().await;
    assert!(answer.starts_with("HTTP/1.0 200") && answer.ends_with("hello"), "{answer}");
    server.serves_and_stops().await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start("", Router::new()).await;
    let mut client = server.connect().await;
    let post = "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\none";
    client.send(format!("{post}GET /hello HTTP/1.1\r\nhost: x\r\n\r\n{post}")).await;
    for body in ["one", "hello", "one"] {
        assert_eq!(client.response().await.body, body);
    }
    server.serves_and_stops().await;
}

fn broken() -> &'static str {
    panic!("on purpose")
}

#[tokio::test]
async fn a_panic_ends_its_own_connection_only() {
    let routes = Router::new().route("/panic", get(|| async { broken() }));
    let server = Server::start("", routes).await;
    let mut other = server.connect().await;
    other.get("/hello").await;
    assert_eq!(other.response().await.body, "hello");
    let mut client = server.connect().await;
    client.get("/panic").await;
    assert_eq!(client.closed().await, "");
    let mut client = server.connect_http2().await;
    client.send(&http2::get(1, "/panic", &[])).await;
    assert_eq!(client.frame().await.unwrap().kind, http2::RST_STREAM);
    drop(client);
    other.get("/hello").await;
    assert_eq!(other.response().await.body, "hello");
    server.serves_and_stops().await;
}

#[tokio::test]
async fn at_the_cap_the_next_one_waits_until_one_leaves() {
    let server = Server::start("max_connections = 2", Router::new()).await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    for client in [&mut first, &mut second] {
        client.get("/hello").await;
        assert_eq!(client.response().await.body, "hello");
    }
    let mut third = server.connect().await;
    third.get("/hello").await;
    first.get("/hello").await;
    assert_eq!(first.response().await.body, "hello");
    assert_eq!(server.open(), 2);
    assert_eq!(third.stream().try_read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(first);
    assert_eq!(third.response().await.body, "hello");
    drop((second, third));
    server.serves_and_stops().await;
}

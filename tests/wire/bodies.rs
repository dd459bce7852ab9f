//! Bodies that are slow, large or not what their head says.

use axum::Router;

use crate::http1::Client;
use crate::server::Server;

/// The headers of a POST to `/echo`.
fn post(headers: &str) -> String {
    format!("POST /echo HTTP/1.1\r\nhost: x\r\n{headers}\r\n\r\n")
}

async fn refused(mut client: Client, status: &str, code: &str) {
    let response = client.response().await;
    assert_eq!(response.status(), status, "{response:?}");
    assert!(response.head.contains("connection: close"), "{response:?}");
    assert!(response.head.contains("content-type: application/json"), "{response:?}");
    assert!(response.body.contains(code), "{response:?}");
    assert_eq!(client.closed_cleanly().await, "");
}

#[tokio::test]
async fn a_body_that_stalls_is_answered_with_408() {
    let server = Server::start("body_timeout = \"50ms\"", Router::new()).await;
    for (headers, begun) in [
        ("content-length: 10", "half"),
        ("content-length: 10", ""),
        ("transfer-encoding: chunked", "4\r\nhalf\r\n"),
        ("transfer-encoding: chunked", "4\r\nha"),
    ] {
        let mut client = server.connect().await;
        client.send(post(headers) + begun).await;
        refused(client, "408", "request_timeout").await;
    }
    server.serves_and_stops().await;
}

#[tokio::test]
async fn a_body_that_breaks_off_harms_nobody_else() {
    let server = Server::start("", Router::new()).await;
    let mut client = server.connect().await;
    client.send(post("content-length: 10") + "half").await;
    drop(client);
    server.serves_and_stops().await;
}

#[tokio::test]
async fn a_declared_length_over_the_limit_is_refused_before_the_body() {
    let server = Server::start("max_body = \"1 KiB\"", Router::new()).await;
    for length in ["1025", "999999999999"] {
        let mut client = server.connect().await;
        client.send(post(&format!("content-length: {length}\r\nexpect: 100-continue"))).await;
        refused(client, "413", "request_too_large").await;
    }
    server.serves_and_stops().await;
}

#[tokio::test]
async fn the_refusal_reaches_a_client_that_goes_on_sending() {
    let server = Server::start("max_body = \"1 KiB\"", Router::new()).await;
    let mut client = server.connect().await;
    client.send(post("content-length: 4000000")).await;
    // Far more than the socket's buffers hold: without lingering, closing would reset it.
    client.send(vec![b'x'; 4_000_000]).await;
    refused(client, "413", "request_too_large").await;
    server.serves_and_stops().await;
}

#[tokio::test]
async fn chunks_over_the_limit_are_refused() {
    let server = Server::start("max_body = \"1 KiB\"", Router::new()).await;
    let mut client = server.connect().await;
    let chunk = format!("200\r\n{}\r\n", "x".repeat(0x200));
    client.send(post("transfer-encoding: chunked") + &chunk.repeat(3)).await;
    refused(client, "413", "request_too_large").await;
    server.serves_and_stops().await;
}

#[tokio::test]
async fn a_body_at_the_limit_passes_either_way() {
    let server = Server::start("max_body = \"1 KiB\"", Router::new()).await;
    let body = "x".repeat(0x400);
    let mut client = server.connect().await;
    client.send(post("content-length: 1024") + &body).await;
    assert_eq!(client.response().await.body, body);
    client.send(post("transfer-encoding: chunked") + &format!("400\r\n{body}\r\n0\r\n\r\n")).await;
    assert_eq!(client.response().await.body, body);
    server.serves_and_stops().await;
}

#[tokio::test]
async fn a_length_that_lies_ends_the_connection() {
    let server = Server::start("", Router::new()).await;
    // Too short: what follows the body is no request.
    let mut client = server.connect().await;
    client.send(post("content-length: 3") + "\x01\x02\x03\x04\x05\x06\r\n\r\n").await;
    let answers = client.closed().await;
    assert!(answers.starts_with("HTTP/1.1 200") && answers.contains("HTTP/1.1 400"), "{answers}");
    // Two lengths, or a length and chunks: which one counts is how requests are smuggled.
    for headers in [
        "content-length: 3\r\ncontent-length: 4",
        "content-length: -1",
        "content-length: 3, 4",
        "content-length: x",
    ] {
        let mut client = server.connect().await;
        client.send(post(headers) + "abc").await;
        let answer = client.closed().await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{headers:?}: {answer}");
    }
    server.serves_and_stops().await;
}

#[tokio::test]
async fn a_broken_chunk_is_a_bad_request() {
    let server = Server::start("", Router::new()).await;
    let mut client = server.connect().await;
    client.send(post("transfer-encoding: chunked") + "zz\r\nabc\r\n0\r\n\r\n").await;
    assert_eq!(client.response().await.status(), "400");
    drop(client);
    server.serves_and_stops().await;
}

#[tokio::test]
async fn a_compressed_body_is_refused() {
    let server = Server::start("", Router::new()).await;
    let mut client = server.connect().await;
    client.send(post("content-encoding: gzip\r\ncontent-length: 5000000")).await;
    refused(client, "415", "unsupported_media_type").await;
    server.serves_and_stops().await;
}

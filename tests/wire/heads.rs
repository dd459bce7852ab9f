//! Heads that are too large, and bytes that are no head.

use axum::Router;

use crate::http2::{self, GOAWAY};
use crate::server::Server;

#[tokio::test]
async fn a_head_over_the_limit_is_answered_with_431() {
    let server = Server::start("max_headers = \"8 KiB\"", Router::new()).await;
    let one_large = format!("x-large: {}\r\n", "x".repeat(9000));
    let path = "x".repeat(9000);
    for head in [
        format!("GET /hello HTTP/1.1\r\n{one_large}\r\n"),
        format!("GET /{path} HTTP/1.1\r\nhost: x\r\n\r\n"),
    ] {
        let mut client = server.connect().await;
        client.send(head).await;
        let answer = client.closed_cleanly().await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
    server.serves_and_stops().await;
}

#[tokio::test]
async fn ten_thousand_headers_are_answered_with_431() {
    let server = Server::start("", Router::new()).await;
    let mut client = server.connect().await;
    let headers: Vec<_> = (0..10_000).map(|number| format!("x-{number}: {}\r\n", "x".repeat(64))).collect();
    let bomb = headers.concat();
    client.send(format!("GET /hello HTTP/1.1\r\nhost: x\r\n{bomb}\r\n")).await;
    let answer = client.closed_cleanly().await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    server.serves_and_stops().await;
}

#[tokio::test]
async fn the_largest_head_that_is_allowed_passes() {
    let server = Server::start("max_headers = \"8 KiB\"", Router::new()).await;
    let mut client = server.connect().await;
    client.send(format!("GET /hello HTTP/1.1\r\nx-large: {}\r\n\r\n", "x".repeat(8000))).await;
    assert_eq!(client.response().await.body, "hello");
    server.serves_and_stops().await;
}

#[tokio::test]
async fn an_http2_head_over_the_limit_is_refused_and_the_connection_lives() {
    let server = Server::start("max_headers = \"8 KiB\"", Router::new()).await;
    let mut client = server.connect_http2().await;
    // A literal field of 9000 bytes: name "x", then the length as HPACK writes numbers over 127.
    let mut field = vec![0x00, 0x01, b'x', 0x7f, 0xa9, 0x45];
    field.extend([b'x'; 9000]);
    client.send(&http2::get(1, "/hello", &field)).await;
    let (status, body) = client.response(1).await;
    assert_ne!(status, http2::STATUS_200);
    assert_eq!(body, "");
    client.send(&http2::get(3, "/hello", &[])).await;
    loop {
        let frame = client.frame().await.expect("the connection lives");
        if frame.stream == 3 && frame.kind == http2::HEADERS {
            assert_eq!(frame.payload[0], http2::STATUS_200);
            break;
        }
    }
    drop(client);
    server.serves_and_stops().await;
}

#[tokio::test]
async fn garbage_is_answered_with_400_or_closed() {
    let server = Server::start("", Router::new()).await;
    for garbage in [
        &b"\x00\x01\x02\x03\xff\xfe\r\n\r\n"[..],
        b"hello\r\n\r\n",
        b"GET /hello HTTP/9.9\r\nhost: x\r\n\r\n",
        b"GET /hello\r\n\r\n",
        b"GET /hello HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /hello HTTP/1.1\r\nx: a\x00b\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
    ] {
        let mut client = server.connect().await;
        client.send(garbage).await;
        let answer = client.closed().await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{garbage:?}: {answer}");
    }
    server.serves_and_stops().await;
}

#[tokio::test]
async fn a_tls_client_is_turned_away_at_once() {
    let server = Server::start("header_timeout = \"60s\"", Router::new()).await;
    let mut client = server.connect().await;
    // The record and handshake headers of a ClientHello, and some of its random bytes.
    client.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x4f\x92\xd1\x88\x17").await;
    let answer = client.closed().await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    server.serves_and_stops().await;
}

#[tokio::test]
async fn garbage_after_the_http2_preface_ends_the_connection() {
    let server = Server::start("", Router::new()).await;
    let mut client = server.connect_http2().await;
    client.send(&[0xff; 64]).await;
    assert!(client.closed().await.contains(&GOAWAY));
    server.serves_and_stops().await;
}

#[tokio::test]
async fn rapid_resets_end_the_connection() {
    const ENHANCE_YOUR_CALM: u8 = 0x0b;
    let server = Server::start("", Router::new()).await;
    let mut client = server.connect_http2().await;
    let attack: Vec<u8> = (0..200)
        .map(|number| 2 * number + 1)
        .flat_map(|stream| [http2::get(stream, "/hello", &[]), http2::reset(stream)].concat())
        .collect();
    client.send(&attack).await;
    let frame = loop {
        let frame = client.frame().await.expect("closed without a word");
        if frame.kind == GOAWAY {
            break frame;
        }
    };
    assert_eq!(frame.payload[4..8], [0, 0, 0, ENHANCE_YOUR_CALM]);
    client.closed().await;
    server.serves_and_stops().await;
}

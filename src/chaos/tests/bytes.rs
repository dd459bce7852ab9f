//! Right answers in bytes that are wrong, strange or too many.

use std::io::Read;

use flate2::read::GzDecoder;

use super::client::End;
use super::*;

fn unpacked(body: &[u8]) -> std::io::Result<String> {
    let mut text = String::new();
    GzDecoder::new(body).read_to_string(&mut text).map(|_| text)
}

#[tokio::test]
async fn the_length_is_not_that_of_the_body() {
    for stream in [false, true] {
        let response = answer("content-length:long", OPENAI, stream).await;
        let told: usize = response.header("content-length").unwrap().parse().unwrap();
        assert!(told > response.raw().len() && response.end == End::Closed);
        let response = answer("content-length:short", OPENAI, stream).await;
        let told: usize = response.header("content-length").unwrap().parse().unwrap();
        assert_eq!(told, response.raw().len() / 2);
        let response = answer("content-length:both", OPENAI, stream).await;
        let told: usize = response.header("content-length").unwrap().parse().unwrap();
        assert_eq!(told, response.body().len(), "the chunks carry as much as the length says");
    }
}

#[tokio::test]
async fn gzip_comes_well_or_badly() {
    let response = whole("encoding:gzip").await;
    assert_eq!(response.header("content-encoding").as_deref(), Some("gzip"));
    assert!(response.is_complete() && unpacked(&response.body()).unwrap().contains("answer 1"));
    let response = stream("encoding:gzip").await;
    assert!(response.chunks().len() > 8, "each event can be unpacked as it comes");
    assert!(unpacked(&response.body()).unwrap().ends_with("data: [DONE]\n\n"));
    let response = whole("encoding:truncated").await;
    assert!(response.is_complete() && unpacked(&response.body()).is_err());
    let response = whole("encoding:unlabelled").await;
    assert_eq!(response.header("content-encoding"), None);
    assert!(unpacked(&response.body()).is_ok());
    let response = whole("encoding:mislabelled").await;
    assert_eq!(response.header("content-encoding").as_deref(), Some("gzip"));
    response.json();
    for (rules, label) in [("encoding:br", "br"), ("encoding:zstd", "zstd")] {
        assert_eq!(stream(rules).await.header("content-encoding").as_deref(), Some(label));
    }
}

#[tokio::test]
async fn a_bomb_is_small_until_it_is_unpacked() {
    for stream in [false, true] {
        let response = answer("gzip-bomb:size=2MiB", OPENAI, stream).await;
        let (packed, unpacked) = (response.body().len(), unpacked(&response.body()).unwrap().len());
        assert!(unpacked > 2 << 20 && unpacked / packed > 300, "{unpacked} in {packed}");
    }
}

#[tokio::test]
async fn the_content_may_be_no_text() {
    for stream in [false, true] {
        let response = answer("invalid-utf8", OPENAI, stream).await;
        assert!(response.is_complete());
        assert!(String::from_utf8(response.body()).is_err());
        assert!(String::from_utf8_lossy(&response.body()).contains("\"caf"));
    }
}

#[tokio::test]
async fn event_streams_come_in_every_legal_form() {
    assert!(stream("bom").await.body().starts_with(b"\xef\xbb\xbfdata: {"));
    assert!(whole("bom").await.body().starts_with(b"\xef\xbb\xbf{"));
    assert!(whole("bom").await.is_complete());
    let crlf = stream("crlf").await.text();
    assert!(crlf.ends_with("data: [DONE]\r\n\r\n") && crlf.replace("\r\n", "").find(['\r', '\n']).is_none());
    assert!(stream("cr").await.text().ends_with("data: [DONE]\r\r"));
    assert!(stream("no-space").await.text().ends_with("data:[DONE]\n\n"));
    let lines = answer("multi-line", ANTHROPIC, true).await.text();
    let event = lines.split("\n\n").next().unwrap();
    let data: Vec<_> = event.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert!(data.len() > 2, "{event}");
    serde_json::from_str::<Value>(&data.join("\n")).unwrap();
}

#[tokio::test]
async fn chunks_may_be_of_one_byte() {
    let response = stream("split:1").await;
    let chunks = response.chunks();
    assert!(chunks[..chunks.len() - 1].iter().all(|chunk| chunk.len() == 1));
    assert_eq!(response.data().last().map(String::as_str), Some("[DONE]"));
    assert!(stream("split:7").await.chunks().iter().all(|chunk| chunk.len() <= 7));
    assert_eq!(whole("split:1").await.json()["id"], "chatcmpl-1");
}

#[tokio::test]
async fn a_line_a_body_or_a_head_may_be_too_long() {
    let response = stream("long-line:100KiB").await;
    assert!(response.data().iter().any(|data| data.len() > 100 << 10));
    for stream in [false, true] {
        let response = answer("huge:1MiB", OPENAI, stream).await;
        assert!(response.is_complete() && response.body().len() > 1 << 20);
    }
    let content = &whole("huge:1MiB").await.json()["choices"][0]["message"]["content"];
    assert_eq!(content.as_str().unwrap().len(), 1 << 20);
    let response = whole("headers:count=1000:size=100B").await;
    let many = response.head().lines().filter(|line| line.starts_with("x-") && line.len() > 100).count();
    assert_eq!(many, 1000);
    response.json();
}

#[tokio::test]
async fn content_without_end_stops_when_the_caller_leaves() {
    for stream in [false, true] {
        let chaos = playing("endless").await;
        let mut client = Client::connect(&chaos).await;
        client.ask(OPENAI, &question(stream)).await;
        for _ in 0..100 {
            client.read_to("endless ").await;
        }
        drop(client);
        chaos.settled().await;
        let attempt = &chaos.attempts()[0];
        assert!(attempt.client_closed && attempt.bytes > 800, "{attempt:?}");
    }
}

#[tokio::test]
async fn the_clock_may_be_wrong() {
    let seconds = |response: &Response| {
        let date = response.header("date").unwrap();
        let time = httpdate::parse_http_date(&date).unwrap();
        time.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
    };
    let right = seconds(&whole("ok").await);
    let ahead = seconds(&whole("date:+1h").await);
    let behind = seconds(&whole("latency:1ms:date:-1h").await);
    assert!((3590..3610).contains(&(ahead - right)), "{}", ahead - right);
    assert!((3590..3610).contains(&(right - behind)), "{}", right - behind);
}

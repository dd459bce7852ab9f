//! The upstream module against a provider that misbehaves.

#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod gzip;
mod provider;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use refrain::chat::{ChatReply, ChatRequest, EventKind, Finish};
use refrain::clock::Clock;
use refrain::config::{Config, Secret};
use refrain::switches::Switches;
use refrain::upstream::{Ask, Body, Completion, Piece, PieceStream, Upstream, UpstreamError, Whole};

use tokio::time::Instant;

use provider::Provider;

const ASKED: &str = r#"{ "messages":[{"role":"user","content":"Grüß dich"}],  "model" : "alias", "x": 1.0 }"#;

const ANSWER: &str = concat!(
    r#"{ "id":"chatcmpl-9", "object":"chat.completion","created":5,"model":"big-1-2026","choices":[{"index":0, "#,
    r#""message":{"role":"assistant","content":"Grüß Gott"},"finish_reason":"stop"}], "y": 1.50 }"#
);

const ROLE: &str =
    r#"{"id":"c","model":"big-1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
const TEXT: &str = r#"{"id":"c","model":"big-1","choices":[{"index":0, "delta":{"content":"Grüß 🌍"}}]}"#;
const STOP: &str = r#"{"id":"c","model":"big-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const ERROR: &str = r#"{"error":{"message":"overloaded","code":"server_is_overloaded"}}"#;

fn framed(events: &[&str]) -> String {
    let frames: Vec<_> = events.iter().map(|data| format!("data: {data}\n\n")).collect();
    frames.concat()
}

fn request(stream: bool) -> ChatRequest {
    let start = ASKED.find("\"alias\"").unwrap();
    ChatRequest {
        body: ASKED.into(),
        model_span: start..start + "\"alias\"".len(),
        model: "alias".to_owned(),
        stream,
        ..ChatRequest::default()
    }
}

/// An upstream whose model `alias` is `big-1` at `provider`.
fn upstream(provider: &Provider, overlay: &str) -> Upstream {
    let address = provider.address();
    let overlay = format!(
        "[providers.openai]\nurl = \"http://{address}/v1/\"\n{overlay}\n\
         [upstream.retry]\nbudget = 0.0\nfloor = 0\n[models.alias]\ntargets = [{{ provider = \"openai\", model = \"big-1\" }}]\n"
    );
    let config = Config::from_toml(&overlay).unwrap();
    Upstream::try_new(&config, Clock::system(), Arc::new(Switches::in_memory())).unwrap()
}

fn ask(request: &ChatRequest) -> Ask<'_> {
    Ask::new(request, Instant::now() + Duration::from_mins(1))
}

/// An overlay that needs no key and sets upstream limits.
fn keyless(limits: &str) -> String {
    format!("[auth]\nmode = \"forward\"\n[upstream]\n{limits}")
}

fn whole(completion: Completion) -> Whole {
    let Body::Whole(whole) = completion.body else { panic!("a stream, not a whole answer") };
    whole
}

fn stream(completion: Completion) -> PieceStream {
    let Body::Stream(pieces) = completion.body else { panic!("a whole answer, not a stream") };
    pieces
}

/// Reads to the end: the data of the events, and how it ended.
async fn read(mut pieces: PieceStream) -> (Vec<Bytes>, Result<Option<ChatReply>, UpstreamError>) {
    let mut events = Vec::new();
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(Piece::Event(event)) => events.push(event.data),
            Ok(Piece::Complete(end)) => return (events, Ok(end.reply)),
            Err(error) => return (events, Err(error)),
        }
    }
    panic!("ended without an end");
}

/// What comes of a call that the provider answers with `script`.
async fn answered<F: Future<Output = ()>>(
    stream: bool,
    limits: &str,
    script: impl FnOnce(provider::Call) -> F,
) -> Result<Completion, UpstreamError> {
    let provider = Provider::start().await;
    let upstream = upstream(&provider, &keyless(limits));
    let request = request(stream);
    let answer = async { script(provider.call().await).await };
    tokio::join!(upstream.send(ask(&request)), answer).0
}

#[track_caller]
fn assert_broken<T>(result: Result<T, UpstreamError>, word: &str) {
    match result {
        Err(UpstreamError::Broken { reason, .. }) => assert!(reason.contains(word), "{reason}"),
        Err(error) => panic!("another error: {error:?}"),
        Ok(_) => panic!("no error"),
    }
}

#[track_caller]
fn assert_status<T>(result: Result<T, UpstreamError>) -> (u16, Bytes, Option<Duration>) {
    match result {
        Err(UpstreamError::Status { status, body, fault, .. }) => (status, body, fault.wait),
        Err(error) => panic!("another error: {error:?}"),
        Ok(_) => panic!("no error"),
    }
}

#[tokio::test]
async fn bodies_pass_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "sk-ours\n").unwrap();
    let provider = Provider::start().await;
    let upstream = upstream(&provider, &format!("api_key = \"file:{}\"\noptional = false", key.display()));
    let request = request(false);
    let answer = async {
        let mut call = provider.call().await;
        call.json(ANSWER).await;
        call
    };
    let (completion, call) = tokio::join!(upstream.send(ask(&request)), answer);
    assert_eq!(String::from_utf8(call.body.clone()).unwrap(), ASKED.replace("alias", "big-1"));
    assert!(call.head.starts_with("post /v1/chat/completions http/1.1\r\n"), "{}", call.head);
    let mut names: Vec<_> =
        call.head.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0)).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "accept",
            "accept-encoding",
            "authorization",
            "content-length",
            "content-type",
            "host",
            "user-agent"
        ]
    );
    assert_eq!(call.header("accept"), Some("application/json"));
    assert_eq!(call.header("accept-encoding"), Some("gzip"));
    assert_eq!(call.header("authorization"), Some("bearer sk-ours"));
    assert_eq!(call.header("content-type"), Some("application/json"));
    assert_eq!(call.header("user-agent"), Some(concat!("refrain/", env!("CARGO_PKG_VERSION"))));

    let completion = completion.unwrap();
    assert_eq!((&*completion.served.provider, &*completion.served.model), ("openai", "big-1"));
    let whole = whole(completion);
    assert_eq!(whole.bytes, ANSWER);
    let reply = whole.reply.unwrap();
    assert_eq!((&*reply.model, &*reply.text, reply.finish), ("big-1-2026", "Grüß Gott", Finish::Stop));
}

#[tokio::test]
async fn the_callers_key_goes_in_place_of_ours() {
    let provider = Provider::start().await;
    let upstream = upstream(&provider, &keyless(""));
    let (request, key) = (request(false), Secret::new("sk-theirs"));
    for (credential, sent) in [(Some(&key), Some("bearer sk-theirs")), (None, None)] {
        let answer = async {
            let mut call = provider.call().await;
            call.respond("200 OK", "connection: close\r\ncontent-type: application/json\r\n", ANSWER).await;
            call
        };
        let (completion, call) = tokio::join!(upstream.send(Ask { credential, ..ask(&request) }), answer);
        assert!(completion.is_ok());
        assert_eq!(call.header("authorization"), sent);
    }
}

#[tokio::test]
async fn events_pass_byte_for_byte_and_add_up() {
    let completion = answered(true, "", async |mut call| {
        assert_eq!(call.header("accept"), Some("text/event-stream, application/json"));
        assert_eq!(call.header("accept-encoding"), Some("identity"));
        call.begin_events().await;
        call.chunk(": PROCESSING\n\n").await;
        call.chunk(&framed(&[ROLE])).await;
        // Two characters, each cut in the middle by a chunk.
        let text = framed(&[TEXT]);
        for border in [text.find('ü').unwrap() + 1, text.find('🌍').unwrap() + 2] {
            assert!(!text.is_char_boundary(border));
        }
        for byte in text.as_bytes() {
            call.send(b"1\r\n").await;
            call.send([*byte, b'\r', b'\n']).await;
        }
        call.chunk(&framed(&[STOP, "[DONE]"])).await;
        call.end_events().await;
    });
    let (events, end) = read(stream(completion.await.unwrap())).await;
    assert_eq!(events, [ROLE, TEXT, STOP]);
    let reply = end.unwrap().unwrap();
    assert_eq!((&*reply.model, &*reply.text, reply.finish), ("big-1", "Grüß 🌍", Finish::Stop));
}

#[tokio::test]
async fn a_connection_serves_the_next_call_after_a_stream() {
    let provider = Provider::start().await;
    let upstream = upstream(&provider, &keyless(""));
    let (streamed, not_streamed) = (request(true), request(false));
    let answer = async {
        let mut call = provider.call().await;
        call.begin_events().await;
        call.chunk(&framed(&[TEXT, STOP, "[DONE]"])).await;
        call.end_events().await;
        call
    };
    let (completion, call) = tokio::join!(upstream.send(ask(&streamed)), answer);
    assert!(read(stream(completion.unwrap())).await.1.unwrap().is_some());
    let answer = async {
        let mut call = call.next().await;
        call.json(ANSWER).await;
        call
    };
    let (completion, _call) = tokio::join!(upstream.send(ask(&not_streamed)), answer);
    assert_eq!(whole(completion.unwrap()).bytes, ANSWER);
}

#[tokio::test]
async fn the_other_form_than_asked_for_is_understood() {
    let completion = answered(true, "", async |mut call| call.json(ANSWER).await).await.unwrap();
    assert_eq!(whole(completion).bytes, ANSWER);

    let completion = answered(false, "", async |mut call| {
        call.begin_events().await;
        call.chunk(&framed(&[ROLE, TEXT, STOP, "[DONE]"])).await;
        call.end_events().await;
    });
    let whole = whole(completion.await.unwrap());
    assert_eq!(whole.reply.as_ref().unwrap().text, "Grüß 🌍");
    assert_eq!(refrain::dialect::openai::reply::parse_whole(&whole.bytes), Ok(whole.reply));
}

#[tokio::test]
async fn several_choices_pass_and_are_no_reply() {
    let two = r#"{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"},
                  {"index":1,"message":{"content":"b"},"finish_reason":"stop"}]}"#;
    let completion = answered(false, "", async |mut call| call.json(two).await).await.unwrap();
    let whole = whole(completion);
    assert_eq!(whole.bytes, two);
    assert!(whole.reply.is_none());
}

#[tokio::test]
async fn a_refusal_keeps_status_body_and_wait() {
    let refused = answered(false, "", async |mut call| {
        call.respond("429 Too Many Requests", "retry-after: 7\r\n", ERROR).await;
    });
    assert_eq!(assert_status(refused.await), (429, ERROR.into(), Some(Duration::from_secs(7))));

    let huge = answered(true, "", async |mut call| {
        call.respond("500 Oops", "content-type: text/html\r\n", "x".repeat(100_000)).await;
    });
    let (status, body, _) = assert_status(huge.await);
    assert_eq!((status, body.len()), (500, 64 * 1024));

    let elsewhere = Provider::start().await;
    let location = format!("location: http://{}/\r\n", elsewhere.address());
    let redirect = answered(false, "", async |mut call| call.respond("302 Found", &location, "").await);
    assert_eq!(assert_status(redirect.await).0, 302);
}

#[tokio::test]
async fn an_error_inside_a_success_is_an_error() {
    let body = answered(false, "", async |mut call| call.json(ERROR).await).await;
    assert_eq!(assert_status(body), (200, ERROR.into(), None));

    let first = answered(true, "", async |mut call| {
        call.begin_events().await;
        call.chunk(&framed(&[ROLE, ERROR, "[DONE]"])).await;
    });
    assert_eq!(assert_status(first.await), (200, ERROR.into(), None));

    let later = answered(true, "", async |mut call| {
        call.begin_events().await;
        call.chunk(&framed(&[TEXT, ERROR, "[DONE]"])).await;
    });
    let (events, end) = read(stream(later.await.unwrap())).await;
    assert_eq!(events, [TEXT]);
    assert_eq!(assert_status(end), (200, ERROR.into(), None));
}

#[tokio::test]
async fn half_an_answer_is_broken() {
    let half = &ANSWER[..ANSWER.len() / 2];
    let cut = answered(false, "", async |mut call| call.json(half).await).await;
    assert_broken(cut, "not a chat completion");

    let too_long = answered(false, "", async |mut call| {
        call.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{ANSWER}", ANSWER.len() + 1)).await;
    });
    assert_broken(too_long.await, "");

    let too_short = answered(false, "", async |mut call| {
        call.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{ANSWER}", ANSWER.len() - 1)).await;
    });
    assert_broken(too_short.await, "not a chat completion");

    let page = answered(false, "", async |mut call| {
        call.respond("200 OK", "content-type: text/html\r\n", "<html>").await;
    });
    assert_broken(page.await, "not a chat completion");

    let no_choice = answered(false, "", async |mut call| call.json(r#"{"choices":[]}"#).await);
    assert_broken(no_choice.await, "no choice");
}

#[tokio::test]
async fn a_stream_that_ends_before_its_terminal_is_broken() {
    // The clean end of the connection's framing proves nothing about the answer.
    let clean = answered(true, "", async |mut call| {
        call.begin_events().await;
        call.chunk(&framed(&[ROLE, TEXT])).await;
        call.end_events().await;
    });
    let (events, end) = read(stream(clean.await.unwrap())).await;
    assert_eq!(events, [ROLE, TEXT]);
    assert_broken(end, "before its terminal");

    let mid_event = answered(true, "", async |mut call| {
        call.begin_events().await;
        call.chunk(&framed(&[TEXT])).await;
        call.chunk(&framed(&[TEXT])[..30]).await;
        call.end_events().await;
    });
    assert_broken(read(stream(mid_event.await.unwrap())).await.1, "not a chat completion");

    let reset = answered(true, "", async |mut call| {
        call.begin_events().await;
        call.chunk(&framed(&[TEXT])).await;
        call.reset();
    });
    assert_broken(read(stream(reset.await.unwrap())).await.1, "");

    let nothing = answered(true, "", async |mut call| {
        call.begin_events().await;
        call.chunk(&framed(&["[DONE]"])).await;
    });
    assert_broken(nothing.await, "without an answer");
}

#[tokio::test]
async fn a_missing_proof_of_the_end_is_no_error_and_no_reply() {
    for events in [&[TEXT, STOP][..], &[TEXT, "[DONE]"]] {
        let completion = answered(true, "", async |mut call| {
            call.begin_events().await;
            call.chunk(&framed(events)).await;
            call.end_events().await;
        });
        assert_eq!(read(stream(completion.await.unwrap())).await.1.unwrap(), None, "{events:?}");
    }
    // Here the blank line is missing and nothing else.
    let completion = answered(true, "", async |mut call| {
        call.begin_events().await;
        call.chunk(&framed(&[TEXT, STOP])).await;
        call.chunk("data: [DONE]").await;
        call.end_events().await;
    });
    assert!(read(stream(completion.await.unwrap())).await.1.unwrap().is_some());
}

#[tokio::test]
async fn no_connection_and_no_answer_are_told_apart() {
    let provider = Provider::start().await;
    let upstream = upstream(&provider, &keyless(""));
    let request = request(false);
    let hang_up = async { provider.call().await.reset() };
    let (dropped, ()) = tokio::join!(upstream.send(ask(&request)), hang_up);
    // Not a byte of an answer came, so another connection may be tried.
    assert!(matches!(dropped.err(), Some(UpstreamError::Connect { .. })));
    drop(provider);
    let refused = upstream.send(ask(&request)).await.err().unwrap();
    assert!(matches!(&refused, UpstreamError::Connect { .. }), "{refused:?}");
    assert!(refused.to_string().contains("refused"), "{refused}");
}

#[tokio::test]
async fn a_compressed_answer_is_read_and_a_bomb_is_not() {
    let headers = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
    let body = gzip::stored(ANSWER.as_bytes());
    let completion = answered(false, "", async |mut call| call.respond("200 OK", headers, body).await);
    assert_eq!(whole(completion.await.unwrap()).bytes, ANSWER);

    for stream in [false, true] {
        let kind = if stream { "text/event-stream" } else { "application/json" };
        let headers = format!("content-type: {kind}\r\ncontent-encoding: gzip\r\n");
        let bomb = gzip::bomb(64 << 20);
        assert!(bomb.len() < 512 << 10);
        let bombed = answered(stream, "max_reply = \"1 MiB\"", async |mut call| {
            call.respond("200 OK", &headers, bomb).await;
        });
        let error = bombed.await.err().unwrap();
        assert!(matches!(error, UpstreamError::TooLarge { limit: 1_048_576, .. }), "{error:?}");
    }
}

#[tokio::test]
async fn an_endless_line_is_cut_at_the_limit() {
    let mut floods = Vec::new();
    for beginning in ["data: ", "x", ":", "data: {}\n\ndata:"] {
        let provider = Provider::start().await;
        let upstream = upstream(&provider, &keyless("max_reply = \"256 KiB\""));
        let request = request(true);
        let flood = async {
            let mut call = provider.call().await;
            call.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n").await;
            call.send(beginning).await;
            call.flood(&[b'a'; 8192]).await;
        };
        let (completion, ()) = tokio::join!(upstream.send(ask(&request)), flood);
        floods.push(matches!(completion, Err(UpstreamError::TooLarge { .. })));
    }
    assert_eq!(floods, [true; 4]);
}

#[tokio::test]
async fn keep_alives_do_not_hold_the_first_timer_off() {
    let provider = Provider::start().await;
    let upstream = upstream(&provider, &keyless("first_content_timeout = \"200ms\""));
    let request = request(true);
    let alive = async {
        let mut call = provider.call().await;
        call.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n").await;
        call.send(framed(&[ROLE])).await;
        call.flood(b": still there\n\n").await;
    };
    let (completion, ()) = tokio::join!(upstream.send(ask(&request)), alive);
    let error = completion.err().unwrap();
    assert!(matches!(error, UpstreamError::TimedOut { timer: "first_content", .. }), "{error:?}");
}

#[tokio::test]
async fn a_caller_who_leaves_ends_the_providers_call() {
    let provider = Provider::start().await;
    let upstream = upstream(&provider, &keyless(""));
    // Before any answer.
    let waiting = request(true);
    let call = tokio::select! {
        _ = upstream.send(ask(&waiting)) => panic!("nobody answered"),
        call = provider.call() => call,
    };
    call.closed().await;
    // In the middle of a stream, and of a whole body.
    let answer = async {
        let mut call = provider.call().await;
        call.begin_events().await;
        call.chunk(&framed(&[ROLE, TEXT])).await;
        call
    };
    let (completion, call) = tokio::join!(upstream.send(ask(&waiting)), answer);
    let mut pieces = stream(completion.unwrap());
    let Some(Ok(Piece::Event(event))) = pieces.next().await else { panic!("no event") };
    assert_eq!(event.kind, EventKind::Other);
    drop(pieces);
    call.closed().await;
    let waiting = request(false);
    let half = async {
        let mut call = provider.call().await;
        call.send("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{").await;
        call
    };
    let call = tokio::select! {
        _ = upstream.send(ask(&waiting)) => panic!("half an answer is none"),
        call = half => call,
    };
    call.closed().await;
}

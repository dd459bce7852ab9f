//! Bad input and bad days: each a clear answer in OpenAI's form.

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use refrain::upstream::UpstreamError;
use refrain::upstream::fault::{Refusal, classify};
use serde_json::json;

use crate::support::{START, TestApp, chat};

#[tokio::test(start_paused = true)]
async fn bad_input_says_what_and_where() {
    let app = TestApp::start().await;
    let deep = format!(r#"{{"model":"m","x":{}1{},"messages":[]}}"#, "[".repeat(100), "]".repeat(100));
    for (body, status, words) in [
        ("not json", 400, "JSON"),
        (r#"{"model":"m","messages":[]}"#, 400, "at least one message"),
        (r#"{"model":"m","model":"n","messages":[]}"#, 400, "duplicate key"),
        (r#"{"model":"m","messages":[{"role":"user","content":5}]}"#, 400, "messages[0].content"),
        (r#"{"model":"m","messages":[{"role":"user","content":"\ud800"}]}"#, 400, "surrogate"),
        (r#"{"model":"m","messages":[{"role":"user","content":"a\u0000"}]}"#, 400, "NUL"),
        (deep.as_str(), 400, "deeper than 64"),
    ] {
        let reply = app.send(Method::POST, "/v1/chat/completions", &[], body.to_owned()).await;
        assert_eq!(reply.status, StatusCode::from_u16(status).unwrap(), "{body}");
        let error = reply.json()["error"].clone();
        assert!(error["message"].as_str().unwrap().contains(words), "{body}: {error}");
        assert_eq!(error["type"], "invalid_request_error", "{body}");
        assert!(!reply.header("x-request-id").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_names_are_refused() {
    let app = TestApp::with("[models.\"*\"]\ntargets = [{ provider = \"openai\" }]").await;
    let mut body = chat("q");
    body["model"] = "nobody".into();
    let reply = app.post(&body, &[]).await;
    assert_eq!(
        (reply.status.as_u16(), reply.json()["error"]["code"].clone()),
        (404, json!("model_not_found"))
    );

    let reply = app.post(&chat("q"), &[("x-refrain-namespace", "nowhere")]).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["error"]["param"], "x-refrain-namespace");

    assert_eq!(app.send(Method::GET, "/v1/nothing", &[], "").await.status, 404);
    assert_eq!(app.send(Method::GET, "/v1/chat/completions", &[], "").await.status, 405);
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_limit_is_refused() {
    let app = TestApp::with("[server]\nmax_body = \"1 KiB\"").await;
    let reply = app.post(&chat(&"x".repeat(2000)), &[]).await;
    assert_eq!(reply.status, 413);
    assert!(reply.json()["error"]["message"].as_str().unwrap().contains("1024"), "{:?}", reply.json());
}

#[tokio::test(start_paused = true)]
async fn keys_are_checked_and_are_tenants() {
    let app = TestApp::with(
        r#"
        [auth]
        mode = "keys"
        [auth.keys.alice]
        sha256 = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90"
        [auth.keys.bob]
        sha256 = "81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9"
        "#,
    )
    .await;
    assert_eq!(app.ask("q").await.status, 401);
    assert_eq!(app.post(&chat("q"), &[("authorization", "Bearer mallory")]).await.status, 401);
    app.provider.answer("for alice");
    let alice = [("authorization", "Bearer alice")];
    assert_eq!(app.post(&chat("q"), &alice).await.text(), "for alice");
    assert_eq!(app.post(&chat("q"), &alice).await.source(), "exact");
    app.provider.answer("for bob");
    assert_eq!(app.post(&chat("q"), &[("authorization", "Bearer bob")]).await.text(), "for bob");
    assert_eq!(app.provider.calls()[0].credential, None);
}

#[tokio::test(start_paused = true)]
async fn forward_passes_the_callers_key_on_and_keeps_it_secret() {
    let app = TestApp::with("[auth]\nmode = \"forward\"").await;
    app.provider.answer("a");
    app.post(&chat("q"), &[("authorization", "Bearer sk-canary-1")]).await;
    assert_eq!(app.provider.calls()[0].credential.as_deref(), Some("sk-canary-1"));
    app.provider.answer("b");
    assert_eq!(app.post(&chat("q"), &[("authorization", "Bearer sk-canary-2")]).await.text(), "b");
    app.settle().await;
    let listed = app.operate(Method::GET, "/admin/entries", &json!(null)).await;
    assert!(!String::from_utf8_lossy(&listed.body).contains("canary"));
}

#[tokio::test(start_paused = true)]
async fn upstream_failures_become_one_honest_error() {
    let app = TestApp::start().await;
    let status = |status, body: &str| UpstreamError::Status {
        provider: "fake".into(),
        status,
        body: body.to_owned().into(),
        fault: classify(&Refusal {
            status,
            headers: &HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("7"))]),
            body: body.as_bytes(),
            now: START,
        }),
    };
    let timed_out = UpstreamError::TimedOut { provider: "fake".into(), timer: "first_content" };
    let broken = UpstreamError::Broken { provider: "fake".into(), reason: "half".into() };
    for (error, expected) in [
        (status(400, r#"{"error":{"message":"bad tools"}}"#), 400),
        (status(401, r#"{"error":{"message":"bad key sk-1"}}"#), 502),
        (status(429, "{}"), 429),
        (status(500, "stack trace"), 502),
        (timed_out, 504),
        (broken, 502),
    ] {
        app.provider.fail(error.clone());
        let reply = app.ask("q").await;
        assert_eq!(reply.status.as_u16(), expected, "{error}");
        assert!(reply.json()["error"]["message"].is_string());
        if expected == 429 {
            assert_eq!(reply.header("retry-after"), "7");
        }
        if expected == 400 {
            assert_eq!(reply.json()["error"]["message"], "bad tools");
        }
        let body = String::from_utf8_lossy(&reply.body).into_owned();
        assert!(!body.contains("sk-1") && !body.contains("stack trace"), "{body}");
    }
    app.provider.answer("recovered");
    assert_eq!(app.ask("q").await.text(), "recovered");
}

#[tokio::test(start_paused = true)]
async fn in_open_mode_other_web_pages_are_refused() {
    let app = TestApp::start().await;
    for foreign in
        [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site"), ("host", "evil.example")]
    {
        let reply = app.post(&chat("q"), &[foreign]).await;
        assert_eq!(reply.status, 403, "{foreign:?}");
    }
}

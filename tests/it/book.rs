//! Approved answers, put into the cache before anybody asks.

use std::time::Duration;

use axum::http::Method;
use refrain::cache::embedder::EmbedError;
use serde_json::{Value, json};
use tokio::time::advance;

use crate::support::{Reply, TestApp, chat, streamed};

const QUESTION: &str = "How do I reset my password?";
const ANSWER: &str = "In the portal, under **Account**.";

fn book(records: &Value) -> Value {
    json!({ "like": chat("?"), "records": records })
}

async fn import(app: &TestApp, body: &Value) -> Reply {
    app.operate(Method::POST, "/admin/import", body).await
}

/// Imports one record that must be taken.
async fn imported(app: &TestApp, mut record: Value) -> Value {
    record["question"] = QUESTION.into();
    record["answer"] = ANSWER.into();
    let reply = import(app, &book(&json!([record]))).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

#[tokio::test(start_paused = true)]
async fn an_approved_answer_is_served_to_the_first_who_asks() {
    let app = TestApp::start().await;
    let done =
        imported(&app, json!({ "aliases": ["Lost my password"], "tags": ["kb:it"], "ttl": "1h" })).await;
    assert_eq!(done, json!({ "imported": 1, "entries": 2, "exact_only": 0, "skipped": [] }));
    for question in [QUESTION, "Lost my password"] {
        let hit = app.ask(question).await;
        assert_eq!((hit.source(), hit.text().as_str()), ("exact", ANSWER));
        assert_eq!(hit.header("cache-status"), "refrain; hit; ttl=3600; detail=exact");
        assert!(hit.json()["usage"]["total_tokens"].as_u64() > Some(0), "what a model would have cost");
    }
    app.embedder.similar("How can I reset my password?", QUESTION, 0.97);
    assert_eq!(app.ask("How can I reset my password?").await.source(), "semantic");
    let stream = app.post(&streamed(QUESTION), &[]).await;
    assert_eq!((stream.source(), stream.streamed_text().as_str()), ("exact", ANSWER));
    assert!(app.provider.calls().is_empty());
}

#[tokio::test]
async fn it_is_for_requests_like_the_one_that_was_shown() {
    let app = TestApp::with("[namespaces.hr]").await;
    let like = |content: &str| {
        json!({ "model": "m", "temperature": 0, "messages": [
            { "role": "system", "content": "Be brief." }, { "role": "user", "content": content } ] })
    };
    let records = json!([{ "question": QUESTION, "answer": ANSWER }]);
    let body = json!({ "namespace": "hr", "like": like("whatever"), "records": records });
    assert_eq!(import(&app, &body).await.status, 200);
    let to_hr = [("x-refrain-namespace", "hr")];
    assert_eq!(app.post(&like(QUESTION), &to_hr).await.source(), "exact");
    app.provider.answer("no");
    assert_eq!(app.post(&chat(QUESTION), &to_hr).await.source(), "upstream", "without the instructions");
    app.provider.answer("no");
    assert_eq!(app.post(&like(QUESTION), &[]).await.source(), "upstream", "in another namespace");
}

#[tokio::test(start_paused = true)]
async fn a_pinned_answer_stays_whatever_callers_do() {
    let app = TestApp::start().await;
    imported(&app, json!({ "pinned": true, "tags": ["kb:it"] })).await;
    for (header, value) in [("cache-control", "no-cache"), ("cache-control", "max-age=0")] {
        advance(Duration::from_secs(1)).await;
        app.provider.answer("another");
        let asked = app.post(&chat(QUESTION), &[(header, value)]).await;
        assert_eq!((asked.source(), asked.text().as_str()), ("upstream", "another"), "who wants it gets it");
        assert_eq!(asked.header("cache-status"), "refrain; fwd=bypass; detail=pinned");
        assert_eq!(app.ask(QUESTION).await.text(), ANSWER, "after {value}");
    }
    let hit = app.ask(QUESTION).await;
    let wrong = json!({ "request_id": hit.header("x-request-id"), "verdict": "wrong" });
    let said = app.send(Method::POST, "/v1/feedback", &[], wrong.to_string()).await;
    assert_eq!(said.json(), json!({ "consequence": "counted" }));
    assert_eq!(app.ask(QUESTION).await.text(), ANSWER);
    let evicted = app.operate(Method::POST, "/admin/evict", &json!({ "tag": "kb:it" })).await;
    assert_eq!(evicted.json()["store"], 1, "its operator takes it back");
    app.provider.answer("from the model");
    assert_eq!(app.ask(QUESTION).await.source(), "upstream");
}

#[tokio::test]
async fn what_is_wrong_is_passed_over_with_a_reason() {
    let app = TestApp::start().await;
    let long = "x".repeat(129);
    let records = json!([
        { "question": " ", "answer": "a" },
        { "question": "q", "answer": "" },
        { "question": "q", "answer": "a", "tags": [long] },
        { "question": "What is new today?", "answer": "Nothing." },
    ]);
    let done = import(&app, &book(&records)).await.json();
    assert_eq!((&done["imported"], &done["exact_only"]), (&json!(1), &json!(1)), "{done}");
    let reasons: Vec<_> = done["skipped"].as_array().unwrap().iter().map(|one| &one["reason"]).collect();
    assert_eq!(
        reasons,
        ["the question is empty", "the answer is empty", "a tag is longer than 128 characters"]
    );
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused() {
    let app = TestApp::start().await;
    let record = json!({ "question": "q", "answer": "a" });
    let many = vec![record.clone(); 257];
    for (body, word) in [
        (json!({ "records": [record], "namespace": "nowhere", "like": chat("?") }), "nowhere"),
        (json!({ "records": [record], "like": { "model": "m", "messages": [] } }), "messages"),
        (
            json!({ "records": [record], "like": { "model": "m", "messages": [{ "role": "assistant", "content": "a" }] } }),
            "user",
        ),
        (json!({ "records": [{ "question": "q", "answer": "a", "colour": "red" }] }), "colour"),
        (book(&json!(many)), "257"),
    ] {
        let refused = import(&app, &body).await;
        assert_eq!(refused.status, 400, "{word}: {refused:?}");
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(word), "{message}");
    }
}

#[tokio::test]
async fn while_an_encoder_loads_it_has_to_wait() {
    let app = TestApp::start().await;
    app.embedder.fail(Some(EmbedError::Loading));
    let body = book(&json!([{ "question": QUESTION, "answer": ANSWER }]));
    let refused = import(&app, &body).await;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (503, "1"));
    app.embedder.fail(None);
    assert_eq!(import(&app, &body).await.json()["imported"], 1);
}

#[tokio::test]
async fn entries_tell_their_answers_when_asked() {
    let app = TestApp::start().await;
    imported(&app, json!({ "pinned": true })).await;
    let listed = app.operate(Method::GET, "/admin/entries?answers=true", &json!(null)).await.json();
    let entry = &listed["entries"][0];
    assert_eq!((&entry["answer"], &entry["pinned"]), (&json!(ANSWER), &json!(true)));
    let listed = app.operate(Method::GET, "/admin/entries", &json!(null)).await.json();
    assert!(listed["entries"][0].get("answer").is_none());
}

//! Taking hold of a breaker over HTTP.

use axum::http::Method;
use serde_json::{Value, json};

use super::{TWO_TARGETS, asked, good, is_refused_for_now};
use crate::support::TestApp;

async fn control(app: &TestApp, model: &str, control: &str) -> Value {
    let body = json!({ "provider": "fake", "model": model, "control": control });
    good(app, Method::POST, "/admin/breakers", &body).await
}

#[tokio::test(start_paused = true)]
async fn an_isolated_target_gets_no_calls_and_comes_back_with_a_probe() {
    let app = TestApp::start().await;
    app.provider.answer("before");
    app.ask("one").await;
    let isolated = control(&app, "big", "isolated").await;
    assert_eq!(isolated["breaker"]["state"], "isolated");
    assert_eq!(isolated["breaker"]["reason"], "the operator wants it so");
    assert_eq!(isolated["kept"], "in_memory");
    is_refused_for_now(&app.ask("two").await);
    assert_eq!(control(&app, "big", "automatic").await["breaker"]["state"], "half_open");
    app.provider.answer("after");
    assert_eq!(app.ask("two").await.text(), "after");
    assert_eq!(asked(&app).len(), 2);
    assert_eq!(control(&app, "big", "forced_closed").await["breaker"]["state"], "forced_closed");
}

#[tokio::test(start_paused = true)]
async fn a_target_held_open_is_asked_only_when_there_is_nobody_else() {
    let app = TestApp::with(TWO_TARGETS).await;
    app.provider.answer("before");
    app.ask("one").await;
    control(&app, "big", "forced_open").await;
    app.provider.answer("from the other");
    app.ask("two").await;
    // It was planned for, so it has a breaker too.
    control(&app, "small", "isolated").await;
    app.provider.answer("all the same");
    app.ask("three").await;
    assert_eq!(asked(&app), ["big", "small", "big"]);
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_is_not_there_is_refused_with_those_that_are() {
    let app = TestApp::start().await;
    let body = json!({ "provider": "fake", "model": "big", "control": "isolated" });
    let refused = app.operate(Method::POST, "/admin/breakers", &body).await;
    assert_eq!(refused.status, 404);
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("nobody yet"));
    app.provider.answer("asked");
    app.ask("one").await;
    let body = json!({ "provider": "fake", "model": "bgi", "control": "isolated" });
    let refused = app.operate(Method::POST, "/admin/breakers", &body).await;
    assert_eq!(refused.status, 404);
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("asked was fake/big"));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_named() {
    let app = TestApp::start().await;
    for (body, word) in [
        (json!({ "provider": "fake", "model": "big", "control": "open" }), "forced_open"),
        (json!({ "provider": "fake", "control": "isolated" }), "model"),
        (json!({ "provider": "fake", "model": "big", "control": "isolated", "for": "2h" }), "for"),
        (json!([]), "body cannot be read"),
    ] {
        let refused = app.operate(Method::POST, "/admin/breakers", &body).await;
        assert_eq!(refused.status, 400, "{body}");
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(word), "{body} -> {message}");
    }
}

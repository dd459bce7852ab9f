//! What callers and operators say of answers, and that it holds.

use std::sync::Arc;

use axum::http::Method;
use serde_json::{Value, json};

use crate::support::store::MemoryStore;
use crate::support::{Reply, TestApp, chat};

const ENABLE: &str = "How do I turn the alarm on?";
const OTHER: &str = "How do I set the alarm?";

/// A service that has served the answer to one question to another.
async fn wrong_hit(app: &TestApp) -> Reply {
    app.provider.answer("Press start.");
    app.ask(ENABLE).await;
    app.settle().await;
    app.embedder.similar(OTHER, ENABLE, 0.97);
    let hit = app.ask(OTHER).await;
    assert_eq!(hit.source(), "semantic");
    hit
}

async fn say(app: &TestApp, body: &Value) -> Reply {
    app.send(Method::POST, "/v1/feedback", &[], body.to_string()).await
}

#[tokio::test]
async fn a_wrong_hit_never_comes_again() {
    let app = TestApp::start().await;
    let hit = wrong_hit(&app).await;
    let body = json!({ "request_id": hit.header("x-request-id"), "verdict": "wrong" });
    let said = say(&app, &body).await;
    assert_eq!((said.status.as_u16(), said.json()), (200, json!({ "consequence": "parted" })));
    for question in [OTHER, "how do i set the  ALARM?"] {
        app.embedder.similar(question, ENABLE, 0.97);
        let explained = app.operate(Method::POST, "/admin/explain", &chat(question)).await.json();
        assert_eq!(explained["candidates"][0]["verdict"], "parted", "{explained}");
    }
    app.provider.answer("Choose a time.");
    assert_eq!(app.ask(OTHER).await.source(), "upstream");
    assert_eq!(app.ask(ENABLE).await.source(), "exact", "its own question keeps its answer");
    let totals = app.totals().await;
    assert_eq!(totals["verdicts"], json!({ "semantic_wrong": 1 }));
}

#[tokio::test]
async fn a_verdict_holds_on_other_instances_after_restarts_and_purges() {
    let store = Arc::new(MemoryStore::default());
    let entry = {
        let app = TestApp::over(Arc::clone(&store), "").await;
        let hit = wrong_hit(&app).await;
        hit.header("x-refrain-entry").to_owned()
    };
    let other = TestApp::over(Arc::clone(&store), "").await;
    let unknown = say(&other, &json!({ "request_id": "of-the-first", "verdict": "wrong" })).await;
    assert_eq!(unknown.status, 404, "{unknown:?}");
    let said = say(&other, &json!({ "entry": entry, "question": OTHER, "verdict": "wrong" })).await;
    assert_eq!(said.json(), json!({ "consequence": "parted" }));
    other.operate(Method::POST, "/admin/evict", &json!({ "namespace": "default" })).await;
    let third = TestApp::over(store, "").await;
    third.provider.answer("Press start.");
    third.ask(ENABLE).await;
    third.settle().await;
    third.embedder.similar(OTHER, ENABLE, 0.97);
    third.provider.answer("Choose a time.");
    assert_eq!(third.ask(OTHER).await.source(), "upstream");
}

#[tokio::test]
async fn a_wrong_answer_to_its_own_question_is_taken_back() {
    let app = TestApp::start().await;
    app.provider.answer("Nonsense.");
    let miss = app.ask(ENABLE).await;
    app.settle().await;
    let said = say(&app, &json!({ "request_id": miss.header("x-request-id"), "verdict": "wrong" })).await;
    assert_eq!(said.json(), json!({ "consequence": "evicted" }));
    app.provider.answer("Press start.");
    assert_eq!(app.ask(ENABLE).await.text(), "Press start.");
}

#[tokio::test]
async fn a_right_answer_is_counted_and_nothing_else() {
    let app = TestApp::start().await;
    let hit = wrong_hit(&app).await;
    let said = say(&app, &json!({ "request_id": hit.header("x-request-id"), "verdict": "right" })).await;
    assert_eq!(said.json(), json!({ "consequence": "counted" }));
    assert_eq!(app.ask(OTHER).await.source(), "semantic");
    assert_eq!(app.totals().await["verdicts"], json!({ "semantic_right": 1 }));
}

#[tokio::test]
async fn nobody_judges_what_others_got() {
    let keys = ["alice", "bob"].map(|name| {
        let digest = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(name));
        format!("[auth.keys.{name}]\nsha256 = \"{digest}\"")
    });
    let app = TestApp::with(&format!("[auth]\nmode = \"keys\"\n{}", keys.join("\n"))).await;
    let alice = [("authorization", "Bearer alice")];
    app.provider.answer("Press start.");
    let miss = app.post(&chat(ENABLE), &alice).await;
    app.settle().await;
    let (request, entry) = (miss.header("x-request-id"), miss.header("x-refrain-entry"));
    for body in
        [json!({ "request_id": request, "verdict": "wrong" }), json!({ "entry": entry, "verdict": "wrong" })]
    {
        let bob = app
            .send(Method::POST, "/v1/feedback", &[("authorization", "Bearer bob")], body.to_string())
            .await;
        assert_eq!(bob.status, 404, "{body}");
        let nobody = app.send(Method::POST, "/v1/feedback", &[], body.to_string()).await;
        assert_eq!(nobody.status, 401);
    }
    assert_eq!(app.post(&chat(ENABLE), &alice).await.source(), "exact");
    let operator =
        app.operate(Method::POST, "/admin/feedback", &json!({ "entry": entry, "verdict": "wrong" })).await;
    assert_eq!(operator.json(), json!({ "consequence": "evicted" }), "an operator may judge everything");
}

#[tokio::test]
async fn what_cannot_be_read_is_named() {
    let app = TestApp::start().await;
    for (body, status) in [
        (json!({}), 400),
        (json!({ "verdict": "wrong" }), 400),
        (json!({ "verdict": "so-so", "request_id": "x" }), 400),
        (
            json!({ "verdict": "wrong", "request_id": "x", "entry": "5df9cd48-327f-8a7d-a720-d6b7b93fd2a2" }),
            400,
        ),
        (json!({ "verdict": "wrong", "request_id": "x", "question": "q" }), 400),
        (json!({ "verdict": "wrong", "request_id": "x" }), 404),
        (json!({ "verdict": "wrong", "entry": "5df9cd48-327f-8a7d-a720-d6b7b93fd2a2" }), 404),
        (json!({ "verdict": "wrong", "entry": "no id" }), 400),
    ] {
        let refused = say(&app, &body).await;
        assert_eq!(refused.status, status, "{body}");
        assert!(refused.json()["error"]["message"].as_str().is_some_and(|message| !message.is_empty()));
    }
}

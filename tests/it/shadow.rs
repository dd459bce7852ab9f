//! Hits that are measured: watched instead of served, or asked upstream as well.

use serde_json::json;

use crate::support::{TestApp, chat, streamed};

const STORED: &str = "How do I reset my password?";
const OTHER: &str = "How can I reset my password?";

async fn with_an_answer(overlay: &str) -> TestApp {
    let app = TestApp::with(overlay).await;
    app.provider.answer("Use the form on the start page.");
    app.ask(STORED).await;
    app.settle().await;
    app.embedder.similar(OTHER, STORED, 0.97);
    app
}

const WATCHING: &str = "[namespaces.default]\nshadow = { serve = false }";

#[tokio::test]
async fn who_only_watches_serves_no_hit_and_learns_how_many_would_be_right() {
    let app = with_an_answer(WATCHING).await;
    app.provider.answer("Use the form on the start page.");
    let miss = app.ask(OTHER).await;
    assert_eq!(miss.source(), "upstream");
    assert!(miss.header("cache-status").ends_with("detail=shadow"), "{miss:?}");
    app.settle().await;
    app.embedder.similar("How might I reset my password?", STORED, 0.96);
    app.embedder.similar("Ask the desk of floor 3.", "Use the form on the start page.", 0.1);
    app.provider.stream().complete("Ask the desk of floor 3.");
    let streamed = app.post(&streamed("How might I reset my password?"), &[]).await;
    assert_eq!(streamed.source(), "upstream");
    app.settle().await;
    assert_eq!(app.ask(STORED).await.source(), "exact", "the same to the letter is served");
    let totals = app.totals().await;
    assert_eq!(totals["shadow_hits"], 2, "{totals}");
    assert_eq!(totals["semantic_hits"], 0);
    assert_eq!(totals["samples"], json!({ "agreed": 1, "differed": 1 }));
    assert_eq!(totals["precision"]["share"], 0.5);
    assert!(totals["precision"]["interval"][0].as_f64().unwrap() < 0.2, "two say little: {totals}");
}

#[tokio::test]
async fn a_part_of_the_hits_is_asked_upstream_without_anybody_waiting() {
    let app = with_an_answer("[namespaces.default]\nshadow = { serve = true, sample = 1.0 }").await;
    let held = app.provider.hold();
    let hit = app.ask(OTHER).await;
    assert_eq!(hit.source(), "semantic", "while the provider has not answered");
    held.send(Ok(crate::support::provider::reply("Use the form on the start page."))).unwrap();
    app.settle().await;
    let totals = app.totals().await;
    assert_eq!((totals["semantic_hits"].as_u64(), &totals["samples"]), (Some(1), &json!({ "agreed": 1 })));
    assert_eq!(app.provider.calls().len(), 2);
    app.provider.fail(refrain::upstream::UpstreamError::DeadlineExceeded);
    app.embedder.similar("How might I reset my password?", STORED, 0.97);
    assert_eq!(app.ask("How might I reset my password?").await.source(), "semantic");
    app.settle().await;
    assert_eq!(app.totals().await["samples"], json!({ "agreed": 1, "failed": 1 }));
}

#[tokio::test]
async fn without_a_wish_nothing_is_asked_twice() {
    let app = with_an_answer("").await;
    assert_eq!(app.ask(OTHER).await.source(), "semantic");
    app.settle().await;
    assert_eq!(app.provider.calls().len(), 1);
    let totals = app.totals().await;
    assert_eq!((&totals["samples"], &totals["precision"]), (&json!({}), &json!(null)));
}

#[tokio::test]
async fn a_callers_own_key_is_not_spent_on_samples() {
    let overlay = "[auth]\nmode = \"forward\"\n[namespaces.default]\nshadow = { serve = true, sample = 1.0 }";
    let app = TestApp::with(overlay).await;
    let key = [("authorization", "Bearer sk-own")];
    app.provider.answer("Use the form on the start page.");
    app.post(&chat(STORED), &key).await;
    app.settle().await;
    app.embedder.similar(OTHER, STORED, 0.97);
    assert_eq!(app.post(&chat(OTHER), &key).await.source(), "semantic");
    app.settle().await;
    assert_eq!(app.totals().await["samples"], json!({ "skipped": 1 }));
}

//! The operator's side: entries, evictions, explanations, health.

use axum::http::Method;
use refrain::cache::store::StoreError;
use serde_json::{Value, json};

use crate::support::{TestApp, chat};

async fn filled() -> TestApp {
    let app = TestApp::start().await;
    for (question, tag) in [("How do I reset my password?", "kb:it"), ("How do I book leave?", "kb:hr")] {
        app.provider.answer(question);
        app.post(&chat(question), &[("x-refrain-tags", tag)]).await;
    }
    app.settle().await;
    app
}

#[tokio::test(start_paused = true)]
async fn entries_are_listed_page_by_page_and_shown_whole() {
    let app = filled().await;
    let mut seen = Vec::new();
    let mut path = "/admin/entries?namespace=default&limit=1".to_owned();
    loop {
        let page = app.operate(Method::GET, &path, &json!(null)).await.json();
        seen.extend(
            page["entries"].as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/admin/entries?namespace=default&limit=1&cursor={next}");
    }
    assert_eq!(seen.len(), 2);
    let entry = app.operate(Method::GET, &format!("/admin/entries/{}", seen[0]), &json!(null)).await.json();
    assert_eq!(entry["reply"]["text"], entry["question"]);
    assert_eq!(entry["tenant"], "anonymous");
    let missing = "/admin/entries/00000000-0000-8000-8000-000000000000";
    assert_eq!(app.operate(Method::GET, missing, &json!(null)).await.status, 404);
    assert_eq!(app.operate(Method::GET, "/admin/entries/xyz", &json!(null)).await.status, 400);
    assert_eq!(app.operate(Method::GET, "/admin/entries?limit=0", &json!(null)).await.status, 400);
    assert_eq!(app.operate(Method::GET, "/admin/entries?nmaespace=x", &json!(null)).await.status, 400);
}

#[tokio::test(start_paused = true)]
async fn an_eviction_takes_what_it_names_and_a_dry_run_nothing() {
    let by_id = |app: &TestApp| json!({ "id": app.store.entries()[0].key });
    let app = filled().await;
    for what in [
        json!({ "namespace": "default", "tag": "kb:hr" }),
        json!({ "tag": "kb:it" }),
        by_id(&app),
        json!({ "similar_to": "How do I book leave?", "min_similarity": 0.95 }),
    ] {
        let app = filled().await;
        let what = if what.get("id").is_some() { by_id(&app) } else { what };
        let mut dry = what.clone();
        dry["dry_run"] = true.into();
        let would = app.operate(Method::POST, "/admin/evict", &dry).await;
        assert_eq!(would.json(), json!({ "exact": 1, "store": 1, "more": false, "dry_run": true }), "{what}");
        assert_eq!(app.store.entries().len(), 2);
        let went = app.operate(Method::POST, "/admin/evict", &what).await;
        assert_eq!(went.json(), json!({ "exact": 1, "store": 1, "more": false, "dry_run": false }), "{what}");
        assert_eq!(app.store.entries().len(), 1);
    }
    let app = filled().await;
    tokio::time::advance(std::time::Duration::from_secs(10)).await;
    let none = app.operate(Method::POST, "/admin/evict", &json!({ "older_than": "1m" })).await.json();
    assert_eq!(none["store"], 0);
    let both = app.operate(Method::POST, "/admin/evict", &json!({ "older_than": "5s" })).await.json();
    assert_eq!(both, json!({ "exact": 2, "store": 2, "more": false, "dry_run": false }));
}

#[tokio::test(start_paused = true)]
async fn an_eviction_of_similar_ones_says_when_there_may_be_more() {
    let app = TestApp::start().await;
    for seed in 0..1001 {
        app.provider.answer("42");
        let mut body = chat("How long is leave?");
        body["seed"] = seed.into();
        app.post(&body, &[]).await;
    }
    app.settle().await;
    let what = json!({ "similar_to": "How long is leave?", "min_similarity": 0.9 });
    for (store, more) in [(1000, true), (1, false)] {
        let went = app.operate(Method::POST, "/admin/evict", &what).await.json();
        assert_eq!((went["store"].clone(), went["more"].clone()), (json!(store), json!(more)));
    }
}

#[tokio::test(start_paused = true)]
async fn an_eviction_must_say_what() {
    let app = TestApp::start().await;
    for (what, word) in [
        (json!({}), "say what"),
        (json!({ "dry_run": true }), "say what"),
        (json!({ "namespcae": "x" }), "namespcae"),
        (json!({ "similar_to": "x" }), "min_similarity"),
        (json!({ "similar_to": "x", "min_similarity": 2 }), "0 to 1"),
        (json!({ "all": true, "tag": "x" }), "all"),
        (json!({ "older_than": "soon" }), "expected a duration"),
    ] {
        let refused = app.operate(Method::POST, "/admin/evict", &what).await;
        assert_eq!(refused.status, 400, "{what}");
        assert!(
            refused.json()["error"]["message"].as_str().unwrap().contains(word),
            "{what}: {:?}",
            refused.json()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_nobody_knows_cannot_be_evicted() {
    let app = filled().await;
    let refused = app.operate(Method::POST, "/admin/evict", &json!({ "namespace": "defualt" })).await;
    assert_eq!(refused.status, 404);
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("defualt"));
    let removed = TestApp::over(app.store.clone(), "[namespaces.other]").await;
    let gone = removed.operate(Method::POST, "/admin/evict", &json!({ "namespace": "default" })).await;
    assert_eq!(gone.json()["store"], 2);
}

#[tokio::test(start_paused = true)]
async fn explain_says_what_would_happen_and_does_nothing() {
    let app = filled().await;
    app.embedder.similar("How can I reset my password?", "How do I reset my password?", 0.95);
    app.embedder.similar("How do I reset my phone?", "How do I reset my password?", 0.85);
    for (question, outcome, why) in [
        ("How do I reset my password?", "exact", "memory"),
        ("How can I reset my password?", "semantic", "candidate 1"),
        ("How do I reset my phone?", "miss", "refused by similarity"),
        ("What is new today?", "miss", "time_bound"),
    ] {
        let explained: Value = app.operate(Method::POST, "/admin/explain", &chat(question)).await.json();
        assert_eq!(explained["outcome"], outcome, "{question}: {explained}");
        assert!(explained["why"].as_str().unwrap().contains(why), "{question}: {explained}");
    }
    let totals = app.totals().await;
    assert_eq!((totals["requests"].clone(), app.provider.calls().len()), (json!(2), 2));
}

#[tokio::test(start_paused = true)]
async fn readiness_follows_the_store() {
    let app = TestApp::start().await;
    assert_eq!(app.send(Method::GET, "/readyz", &[], "").await.status, 200);
    app.store.fail(Some(StoreError::Unavailable("gone".into())));
    let reply = app.send(Method::GET, "/readyz", &[], "").await;
    assert_eq!((reply.status.as_u16(), reply.json()["store"].clone()), (503, json!("unavailable")));
    assert_eq!(app.send(Method::GET, "/healthz", &[], "").await.status, 200);
    let evict = app.operate(Method::POST, "/admin/evict", &json!({ "tag": "x" })).await;
    assert_eq!(evict.status, 503);
    app.store.fail(None);
    assert_eq!(app.send(Method::GET, "/readyz", &[], "").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn without_a_token_only_this_machine_is_served() {
    let app = TestApp::start().await;
    let stats = app.operate(Method::GET, "/stats?since=15m", &json!(null)).await;
    assert_eq!(stats.status, 200);
    assert_eq!(app.operate(Method::GET, "/stats?since=soon", &json!(null)).await.status, 400);
    let metrics = app.operate(Method::GET, "/metrics", &json!(null)).await;
    assert!(String::from_utf8_lossy(&metrics.body).contains("refrain_requests_total"));
}

#[tokio::test(start_paused = true)]
async fn models_are_listed() {
    let app = TestApp::start().await;
    let models = app.send(Method::GET, "/v1/models", &[], "").await.json();
    let names: Vec<_> = models["data"].as_array().unwrap().iter().map(|model| model["id"].clone()).collect();
    assert_eq!(names, [json!("m"), json!("bge-small-en-v1.5")], "and the local encoder, for embeddings");
}

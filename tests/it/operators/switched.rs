//! What each switch does to requests, from the next one on.

use std::time::Duration;

use refrain::upstream::UpstreamError;
use tokio::time::advance;

use super::{TWO_TARGETS, asked, clear, is_refused_for_now, switch};
use crate::support::provider::reply;
use crate::support::{TestApp, chat, streamed};

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_off_is_not_asked() {
    let app = TestApp::start().await;
    app.provider.answer("before");
    assert_eq!(app.ask("one").await.text(), "before");
    switch(&app, "provider:fake", false).await;
    is_refused_for_now(&app.ask("two").await);
    assert_eq!(app.ask("one").await.source(), "exact", "what is kept is served all the same");
    assert_eq!(asked(&app).len(), 1);
    clear(&app, "provider:fake").await;
    app.provider.answer("after");
    assert_eq!(app.ask("two").await.text(), "after");
}

#[tokio::test(start_paused = true)]
async fn past_a_target_that_is_off_the_next_one_is_asked() {
    let app = TestApp::with(TWO_TARGETS).await;
    switch(&app, "target:fake/big", false).await;
    app.provider.answer("from the second");
    let answered = app.ask("one").await;
    assert_eq!((answered.header("x-refrain-model"), answered.header("x-refrain-attempts")), ("small", "1"));
    switch(&app, "target:fake/big", true).await;
    app.provider.answer("from the first");
    assert_eq!(app.ask("two").await.header("x-refrain-model"), "big");
    assert_eq!(asked(&app), ["small", "big"]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_off_is_not_asked_for_and_others_are() {
    let settings =
        format!("{TWO_TARGETS}[models.n]\ntargets = [{{ provider = \"fake\", model = \"big\" }}]\n");
    let app = TestApp::with(&settings).await;
    switch(&app, "model:m", false).await;
    is_refused_for_now(&app.ask("one").await);
    app.provider.answer("of another model");
    let mut other = chat("one");
    other["model"] = "n".into();
    assert_eq!(app.post(&other, &[]).await.text(), "of another model");
}

#[tokio::test(start_paused = true)]
async fn with_cache_only_hits_are_served_and_misses_refused() {
    let app = TestApp::start().await;
    app.provider.answer("kept");
    app.ask("How do I reset my password?").await;
    app.settle().await;
    app.embedder.similar("How can I reset my password?", "How do I reset my password?", 0.95);
    switch(&app, "feature:cache_only", true).await;
    assert_eq!(app.ask("How do I reset my password?").await.source(), "exact");
    assert_eq!(app.ask("How can I reset my password?").await.source(), "semantic");
    is_refused_for_now(&app.ask("How long is leave?").await);
    for directive in ["no-store", "no-cache"] {
        let reply = app.post(&chat("How do I reset my password?"), &[("cache-control", directive)]).await;
        is_refused_for_now(&reply);
    }
    assert_eq!(asked(&app).len(), 1);
    clear(&app, "feature:cache_only").await;
    app.provider.answer("30 days");
    assert_eq!(app.ask("How long is leave?").await.text(), "30 days");
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_namespace_that_is_off_go_past_the_cache() {
    let app = TestApp::with("[namespaces.hr]").await;
    app.provider.answer("kept");
    app.ask("one").await;
    switch(&app, "namespace:default", false).await;
    for answer in ["second", "third"] {
        app.provider.answer(answer);
        let reply = app.ask("one").await;
        assert_eq!(reply.text(), answer);
        assert_eq!(reply.header("cache-status"), "refrain; fwd=bypass; detail=switched_off");
    }
    let hr = [("x-refrain-namespace", "hr")];
    app.provider.answer("of hr");
    app.post(&chat("one"), &hr).await;
    assert_eq!(app.post(&chat("one"), &hr).await.source(), "exact", "another namespace is as it was");
    clear(&app, "namespace:default").await;
    assert_eq!(app.ask("one").await.text(), "kept");
}

#[tokio::test(start_paused = true)]
async fn without_semantic_only_the_same_words_hit() {
    let app = TestApp::start().await;
    app.provider.answer("kept");
    app.ask("How do I reset my password?").await;
    app.settle().await;
    app.embedder.similar("How can I reset my password?", "How do I reset my password?", 0.95);
    switch(&app, "feature:semantic", false).await;
    assert_eq!(app.ask("How do I reset my password?").await.source(), "exact");
    app.provider.answer("new");
    let asked_anew = app.ask("How can I reset my password?").await;
    assert!(asked_anew.header("cache-status").ends_with("detail=switched_off"), "{asked_anew:?}");
    clear(&app, "feature:semantic").await;
    app.embedder.similar("Can I reset my password?", "How do I reset my password?", 0.95);
    assert_eq!(app.ask("Can I reset my password?").await.source(), "semantic");
}

#[tokio::test(start_paused = true)]
async fn without_write_back_nothing_new_is_kept() {
    let app = TestApp::start().await;
    switch(&app, "feature:write_back", false).await;
    for answer in ["first", "second"] {
        app.provider.answer(answer);
        let reply = app.ask("one").await;
        assert_eq!((reply.text().as_str(), reply.source()), (answer, "upstream"));
    }
    clear(&app, "feature:write_back").await;
    app.provider.answer("third");
    app.ask("one").await;
    assert_eq!(app.ask("one").await.text(), "third");
    app.settle().await;
    assert_eq!(app.store.entries().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_stale_an_error_is_an_error() {
    let app = TestApp::with("[namespaces.default]\nttl = \"1m\"").await;
    app.provider.answer("old");
    app.ask("one").await;
    advance(Duration::from_mins(2)).await;
    let down = || UpstreamError::Connect { provider: "fake".into(), reason: "down".into() };
    app.provider.fail(down());
    assert_eq!(app.ask("one").await.source(), "stale");
    switch(&app, "feature:stale", false).await;
    app.provider.fail(down());
    assert_eq!(app.ask("one").await.status, 502);
    clear(&app, "feature:stale").await;
    app.provider.fail(down());
    assert_eq!(app.ask("one").await.source(), "stale");
}

#[tokio::test(start_paused = true)]
async fn without_hedging_no_second_call_races_a_late_one() {
    let settings = format!("{TWO_TARGETS}hedge = true\n[upstream.hedge]\nbudget = 1.0\n");
    let app = TestApp::with(&settings).await;
    let past_the_cache = [("cache-control", "no-store")];
    for _ in 0..30 {
        app.provider.answer("in time");
        app.post(&streamed("one"), &past_the_cache).await;
    }
    switch(&app, "feature:hedging", false).await;
    let late = app.provider.hold();
    let body = chat("one");
    let (answered, ()) = tokio::join!(app.post(&body, &past_the_cache), async {
        advance(Duration::from_secs(10)).await;
        late.send(Ok(reply("late"))).expect("the call waits");
    });
    assert_eq!((answered.text().as_str(), asked(&app).len()), ("late", 31));

    clear(&app, "feature:hedging").await;
    let late = app.provider.hold();
    app.provider.answer("from the second");
    assert_eq!(app.post(&body, &past_the_cache).await.text(), "from the second");
    assert_eq!(asked(&app)[31..], ["big", "small"]);
    assert!(late.is_closed(), "the late call was given up");
}

#[tokio::test(start_paused = true)]
async fn a_switch_that_is_on_as_configured_forces_nothing() {
    let app = TestApp::with("[namespaces.default]\nsemantic = false").await;
    app.provider.answer("kept");
    app.ask("How do I reset my password?").await;
    app.settle().await;
    app.embedder.similar("How can I reset my password?", "How do I reset my password?", 0.95);
    switch(&app, "feature:semantic", true).await;
    app.provider.answer("new");
    assert_eq!(app.ask("How can I reset my password?").await.source(), "upstream");
}

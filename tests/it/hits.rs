//! Miss, exact hit, semantic hit: what is served, from where, and what a caller sees of it.

use refrain::cache::embedder::EmbedError;
use refrain::cache::store::StoreError;
use refrain::chat::{ChatReply, Extra, Finish};
use serde_json::json;

use crate::support::provider::reply;
use crate::support::{TestApp, chat, streamed};

#[tokio::test(start_paused = true)]
async fn a_question_misses_once_and_then_hits_from_memory() {
    let app = TestApp::start().await;
    app.provider.answer("Forty-two.");
    let miss = app.ask("What is the answer?").await;
    assert_eq!((miss.source(), miss.text().as_str()), ("upstream", "Forty-two."));
    assert_eq!(miss.header("cache-status"), "refrain; fwd=miss; stored");
    assert_eq!(miss.header("x-refrain-provider"), "fake");
    assert_eq!(miss.header("x-refrain-model"), "big");

    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    let hit = app.ask("What is the answer?").await;
    assert_eq!((hit.source(), hit.text().as_str()), ("exact", "Forty-two."));
    assert_eq!(hit.header("cache-status"), "refrain; hit; ttl=86340; detail=exact");
    assert_eq!(hit.header("age"), "60");
    assert_eq!(hit.header("x-refrain-entry"), miss.header("x-refrain-entry"));
    assert_eq!(app.embedder.calls(), 1, "an exact hit embeds nothing");
    let calls = app.provider.calls();
    assert_eq!((calls.len(), calls[0].model.as_str()), (1, "big"));
    assert_eq!(calls[0].body, chat("What is the answer?").to_string().replace("\"m\"", "\"big\""));
}

#[tokio::test(start_paused = true)]
async fn the_same_question_in_other_words_hits_and_is_not_promoted() {
    let app = TestApp::start().await;
    app.provider.answer("Here is how.");
    app.ask("How do I reset my password?").await;
    app.settle().await;
    app.embedder.similar("How can I reset my password?", "How do I reset my password?", 0.95);
    for _ in 0..2 {
        let hit = app.ask("How can I reset my password?").await;
        assert_eq!((hit.source(), hit.text().as_str()), ("semantic", "Here is how."));
        assert_eq!(hit.header("x-refrain-similarity"), "0.9500");
        assert!(hit.header("cache-status").ends_with("detail=semantic"));
    }
    assert_eq!(app.provider.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn below_the_threshold_or_with_other_numbers_it_misses() {
    let app = TestApp::start().await;
    app.provider.answer("a");
    app.ask("How do I cook rice for 2 people?").await;
    app.settle().await;
    for (question, similarity) in [("How to boil rice?", 0.89), ("How do I cook rice for 3 people?", 0.99)] {
        app.embedder.similar(question, "How do I cook rice for 2 people?", similarity);
        app.provider.answer("another");
        assert_eq!(app.ask(question).await.source(), "upstream", "{question}");
        app.settle().await;
    }
    let refusals = app.totals().await["refusals"].clone();
    assert_eq!(refusals, json!({ "numbers": 1, "similarity": 1 }));
}

#[tokio::test(start_paused = true)]
async fn another_scope_never_hits() {
    let app = TestApp::with("[namespaces.other]").await;
    let with = |field: &str, value: serde_json::Value| {
        let mut body = chat("q");
        body[field] = value;
        body
    };
    let with_system = json!({ "model": "m", "messages": [
        { "role": "system", "content": "Be brief." }, { "role": "user", "content": "q" } ] });
    let bodies = [
        chat("q"),
        with("temperature", json!(0.5)),
        with("tools", json!([])),
        with("x", json!(1)),
        with_system,
    ];
    for body in &bodies {
        app.provider.answer("a");
        assert_eq!(app.post(body, &[]).await.source(), "upstream", "{body}");
        app.settle().await;
    }
    app.provider.answer("a");
    assert_eq!(app.post(&chat("q"), &[("x-refrain-namespace", "other")]).await.source(), "upstream");
    for body in &bodies {
        assert_eq!(app.post(body, &[]).await.source(), "exact", "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hit_equals_the_miss_it_repeats_in_both_forms() {
    let app = TestApp::start().await;
    let mut extra = Extra::default();
    extra.reply.insert("system_fingerprint".into(), json!("fp_1"));
    extra.message.insert("refusal".into(), json!(null));
    app.provider.reply(ChatReply { extra, ..reply("你好, \u{1f600} world") });
    let miss = app.ask("q").await.json();
    let hit = app.ask("q").await.json();
    assert_ne!(hit["id"], miss["id"]);
    let plain = |mut body: serde_json::Value| {
        for field in ["id", "created"] {
            body.as_object_mut().unwrap().remove(field);
        }
        body["usage"].as_object_mut().unwrap().remove("cached");
        body
    };
    assert_eq!(plain(hit), plain(miss));

    let stream = app.post(&streamed("q"), &[]).await;
    assert_eq!(stream.header("content-type"), "text/event-stream");
    assert_eq!(stream.source(), "exact");
    assert_eq!(stream.streamed_text(), "你好, \u{1f600} world");
    assert_eq!(stream.events().last().unwrap(), "[DONE]");
    assert!(!stream.events().iter().any(|data| data.contains("\"usage\":{")), "usage was not asked for");

    let mut body = streamed("q");
    body["stream_options"] = json!({ "include_usage": true });
    let events = app.post(&body, &[]).await.events();
    assert!(events[events.len() - 2].contains("\"prompt_tokens\":7"), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_complete_answer_is_not_stored() {
    let app = TestApp::start().await;
    let tool_call =
        json!([{ "id": "1", "type": "function", "function": { "name": "f", "arguments": "{}" } }]);
    let mut calls_tools = reply("I look it up");
    calls_tools.extra.message.insert("tool_calls".into(), tool_call);
    let finished = |finish| ChatReply { finish, ..reply("text") };
    for (answer, reason) in [
        (finished(Finish::Length), "cut_by_length"),
        (finished(Finish::ContentFilter), "content_filter"),
        (finished(Finish::Other("weird".into())), "finish_reason"),
        (finished(Finish::ToolCalls), "tool_calls"),
        (calls_tools, "tool_calls"),
        (reply("  "), "empty"),
    ] {
        let before = app.totals().await["write_skips"][reason].as_u64().unwrap_or(0);
        for _ in 0..2 {
            app.provider.reply(answer.clone());
            let miss = app.ask("q").await;
            assert_eq!(miss.header("cache-status"), "refrain; fwd=miss", "{answer:?}");
        }
        assert_eq!(app.totals().await["write_skips"][reason], before + 2, "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn embedder_or_store_down_is_a_miss_and_recovers() {
    let app = TestApp::start().await;
    app.embedder.fail(Some(EmbedError::Failed("gone".into())));
    app.provider.answer("a");
    let miss = app.ask("one").await;
    assert_eq!(miss.header("cache-status"), "refrain; fwd=miss; stored; detail=embed_failed");
    app.settle().await;
    app.embedder.fail(None);

    app.store.fail(Some(StoreError::TimedOut));
    app.provider.answer("b");
    assert_eq!(
        app.ask("two").await.header("cache-status"),
        "refrain; fwd=miss; stored; detail=store_timeout"
    );
    app.settle().await;
    assert_eq!(app.ask("two").await.source(), "exact", "memory does not need the store");
    app.store.fail(None);

    app.provider.answer("c");
    app.ask("three").await;
    app.settle().await;
    app.embedder.similar("three again", "three", 0.99);
    assert_eq!(app.ask("three again").await.source(), "semantic");
}

#[tokio::test(start_paused = true)]
async fn time_bound_questions_match_only_exactly() {
    let app = TestApp::start().await;
    app.provider.answer("a");
    let miss = app.ask("What is on the menu today?").await;
    assert_eq!(miss.header("cache-status"), "refrain; fwd=miss; stored; detail=time_bound");
    assert_eq!(app.ask("What is on the menu today?").await.source(), "exact");
    assert_eq!(app.embedder.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn entries_outlive_the_process() {
    let app = TestApp::start().await;
    app.provider.answer("kept");
    app.ask("q").await;
    app.settle().await;
    let again = TestApp::over(app.store.clone(), "").await;
    let hit = again.ask("q").await;
    assert_eq!((hit.source(), hit.text().as_str()), ("exact", "kept"));
}

#[tokio::test(start_paused = true)]
async fn another_model_behind_the_same_name_gives_other_answers() {
    let app = TestApp::start().await;
    app.provider.answer("by the big one");
    app.ask("q").await;
    app.settle().await;
    let moved = "[models.m]\ntargets = [{ provider = \"fake\", model = \"small\" }]";
    let again = TestApp::over(app.store.clone(), moved).await;
    again.provider.answer("by the small one");
    assert_eq!(again.ask("q").await.text(), "by the small one");
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_of_tool_calls_is_no_tool_call() {
    let app = TestApp::start().await;
    for (question, field) in [("one", json!([])), ("two", json!(null))] {
        let mut plain = reply("plain");
        plain.extra.message.insert("tool_calls".into(), field);
        app.provider.reply(plain);
        app.ask(question).await;
        assert_eq!(app.ask(question).await.source(), "exact");
    }
}

#[tokio::test(start_paused = true)]
async fn who_wants_usage_is_not_served_an_answer_without_it() {
    let app = TestApp::start().await;
    let feed = app.provider.stream();
    feed.content("a");
    feed.complete_without_usage("a");
    app.post(&streamed("q"), &[]).await;
    assert_eq!(app.post(&streamed("q"), &[]).await.source(), "exact");
    app.provider.answer("a");
    let whole = app.ask("q").await;
    assert_eq!((whole.source(), whole.json()["usage"]["total_tokens"].clone()), ("upstream", json!(12)));
    assert_eq!(app.ask("q").await.source(), "exact", "kept again, with usage");
}

#[tokio::test(start_paused = true)]
async fn a_miss_says_what_was_refused_and_why_when_that_is_wanted() {
    for (overlay, expected) in [("[server]\ndebug = true", ("0.9900", "numbers")), ("", ("", ""))] {
        let app = TestApp::with(overlay).await;
        app.provider.answer("a");
        app.ask("How do I cook rice for 2 people?").await;
        app.settle().await;
        app.embedder.similar("How do I cook rice for 3 people?", "How do I cook rice for 2 people?", 0.99);
        app.provider.answer("another");
        let miss = app.ask("How do I cook rice for 3 people?").await;
        assert_eq!(miss.source(), "upstream");
        let header = |name: &str| miss.headers.get(name).map_or("", |value| value.to_str().unwrap());
        assert_eq!((header("x-refrain-similarity"), header("x-refrain-refused")), expected);
    }
}

//! What a caller gets when no provider answers, rung by rung; and the headers by which it says how
//! long it waits and how much it matters.

use std::time::Duration;

use axum::http::{HeaderMap, Method};
use refrain::upstream::UpstreamError;
use refrain::upstream::fault::{Refusal, classify};
use serde_json::json;
use tokio::time::{Instant, advance, sleep};

use crate::support::provider::reply;
use crate::support::{Reply, START, TestApp, chat, streamed};

/// Everything the ladder has, over a model that falls back to another one.
const LADDER: &str = r#"
    [models.m]
    targets = [{ provider = "fake", model = "big" }, { provider = "rules" }]
    [namespaces.default]
    related = { limit = 2, min_similarity = 0.6, text = "Not now. Earlier:" }
"#;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn down() -> UpstreamError {
    UpstreamError::Connect { provider: "fake".into(), reason: "refused".into() }
}

fn says(status: u16, body: &'static str) -> UpstreamError {
    let fault = classify(&Refusal { status, headers: &HeaderMap::new(), body: body.as_bytes(), now: START });
    UpstreamError::Status { provider: "fake".into(), status, body: body.into(), fault }
}

/// Answers a question, to be found later.
async fn learn(app: &TestApp, question: &str, headers: &[(&str, &str)]) {
    app.provider.answer(&format!("about {question}"));
    assert_eq!(app.post(&chat(question), headers).await.source(), "upstream");
    app.settle().await;
}

/// Asks while the provider is down.
async fn ask_in_vain(app: &TestApp, question: &str, headers: &[(&str, &str)]) -> Reply {
    app.provider.fail(down());
    app.post(&chat(question), headers).await
}

const TEN: (&str, &str) = ("x-refrain-ttl", "10");

#[tokio::test(start_paused = true)]
async fn stale_answers_are_served_for_a_while_and_marked() {
    let app = TestApp::start().await;
    learn(&app, "q", &[TEN]).await;
    app.embedder.similar("q in other words", "q", 0.99);
    advance(seconds(40)).await;
    for question in ["q", "q in other words"] {
        let stale = ask_in_vain(&app, question, &[]).await;
        assert_eq!((stale.status.as_u16(), stale.text().as_str()), (200, "about q"), "{question}");
        assert_eq!((stale.source(), stale.header("age")), ("stale", "40"));
        assert_eq!(stale.header("cache-status"), "refrain; hit; ttl=-30; detail=stale");
        assert_eq!(stale.header("x-refrain-provider"), "fake");
    }
    app.provider.fail(down());
    let stale = app.post(&streamed("q"), &[]).await;
    assert_eq!((stale.source(), stale.streamed_text().as_str()), ("stale", "about q"));
    let totals = app.totals().await;
    assert_eq!(totals["degraded"], json!({ "stale": 3 }), "{totals}");
    // An hour past its time it is of no use any more.
    advance(seconds(3_600)).await;
    assert_eq!(ask_in_vain(&app, "q", &[]).await.status, 502);
    // And once somebody answers, the new answer is served.
    app.provider.answer("new");
    assert_eq!(app.ask("q").await.text(), "new");
    assert_eq!(app.ask("q").await.source(), "exact");
}

/// From the store alone, as after a restart.
#[tokio::test(start_paused = true)]
async fn stale_answers_outlive_the_process() {
    let app = TestApp::start().await;
    learn(&app, "q", &[TEN]).await;
    advance(seconds(60)).await;
    let again = TestApp::over(app.store.clone(), "").await;
    // Its clock begins anew, so the entry's time is set back with it.
    advance(seconds(60)).await;
    let stale = ask_in_vain(&again, "q", &[]).await;
    assert_eq!((stale.source(), stale.text().as_str()), ("stale", "about q"));
}

#[tokio::test(start_paused = true)]
async fn callers_say_how_stale_they_take_it() {
    let app = TestApp::with("[namespaces.default]\nstale_if_error = \"1m\"").await;
    learn(&app, "q", &[TEN]).await;
    advance(seconds(40)).await;
    for (directive, source) in [
        ("stale-if-error=60", "stale"),
        ("stale-if-error=29", ""),
        ("stale-if-error=0", ""),
        ("stale-if-error=soon", ""),
        ("max-age=3600", ""),
        ("max-age=5, stale-if-error=60", "stale"),
        ("no-cache", ""),
        ("no-cache, stale-if-error=60", "stale"),
        ("no-store", ""),
        ("no-store, stale-if-error=60", ""),
    ] {
        let told = ask_in_vain(&app, "q", &[("cache-control", directive)]).await;
        assert_eq!(told.source(), source, "{directive}");
        assert_eq!(told.status, if source.is_empty() { 502 } else { 200 }, "{directive}");
    }
    advance(seconds(40)).await;
    let told = ask_in_vain(&app, "q", &[("cache-control", "stale-if-error=9999")]).await;
    assert_eq!(told.status, 502, "the namespace allows a minute");
}

#[tokio::test(start_paused = true)]
async fn what_was_purged_is_not_even_stale() {
    for eviction in [json!({ "tag": "kb:hr" }), json!({ "namespace": "default" }), json!({ "all": true })] {
        let app = TestApp::start().await;
        learn(&app, "q", &[TEN, ("x-refrain-tags", "kb:hr")]).await;
        advance(seconds(20)).await;
        app.operate(Method::POST, "/admin/evict", &eviction).await;
        assert_eq!(ask_in_vain(&app, "q", &[]).await.status, 502, "{eviction}");
    }
}

/// Where the request itself is at fault, nothing old stands in for the answer.
#[tokio::test(start_paused = true)]
async fn a_refused_request_is_told_so() {
    let app = TestApp::with(LADDER).await;
    learn(&app, "q", &[TEN]).await;
    advance(seconds(20)).await;
    for (error, status) in [
        (says(400, r#"{"error":{"message":"bad tools"}}"#), 400),
        (says(400, r#"{"error":{"code":"content_filter","message":"no"}}"#), 400),
    ] {
        app.provider.fail(error);
        assert_eq!(app.ask("q").await.status, status);
    }
    for error in [says(529, ""), says(401, ""), says(402, ""), says(429, ""), says(404, ""), says(500, "")] {
        app.provider.fail(error.clone());
        assert_eq!(app.ask("q").await.source(), "stale", "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn related_answers_are_a_list_under_a_text_and_never_kept() {
    let app = TestApp::with(LADDER).await;
    for (other, similarity) in [("nearest", 0.85), ("near", 0.8), ("nearby", 0.7), ("far", 0.5)] {
        app.embedder.similar(other, "q", similarity);
        learn(&app, other, &[]).await;
    }
    let told = ask_in_vain(&app, "q", &[]).await;
    assert_eq!((told.status.as_u16(), told.source()), (200, "related"));
    assert_eq!(told.header("cache-status"), "refrain; fwd=miss; detail=related");
    let expected = "Not now. Earlier:\n\n**nearest**\n\nabout nearest\n\n**near**\n\nabout near";
    assert_eq!(told.text(), expected, "the two nearest above the threshold");
    app.provider.fail(down());
    let told = app.post(&streamed("q"), &[]).await;
    assert_eq!((told.source(), told.streamed_text().as_str()), ("related", expected));
    // Not for those who want nothing from the cache; and never kept.
    assert_eq!(ask_in_vain(&app, "q", &[("cache-control", "no-cache")]).await.source(), "rules");
    app.settle().await;
    assert_eq!(app.store.entries().len(), 4);
    app.provider.answer("new");
    assert_eq!(app.ask("q").await.source(), "upstream");
}

#[tokio::test(start_paused = true)]
async fn nothing_near_is_nothing_related() {
    let app = TestApp::with(LADDER).await;
    app.embedder.similar("far", "q", 0.5);
    learn(&app, "far", &[]).await;
    assert_eq!(ask_in_vain(&app, "q", &[]).await.source(), "rules");
    // Off by default.
    let app = TestApp::start().await;
    app.embedder.similar("near", "q", 0.8);
    learn(&app, "near", &[]).await;
    assert_eq!(ask_in_vain(&app, "q", &[]).await.status, 502);
}

const KEYS: &str = r#"
    [auth]
    mode = "keys"
    [auth.keys.alice]
    sha256 = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90"
    [auth.keys.bob]
    sha256 = "81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9"
    [namespaces.other]
"#;

#[tokio::test(start_paused = true)]
async fn nobody_gets_what_was_answered_to_others() {
    let app = TestApp::with(&format!("{LADDER}{KEYS}")).await;
    app.embedder.similar("near", "q", 0.8);
    let alice = ("authorization", "Bearer alice");
    let bob = ("authorization", "Bearer bob");
    learn(&app, "near", &[alice, TEN]).await;
    assert_eq!(ask_in_vain(&app, "q", &[alice]).await.source(), "related");
    assert_eq!(app.post(&chat("near"), &[alice]).await.source(), "exact");
    for question in ["q", "near"] {
        assert_eq!(ask_in_vain(&app, question, &[bob]).await.source(), "rules", "{question}");
        let elsewhere = [alice, ("x-refrain-namespace", "other")];
        assert_eq!(ask_in_vain(&app, question, &elsewhere).await.source(), "rules", "{question}");
    }
    advance(seconds(20)).await;
    assert_eq!(ask_in_vain(&app, "near", &[alice]).await.source(), "stale");
    assert_eq!(ask_in_vain(&app, "near", &[bob]).await.source(), "rules");
}

#[tokio::test(start_paused = true)]
async fn rules_are_the_last_resort_and_never_kept() {
    let app = TestApp::with(LADDER).await;
    for _ in 0..2 {
        let told = ask_in_vain(&app, "What is Refrain?", &[]).await;
        assert_eq!((told.status.as_u16(), told.source()), (200, "rules"));
        assert_eq!(told.header("cache-status"), "refrain; fwd=miss; detail=rules");
        assert!(told.text().contains("semantic cache"), "{}", told.text());
    }
    app.provider.fail(down());
    let told = app.post(&streamed("What is Refrain?"), &[]).await;
    assert_eq!(told.source(), "rules");
    assert!(told.streamed_text().contains("semantic cache"));
    app.settle().await;
    assert!(app.store.entries().is_empty());
    app.provider.answer("by a model");
    assert_eq!(app.ask("What is Refrain?").await.text(), "by a model");
    assert_eq!(app.totals().await["degraded"], json!({ "rules": 3 }));
}

#[tokio::test(start_paused = true)]
async fn what_another_model_answered_is_kept_only_if_the_namespace_says_so() {
    const ROUTE: &str = r#"
        [models.m]
        targets = [{ provider = "fake", model = "big" }, { provider = "fake", model = "small", tier = 2 }]
    "#;
    for (setting, kept) in [("", false), ("[namespaces.default]\nstore_fallbacks = true", true)] {
        let app = TestApp::with(&format!("{ROUTE}{setting}")).await;
        app.provider.fail(says(529, ""));
        app.provider.answer("small talk");
        let told = app.ask("q").await;
        assert_eq!((told.source(), told.header("x-refrain-model")), ("upstream", "small"));
        assert_eq!((told.header("x-refrain-fallback"), told.header("x-refrain-attempts")), ("true", "2"));
        app.settle().await;
        assert_eq!(app.store.entries().len(), usize::from(kept));
        if kept {
            assert_eq!(app.ask("q").await.source(), "exact");
        } else {
            app.provider.answer("great");
            let told = app.ask("q").await;
            assert_eq!((told.text().as_str(), told.header("x-refrain-fallback")), ("great", ""));
            assert_eq!(app.totals().await["write_skips"], json!({ "fallback_model": 1 }));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_caller_says_how_long_it_waits() {
    let app = TestApp::with("[upstream]\ndeadline = \"10s\"\nmax_deadline = \"10s\"").await;
    for (says, waits) in [("2s", 2_000), ("2", 2_000), ("500ms", 500), ("1h", 10_000)] {
        let _held = app.provider.hold();
        let begun = Instant::now();
        let told = app.post(&chat("q"), &[("x-refrain-deadline", says)]).await;
        let took = u64::try_from(begun.elapsed().as_millis()).unwrap();
        assert_eq!(told.status, 504, "{says}");
        assert!((waits - waits / 10 - 50..=waits + 50).contains(&took), "{says}: {took} ms");
        assert_eq!(told.header("x-should-retry"), "false");
    }
    let told = app.post(&chat("q"), &[("x-refrain-deadline", "soon")]).await;
    assert_eq!((told.status.as_u16(), &told.json()["error"]["param"]), (400, &json!("x-refrain-deadline")));
}

/// Something old in time is better than nothing at the deadline.
#[tokio::test(start_paused = true)]
async fn there_is_time_left_for_the_lower_rungs() {
    let app = TestApp::start().await;
    learn(&app, "q", &[TEN]).await;
    advance(seconds(20)).await;
    for deadline in ["1s", "100ms", "30s"] {
        let _held = app.provider.hold();
        let told = app.post(&chat("q"), &[("x-refrain-deadline", deadline)]).await;
        assert_eq!(told.source(), "stale", "{deadline}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_at_the_deadline_with_an_error_and_no_terminal() {
    let app = TestApp::start().await;
    let feed = app.provider.stream();
    feed.content("half an ans");
    let begun = Instant::now();
    let told = app.post(&streamed("q"), &[("x-refrain-deadline", "3s")]).await;
    assert!(begun.elapsed() <= Duration::from_millis(3_050), "{:?}", begun.elapsed());
    let events = told.events();
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(events[1].contains("\"error\"") && !told.body.ends_with(b"[DONE]\n\n"), "{events:?}");
    feed.cancelled().await;
    app.settle().await;
    assert!(app.store.entries().is_empty());
}

/// Nobody is asked again once the first content has left, whoever else there is.
#[tokio::test(start_paused = true)]
async fn a_break_after_the_first_content_is_told_and_not_retried() {
    const ROUTE: &str = r#"
        [models.m]
        targets = [{ provider = "fake", model = "big" }, { provider = "fake", model = "small", tier = 2 }, { provider = "rules" }]
        [upstream.retry]
    "#;
    let app = TestApp::with(ROUTE).await;
    learn(&app, "q", &[TEN]).await;
    advance(seconds(20)).await;
    let before = app.provider.calls().len();
    for error in [says(529, ""), down()] {
        let feed = app.provider.stream();
        feed.content("half an ans");
        feed.fail(error);
        let told = app.post(&streamed("q"), &[]).await;
        assert_eq!((told.status.as_u16(), told.source()), (200, "upstream"));
        let text = String::from_utf8(told.body.to_vec()).unwrap();
        assert!(
            text.contains("half an ans") && text.contains("\"error\"") && !text.contains("[DONE]"),
            "{text}"
        );
    }
    assert_eq!(app.provider.calls().len() - before, 2, "one call each");
    app.settle().await;
    assert_eq!(app.store.entries().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn batch_requests_wait_behind_interactive_ones() {
    let app = TestApp::with("[upstream.limit]\nmin_in_flight = 1\nmax_in_flight = 1").await;
    let held = app.provider.hold();
    let (one, two, three) = (chat("one"), chat("two"), chat("three"));
    let asking = async {
        tokio::join!(
            app.post(&one, &[]),
            async {
                sleep(Duration::from_millis(10)).await;
                app.post(&two, &[("x-refrain-priority", "batch")]).await
            },
            async {
                sleep(Duration::from_millis(20)).await;
                app.post(&three, &[("x-refrain-priority", "interactive")]).await
            },
        )
    };
    let releasing = async {
        sleep(Duration::from_millis(100)).await;
        app.provider.answer("second");
        app.provider.answer("third");
        held.send(Ok(reply("first"))).unwrap();
    };
    let ((one, two, three), ()) = tokio::join!(asking, releasing);
    assert_eq!([one.text(), two.text(), three.text()], ["first", "third", "second"]);
    let told = app.post(&chat("q"), &[("x-refrain-priority", "urgent")]).await;
    assert_eq!((told.status.as_u16(), &told.json()["error"]["param"]), (400, &json!("x-refrain-priority")));
}

/// Two who ask the same share a call, and neither has the other's deadline.
#[tokio::test(start_paused = true)]
async fn who_follows_keeps_its_own_deadline() {
    // The follower is in more of a hurry: it leaves, and the other gets its answer.
    let app = TestApp::start().await;
    let held = app.provider.hold();
    let body = chat("q");
    let begun = Instant::now();
    let hasty = async {
        sleep(Duration::from_millis(10)).await;
        let told = app.post(&body, &[("x-refrain-deadline", "1s")]).await;
        assert!(begun.elapsed() <= Duration::from_millis(1_060), "{:?}", begun.elapsed());
        held.send(Ok(reply("late"))).unwrap();
        told
    };
    let (patient, hasty) = tokio::join!(app.post(&body, &[("x-refrain-deadline", "30s")]), hasty);
    assert_eq!((patient.text().as_str(), hasty.status.as_u16()), ("late", 504));
    assert_eq!(app.provider.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_follows_does_not_fail_by_the_leaders_deadline() {
    let app = TestApp::start().await;
    let (_never, late) = (app.provider.hold(), app.provider.hold());
    let body = chat("q");
    let answering = async {
        sleep(seconds(5)).await;
        late.send(Ok(reply("in time"))).unwrap();
    };
    let patient = async {
        sleep(Duration::from_millis(10)).await;
        futures_util::future::join_all((0..100).map(|_| app.post(&body, &[("x-refrain-deadline", "30s")])))
            .await
    };
    let hasty = app.post(&body, &[("x-refrain-deadline", "1s")]);
    let (hasty, patient, ()) = tokio::join!(hasty, patient, answering);
    assert_eq!(hasty.status, 504);
    for told in patient {
        assert_eq!(told.text(), "in time");
    }
    assert_eq!(app.provider.calls().len(), 2, "one for the leader, and one for all who had more time");
}

/// A stream is not cut for the patient ones because the first to ask was in a hurry.
#[tokio::test(start_paused = true)]
async fn a_stream_is_not_cut_by_somebody_elses_deadline() {
    let app = TestApp::start().await;
    let (first, second) = (app.provider.stream(), app.provider.stream());
    first.content("half");
    let body = streamed("q");
    let patient = async {
        sleep(Duration::from_millis(10)).await;
        app.post(&body, &[("x-refrain-deadline", "60s")]).await
    };
    let feeding = async {
        sleep(seconds(5)).await;
        second.content("whole");
        second.complete("whole");
    };
    let (hasty, patient, ()) =
        tokio::join!(app.post(&body, &[("x-refrain-deadline", "2s")]), patient, feeding);
    assert!(hasty.events().last().unwrap().contains("\"error\""));
    assert_eq!(patient.streamed_text(), "whole");
    assert_eq!(patient.events().last().unwrap(), "[DONE]");
}

/// The follower in a hurry gets what it would have got had it been alone.
#[tokio::test(start_paused = true)]
async fn who_follows_has_the_lower_rungs_too() {
    let app = TestApp::start().await;
    learn(&app, "q", &[TEN]).await;
    advance(seconds(20)).await;
    let held = app.provider.hold();
    let body = chat("q");
    let hasty = async {
        sleep(Duration::from_millis(10)).await;
        let told = app.post(&body, &[("x-refrain-deadline", "1s")]).await;
        held.send(Ok(reply("new"))).unwrap();
        told
    };
    let (patient, hasty) = tokio::join!(app.post(&body, &[]), hasty);
    assert_eq!((patient.text().as_str(), hasty.source()), ("new", "stale"));
}

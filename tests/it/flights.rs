//! Concurrent callers who ask the same: one call upstream, and what happens when some leave.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use futures_util::future::join_all;
use http_body_util::BodyExt;
use refrain::upstream::UpstreamError;
use serde_json::json;
use tower::ServiceExt;

use crate::support::provider::reply;
use crate::support::{TestApp, chat, streamed};

/// Lets every other task run until it waits.
async fn others() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

async fn open_stream(app: &TestApp, question: &str) -> axum::response::Response {
    let request = Request::builder()
        .method(Method::POST)
        .uri("/v1/chat/completions")
        .header("host", "localhost")
        .body(Body::from(streamed(question).to_string()))
        .unwrap();
    app.callers().oneshot(request).await.unwrap()
}

async fn next_frame(response: &mut axum::response::Response) -> String {
    let frame = response.body_mut().frame().await.expect("a frame").expect("no error");
    String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_thousand_identical_misses_make_one_call() {
    let app = TestApp::start().await;
    let answer = app.provider.hold();
    let asking = join_all((0..1000).map(|index| {
        let body = if index % 2 == 0 {
            chat("q")
        } else {
            json!({
            "stream": true, "stream_options": { "include_usage": true }, "model": "m",
            "messages": [{ "role": "user", "content": "q" }] })
        };
        let app = &app;
        async move { app.post(&body, &[]).await }
    }));
    let answering = async {
        others().await;
        answer.send(Ok(reply("one"))).unwrap();
    };
    let (replies, ()) = tokio::join!(asking, answering);
    assert_eq!(app.provider.calls().len(), 1);
    for (index, reply) in replies.iter().enumerate() {
        let text = if index % 2 == 0 { reply.text() } else { reply.streamed_text() };
        assert_eq!(text, "one");
    }
    let totals = app.totals().await;
    assert_eq!((totals["misses"].clone(), totals["coalesced"].clone()), (json!(1), json!(999)));
    assert_eq!(replies[1].header("cache-status"), "refrain; fwd=miss; collapsed; stored");
}

#[tokio::test(start_paused = true)]
async fn a_late_joiner_gets_the_bytes_so_far_and_then_follows() {
    let app = TestApp::start().await;
    let feed = app.provider.stream();
    feed.content("Once ");
    let mut leader = open_stream(&app, "q").await;
    assert!(next_frame(&mut leader).await.contains("Once "));
    feed.content("upon ");
    assert!(next_frame(&mut leader).await.contains("upon "));

    let mut joiner = open_stream(&app, "q").await;
    assert!(next_frame(&mut joiner).await.contains("Once "));
    assert!(next_frame(&mut joiner).await.contains("upon "));
    feed.content("a time");
    assert!(next_frame(&mut joiner).await.contains("a time"));
    feed.complete("Once upon a time");
    assert_eq!(next_frame(&mut joiner).await, "data: [DONE]\n\n");
    assert!(next_frame(&mut leader).await.contains("a time"));
    assert_eq!(next_frame(&mut leader).await, "data: [DONE]\n\n");
    let totals = app.totals().await;
    assert_eq!(totals["tokens_saved"], totals["tokens_spent"], "one paid, one followed for nothing");
    app.settle().await;
    assert_eq!(app.ask("q").await.text(), "Once upon a time");
}

#[tokio::test(start_paused = true)]
async fn the_flight_goes_on_when_the_leader_leaves() {
    let app = TestApp::start().await;
    let feed = app.provider.stream();
    feed.content("a");
    let leader = open_stream(&app, "q").await;
    let mut joiner = open_stream(&app, "q").await;
    drop(leader);
    others().await;
    feed.content("b");
    assert!(next_frame(&mut joiner).await.contains("\"a\""));
    assert!(next_frame(&mut joiner).await.contains("\"b\""));
    feed.complete("ab");
    assert_eq!(next_frame(&mut joiner).await, "data: [DONE]\n\n");
}

#[tokio::test(start_paused = true)]
async fn the_last_to_leave_cancels_the_call() {
    let app = TestApp::start().await;
    let feed = app.provider.stream();
    feed.content("a");
    let leader = open_stream(&app, "q").await;
    let joiner = open_stream(&app, "q").await;
    drop(leader);
    drop(joiner);
    tokio::time::timeout(Duration::from_secs(1), feed.cancelled()).await.expect("the call is cancelled");
    app.settle().await;
    app.provider.answer("fresh");
    assert_eq!(app.ask("q").await.source(), "upstream", "nothing of the cancelled answer was kept");
    assert_eq!(app.totals().await["errors"], json!({ "cancelled": 1 }));
}

#[tokio::test(start_paused = true)]
async fn by_setting_an_abandoned_answer_still_fills_the_cache() {
    let app = TestApp::with("[cache]\nfill_on_disconnect = true").await;
    let feed = app.provider.stream();
    feed.content("a");
    drop(open_stream(&app, "q").await);
    feed.complete("a");
    app.settle().await;
    assert_eq!(app.ask("q").await.source(), "exact");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_ends_in_an_error_and_is_not_stored() {
    let app = TestApp::start().await;
    for cut in [true, false] {
        let feed = app.provider.stream();
        feed.content("half an ans");
        let response = open_stream(&app, "q").await;
        if cut {
            drop(feed);
        } else {
            feed.fail(UpstreamError::TimedOut { provider: "fake".into(), timer: "stall" });
        }
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(body.contains("half an ans") && body.contains("\"error\""), "{body}");
        assert!(!body.contains("[DONE]"), "{body}");
        app.settle().await;
    }
    app.provider.answer("whole");
    assert_eq!(app.ask("q").await.source(), "upstream");
}

#[tokio::test(start_paused = true)]
async fn usage_goes_only_to_those_who_asked() {
    let app = TestApp::start().await;
    let feed = app.provider.stream();
    feed.content("a");
    feed.usage();
    feed.complete("a");
    let mut body = streamed("q");
    body["stream_options"] = json!({ "include_usage": true });
    let with = app.post(&body, &[]).await;
    assert!(with.events().iter().any(|data| data.contains("prompt_tokens")));

    let feed = app.provider.stream();
    feed.content("a");
    feed.usage();
    feed.complete("a");
    let without = app.post(&streamed("other"), &[]).await;
    assert!(!without.events().iter().any(|data| data.contains("prompt_tokens")));
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_fails_all_who_follow_it_and_the_next_one_asks_again() {
    let app = TestApp::start().await;
    let answer = app.provider.hold();
    let failing = async {
        others().await;
        let error = UpstreamError::Connect { provider: "fake".into(), reason: "secret detail".into() };
        answer.send(Err(error)).unwrap();
    };
    let (first, second, ()) = tokio::join!(app.ask("q"), app.ask("q"), failing);
    for failed in [first, second] {
        assert_eq!(failed.status, 502);
        assert!(!String::from_utf8_lossy(&failed.body).contains("secret detail"));
    }
    app.provider.answer("back");
    assert_eq!(app.ask("q").await.text(), "back");
}

#[tokio::test(start_paused = true)]
async fn a_follower_with_more_time_outlives_a_leader_with_less() {
    let app = TestApp::start().await;
    let _never = app.provider.hold();
    let second = app.provider.hold();
    let answering = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        second.send(Ok(reply("late"))).unwrap();
    };
    let body = chat("q");
    let (leader, follower, ()) = tokio::join!(
        app.post(&body, &[("x-refrain-deadline", "2s")]),
        app.post(&body, &[("x-refrain-deadline", "1m")]),
        answering
    );
    assert_eq!(leader.status, 504);
    assert_eq!(follower.text(), "late");
    assert_eq!(app.provider.calls().len(), 2);
}

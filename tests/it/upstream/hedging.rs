//! A second call beside a late one: when, to whom, how often, and never where it could do harm.

use std::sync::Arc;
use std::time::Duration;

use refrain::chat::ChatRequest;
use refrain::upstream::breaker::Control;
use refrain::upstream::fault::Class;
use refrain::upstream::{Ask, Upstream};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{ask, request, seconds, served, streamed_request, target_report, upstream, whole_request};
use crate::support::streamed;
use crate::support::weather::{Callers, End, Failure, Fate, Weather, answer, overloaded, says};

const SETTINGS: &str = r#"
    [prices.big]
    input = 1.0
    output = 1.0
    [models.m]
    hedge = true
    targets = [{ provider = "a", model = "big" }, { provider = "b", model = "big" }, { provider = "c", tier = 2 }]"#;

/// When the good times end.
const CHANGE: Duration = Duration::from_secs(100);

/// Answers within a second until the change, and meets this fate after it.
fn until_then(name: &str, fate: Fate) -> Arc<Weather> {
    Arc::new(Weather::new(name, move |now| if now.at < CHANGE { answer(1_000) } else { fate.clone() }))
}

/// Two requests a second until the change: 2 % of a minute's are two hedges.
async fn settle(upstream: &Arc<Upstream>, request: ChatRequest) {
    let start = Instant::now();
    let callers = Callers { request, rate: 2, patience: seconds(60) };
    let day = callers.ask_for(98, upstream).await;
    assert!(day.success() >= 1.0, "{}", day.success());
    sleep(CHANGE.saturating_sub(start.elapsed())).await;
}

/// An upstream that has seen good times, and who serves it.
async fn settled(a: Fate, b: Fate) -> (Arc<Upstream>, [Arc<Weather>; 3]) {
    settled_with(SETTINGS, a, b, streamed_request()).await
}

async fn settled_with(
    settings: &str,
    a: Fate,
    b: Fate,
    request: ChatRequest,
) -> (Arc<Upstream>, [Arc<Weather>; 3]) {
    let providers = [until_then("a", a), until_then("b", b), Arc::new(Weather::new("c", |_| answer(100)))];
    let upstream = {
        let [a, b, c] = &providers;
        upstream(settings, &[a, b, c])
    };
    settle(&upstream, request).await;
    (upstream, providers)
}

/// Calls since the change, as the milliseconds since then and how they ended.
fn since(provider: &Weather) -> Vec<(u64, u64, Option<End>)> {
    let ms = |at: Duration| u64::try_from(at.saturating_sub(CHANGE).as_millis()).unwrap();
    let calls = provider.calls().into_iter().filter(|call| call.at >= CHANGE);
    calls.map(|call| (ms(call.at), ms(call.end.unwrap().0), Some(call.end.unwrap().1))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_late_call_is_raced_and_the_first_content_wins() {
    let (upstream, [a, b, c]) = settled(answer(30_000), answer(200)).await;
    let begun = Instant::now();
    let completion = ask(&upstream, &streamed_request(), seconds(60)).await.unwrap();
    assert_eq!((&*completion.served.provider, completion.served.attempts), ("b", 2));
    let took = begun.elapsed();
    assert!((1_150..1_300).contains(&took.as_millis()), "after the p95 of a second: {took:?}");
    let [(0, cancelled, Some(End::Cancelled))] = since(&a)[..] else { panic!("{:?}", since(&a)) };
    let [(started, answered, Some(End::Answered))] = since(&b)[..] else { panic!("{:?}", since(&b)) };
    assert!((950..1_100).contains(&started), "{started}");
    assert!(cancelled.abs_diff(answered) <= 50, "the loser is let go of at once");
    assert!(since(&c).is_empty());
    let (a, b) = (target_report(&upstream, "a").health, target_report(&upstream, "b").health);
    assert_eq!((a.last_minute.cancelled, b.last_minute.hedges_won, b.last_minute.hedges_lost), (1, 1, 0));
    let spent = a.since_start.cost_usd - 196.0 * 12e-6;
    assert!(spent > 0.0, "what the loser cost is booked: {spent}");
}

#[tokio::test(start_paused = true)]
async fn the_first_call_may_still_win() {
    let (upstream, [_, b, _]) = settled(answer(1_500), answer(5_000)).await;
    let completion = ask(&upstream, &streamed_request(), seconds(60)).await.unwrap();
    assert_eq!((&*completion.served.provider, completion.served.attempts), ("a", 2), "two calls were made");
    let [(_, cancelled, Some(End::Cancelled))] = since(&b)[..] else { panic!("{:?}", since(&b)) };
    assert!(cancelled.abs_diff(1_500) <= 50, "{cancelled}");
    assert_eq!(target_report(&upstream, "b").health.last_minute.hedges_lost, 1);
}

#[tokio::test(start_paused = true)]
async fn two_in_a_hundred_and_no_more() {
    // One in 25 is late: twice as many as may be raced.
    let a = Arc::new(Weather::new("a", |now| {
        let is_late = now.at >= CHANGE && now.nth % 25 == 0;
        answer(if is_late { 5_000 } else { 1_000 })
    }));
    let (b, c) = (until_then("b", answer(1_000)), until_then("c", answer(1_000)));
    let upstream = upstream(SETTINGS, &[&a, &b, &c]);
    settle(&upstream, streamed_request()).await;
    let callers = Callers { request: streamed_request(), rate: 10, patience: seconds(60) };
    let day = callers.ask_for(120, &upstream).await;
    assert!(day.success() >= 1.0);
    let (first, second) = (since(&a).len(), since(&b).len());
    assert_eq!(first, 1_200);
    assert!((12..=24).contains(&second), "{second} of {first}");
}

#[tokio::test(start_paused = true)]
async fn never_where_it_could_do_harm() {
    let with = |field: &str, value| {
        let mut body = streamed("q");
        body[field] = value;
        request(&body)
    };
    let tools = json!([{ "type": "function", "function": { "name": "pay" } }]);
    for (why, request) in [("tools", with("tools", tools.clone())), ("functions", with("functions", tools))] {
        let (upstream, [_, b, _]) = settled(answer(10_000), answer(200)).await;
        assert_eq!(served(&upstream, &request).await, "a", "{why}");
        assert!(since(&b).is_empty(), "{why}");
    }
    // A switch of the operator's.
    let (upstream, [_, b, _]) = settled(answer(10_000), answer(200)).await;
    let request = streamed_request();
    let ask = Ask { may_hedge: false, ..Ask::new(&request, Instant::now() + seconds(60)) };
    assert_eq!(&*upstream.send(ask).await.unwrap().served.provider, "a");
    assert!(since(&b).is_empty());
    // A model that is not hedged.
    let settings = SETTINGS.replace("hedge = true", "");
    let (upstream, [_, b, _]) =
        settled_with(&settings, answer(10_000), answer(200), streamed_request()).await;
    assert_eq!(served(&upstream, &request).await, "a");
    assert!(since(&b).is_empty());
}

/// Neither after a 429 nor after anything else: what failed once is no late call.
#[tokio::test(start_paused = true)]
async fn never_after_a_failure() {
    for failure in [says(429, ""), overloaded(), Failure::Connect] {
        let (upstream, [a, _, c]) = settled(failure.clone().now(), answer(10_000)).await;
        assert_eq!(served(&upstream, &streamed_request()).await, "b", "{failure:?}");
        assert!(!since(&a).is_empty() && since(&c).is_empty(), "{failure:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn when_both_fail_the_chain_goes_on() {
    let (upstream, [a, b, c]) = settled(says(504, "").after(3_000), says(504, "").after(500)).await;
    let completion = ask(&upstream, &streamed_request(), seconds(60)).await.unwrap();
    assert_eq!((&*completion.served.provider, completion.served.attempts), ("c", 3));
    assert_eq!((since(&a).len(), since(&b).len(), since(&c).len()), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_leaves_the_race_to_the_other() {
    let (upstream, [_, b, c]) = settled(answer(3_000), says(504, "").after(500)).await;
    assert_eq!(served(&upstream, &streamed_request()).await, "a");
    assert_eq!((since(&b).len(), since(&c).len()), (1, 0));
    let (upstream, [a, _, c]) = settled(says(504, "").after(1_500), answer(3_000)).await;
    assert_eq!(served(&upstream, &streamed_request()).await, "b");
    assert_eq!((since(&a).len(), since(&c).len()), (1, 0));
}

/// A refusal of the request itself ends the race: nobody may answer what a filter refused.
#[tokio::test(start_paused = true)]
async fn a_refusal_ends_the_race() {
    let refused = || says(400, r#"{"error":{"code":"content_filter","message":"no"}}"#);
    for (a, b) in [(refused().after(1_500), answer(5_000)), (answer(5_000), refused().after(300))] {
        let (upstream, [_, b, c]) = settled(a, b).await;
        let error = ask(&upstream, &streamed_request(), seconds(60)).await.err().unwrap();
        assert_eq!(error.fault().class, Class::ContentFilter);
        assert_eq!((since(&b).len(), since(&c).len()), (1, 0));
    }
}

/// The call that decides whether a target is back is left alone until it has decided.
#[tokio::test(start_paused = true)]
async fn a_probe_is_not_raced() {
    let (upstream, [_, b, _]) = settled(answer(3_000), answer(200)).await;
    upstream.control("a", "big", Control::ForcedOpen).unwrap();
    upstream.control("a", "big", Control::Automatic).unwrap();
    assert_eq!(served(&upstream, &streamed_request()).await, "a");
    assert!(since(&b).is_empty());
    assert_eq!(super::breaker(&upstream, "a"), "ramp");
}

/// A whole answer takes longer than the first content of a stream, and is not late for that.
#[tokio::test(start_paused = true)]
async fn whole_answers_are_late_by_their_own_measure() {
    let settings = format!("[upstream.hedge]\nbudget = 1.0\n{SETTINGS}");
    // Four to five seconds, of which streams take half a one to begin.
    let provider = |name: &str, fate: Fate| {
        Arc::new(Weather::new(name, move |now| {
            let rest = Duration::from_millis(3_500 + u64::try_from(now.nth).unwrap() * 17 % 1_000);
            let usual = Fate::Answer { first: Duration::from_millis(500), rest };
            if now.at < CHANGE { usual } else { fate.clone() }
        }))
    };
    let (a, b) = (provider("a", answer(30_000)), provider("b", answer(1_000)));
    let c = Arc::new(Weather::new("c", |_| answer(100)));
    let upstream = upstream(&settings, &[&a, &b, &c]);
    let streams = Callers { request: streamed_request(), rate: 1, patience: seconds(60) };
    let wholes = Callers { request: whole_request(), ..streams.clone() };
    tokio::join!(streams.ask_for(90, &upstream), wholes.ask_for(90, &upstream));
    assert!(b.calls().len() <= 30, "about one in twenty is late: {} of 180", b.calls().len());
    sleep(seconds(10)).await;
    let begun = Instant::now();
    assert_eq!(served(&upstream, &whole_request()).await, "b");
    assert!((5_700..6_100).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
}

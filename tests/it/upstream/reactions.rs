//! What happens after a failure of each class: who is asked next, how often, after what wait, and
//! which key rests. The table in `fault.rs`, played through the real loop.

use std::sync::Arc;
use std::time::Duration;

use refrain::upstream::breaker::Control;
use refrain::upstream::fault::Class;
use refrain::upstream::{KeyReport, Upstream, UpstreamError};
use tokio::time::{Instant, sleep};

use super::{
    ask, breaker, provider_report, request, seconds, served, streamed_request, upstream, whole_request,
};
use crate::support::chat;
use crate::support::weather::{Failure, Fate, Weather, answer, overloaded, says};

const MINUTE: Duration = Duration::from_mins(1);

fn quota() -> Failure {
    says(429, r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"quota"}}"#)
}

fn context_length() -> Failure {
    says(400, r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#)
}

fn content_filter() -> Failure {
    says(400, r#"{"error":{"code":"content_filter","message":"filtered"}}"#)
}

/// A failure of each class.
fn failure(class: Class) -> Fate {
    match class {
        Class::Capacity => overloaded().now(),
        Class::RateLimit => says(429, "").with("retry-after", "20").now(),
        Class::Quota => quota().now(),
        Class::Auth => says(401, "").now(),
        Class::InvalidRequest => says(400, r#"{"error":{"message":"bad tools"}}"#).now(),
        Class::NotServed => says(404, "").now(),
        Class::ContextLength => context_length().now(),
        Class::ContentFilter => content_filter().now(),
        Class::Timeout => says(504, "").now(),
        Class::Connect => Failure::Connect.now(),
        Class::ServerError => says(500, "").now(),
    }
}

fn always(name: &str, fate: Fate) -> Weather {
    Weather::new(name, move |_| fate.clone())
}

/// The calls to all of them in the order in which they came: who, with which key, and when in
/// milliseconds.
fn calls(providers: &[&Arc<Weather>]) -> Vec<(String, Option<String>, u128)> {
    let mut calls: Vec<_> = providers
        .iter()
        .flat_map(|provider| provider.calls().into_iter().map(|call| (provider.named().to_owned(), call)))
        .collect();
    calls.sort_by_key(|(_, call)| call.order);
    calls.into_iter().map(|(name, call)| (name, call.key, call.at.as_millis())).collect()
}

/// The same in a line: "a1 a2 b".
fn asked(providers: &[&Arc<Weather>]) -> String {
    let name = |(name, key, _): &(String, Option<String>, u128)| {
        format!("{name}{}", key.as_ref().map_or("", |key| &key[1..]))
    };
    calls(providers).iter().map(name).collect::<Vec<_>>().join(" ")
}

fn keys(upstream: &Upstream, provider: &str) -> Vec<String> {
    let in_words = |key: KeyReport| {
        let reason = key.reason.map_or(String::new(), |reason| format!(" ({reason})"));
        let wait = key.for_ms.map_or(String::new(), |ms| format!(" for {} s", ms.div_ceil(1_000)));
        format!("{}{reason}{wait}", key.state)
    };
    provider_report(upstream, provider).keys.into_iter().map(in_words).collect()
}

/// With others beside it: a (two keys) fails, b serves the same model, c another one.
#[tokio::test(start_paused = true)]
async fn who_is_asked_next() {
    const BOTH: &str =
        "targets = [{ provider = \"a\" }, { provider = \"b\" }, { provider = \"c\", tier = 2 }]";
    let others = ["ready", "ready"].map(str::to_owned).to_vec();
    let resting = |words: &str| vec![words.to_owned(), words.to_owned()];
    for (class, order, served_by, keys_then) in [
        (Class::Capacity, "a1 b", Ok("b"), others.clone()),
        (Class::RateLimit, "a1 a2 b", Ok("b"), resting("cooling for 20 s")),
        (Class::Quota, "a1 a2 b", Ok("b"), resting("quarantined (quota) for 900 s")),
        (Class::Auth, "a1 a2 b", Ok("b"), resting("quarantined (auth) for 600 s")),
        (Class::InvalidRequest, "a1", Err(Class::InvalidRequest), others.clone()),
        (Class::NotServed, "a1 b", Ok("b"), others.clone()),
        (Class::ContextLength, "a1", Err(Class::ContextLength), others.clone()),
        (Class::ContentFilter, "a1", Err(Class::ContentFilter), others.clone()),
        (Class::Timeout, "a1 b", Ok("b"), others.clone()),
        (Class::Connect, "a1 a2 b", Ok("b"), others.clone()),
        (Class::ServerError, "a1 b", Ok("b"), others.clone()),
    ] {
        let a = Arc::new(always("a", failure(class)).keys(2));
        let (b, c) = (Arc::new(always("b", answer(10))), Arc::new(always("c", answer(10))));
        let upstream = upstream(&format!("[models.m]\n{BOTH}"), &[&a, &b, &c]);
        let begun = Instant::now();
        let told = ask(&upstream, &whole_request(), MINUTE).await;
        let told = told.map(|completion| completion.served.provider.to_string());
        let told = told.map_err(|error| error.fault().class);
        assert_eq!(told, served_by.map(str::to_owned), "{class:?}");
        assert_eq!(asked(&[&a, &b, &c]), order, "{class:?}");
        assert_eq!(keys(&upstream, "a"), keys_then, "{class:?}");
        assert!(
            begun.elapsed() <= Duration::from_millis(10),
            "{class:?}: nobody waits while others are there"
        );
    }
}

/// With a smaller model behind it: the same model is tried twice where that may help.
#[tokio::test(start_paused = true)]
async fn when_another_model_is_asked() {
    for (class, order) in [
        (Class::Capacity, "a1 a1 c"),
        (Class::RateLimit, "a1 c"),
        (Class::Quota, "a1 c"),
        (Class::Auth, "a1 c"),
        (Class::InvalidRequest, "a1"),
        (Class::NotServed, "a1 c"),
        (Class::ContentFilter, "a1"),
        (Class::Timeout, "a1 c"),
        (Class::Connect, "a1 a1 c"),
        (Class::ServerError, "a1 a1 c"),
    ] {
        let (a, c) = (Arc::new(always("a", failure(class)).keys(1)), Arc::new(always("c", answer(10))));
        let route = "[models.m]\ntargets = [{ provider = \"a\" }, { provider = \"c\", tier = 2 }]";
        let upstream = upstream(route, &[&a, &c]);
        let told = ask(&upstream, &whole_request(), MINUTE).await;
        assert_eq!(asked(&[&a, &c]), order, "{class:?}");
        if let Ok(completion) = told {
            assert!(completion.served.is_fallback);
        }
    }
}

/// Two tiers of other models: each is a model of its own.
#[tokio::test(start_paused = true)]
async fn tiers_are_models_of_their_own() {
    let [a, b, c] = ["a", "b", "c"].map(|name| Arc::new(always(name, failure(Class::ServerError))));
    let route = "[models.m]\ntargets = [{ provider = \"a\" }, { provider = \"b\", tier = 2 }, { provider = \"c\", tier = 3 }]";
    let upstream = upstream(route, &[&a, &b, &c]);
    let error = ask(&upstream, &whole_request(), MINUTE).await.err().unwrap();
    assert_eq!(error.fault().class, Class::ServerError);
    assert_eq!(asked(&[&a, &b, &c]), "a a b b c c", "each twice, since none has another of its tier");
}

/// Alone: how often, and when.
#[tokio::test(start_paused = true)]
async fn how_often_one_that_is_alone_is_asked_and_when() {
    let wait = |failure: Failure, wait: &str| failure.with("retry-after", wait).now();
    let ms = |from: u128, to: u128| Some(from..=to);
    for (name, fate, second) in [
        ("capacity", overloaded().now(), ms(0, 500)),
        ("capacity, with a wait", wait(overloaded(), "3"), ms(3_000, 3_500)),
        ("capacity, with none", wait(overloaded(), "0"), ms(0, 500)),
        ("capacity, with a wait too long", wait(overloaded(), "60"), None),
        ("capacity, with a wait beyond belief", wait(overloaded(), "1e9"), None),
        ("server error", says(500, "").now(), ms(0, 500)),
        ("server error, do not retry", says(500, "").with("x-should-retry", "false").now(), None),
        ("capacity, do not retry", overloaded().with("x-should-retry", "false").now(), None),
        ("invalid, but do retry", says(400, "").with("x-should-retry", "true").now(), ms(0, 500)),
        ("timeout", says(504, "").now(), None),
        ("timeout, but do retry", says(504, "").with("x-should-retry", "true").now(), ms(0, 500)),
        ("connect", Failure::Connect.now(), ms(0, 0)),
        ("broken", Failure::Broken.now(), ms(0, 500)),
        ("rate limit", says(429, "").with("retry-after", "2").now(), ms(2_000, 2_500)),
        ("rate limit that names no time", says(429, "").now(), ms(1_000, 1_500)),
        ("rate limit beyond the deadline", says(429, "").with("retry-after", "59.5").now(), None),
        ("rate limit beyond patience", says(429, "").with("retry-after", "40").now(), None),
        ("quota", quota().now(), None),
        ("auth", says(401, "").now(), None),
        ("not served", says(404, "").now(), None),
        ("filter", content_filter().now(), None),
        ("too long", context_length().now(), None),
    ] {
        let a = Arc::new(always("a", fate).keys(1));
        let upstream = upstream("", &[&a]);
        let begun = Instant::now();
        assert!(ask(&upstream, &whole_request(), MINUTE).await.is_err());
        let calls = calls(&[&a]);
        match (second, &calls[..]) {
            (None, [_]) => {
                assert!(begun.elapsed() < Duration::from_millis(50), "{name}: {:?}", begun.elapsed());
            }
            (Some(when), [_, (_, _, at)]) => assert!(when.contains(at), "{name}: {at}"),
            _ => panic!("{name}: {calls:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_two_keys_rests_and_the_other_goes_on() {
    let a = Arc::new(
        Weather::new("a", |now| {
            if now.key == Some("k1") { says(429, "").with("retry-after", "20").now() } else { answer(10) }
        })
        .keys(2),
    );
    let upstream = upstream("", &[&a]);
    for _ in 0..4 {
        assert_eq!(served(&upstream, &whole_request()).await, "a");
    }
    assert_eq!(asked(&[&a]), "a1 a2 a2 a2 a2");
    assert_eq!(keys(&upstream, "a"), ["cooling for 20 s", "ready"]);
    sleep(seconds(20)).await;
    assert_eq!(keys(&upstream, "a"), ["ready", "ready"]);
}

/// Many keys of one account that are limited together must not use up the calls of a request.
#[tokio::test(start_paused = true)]
async fn keys_leave_a_call_for_everybody_else() {
    let a = Arc::new(always("a", failure(Class::RateLimit)).keys(20));
    let (b, c) = (Arc::new(always("b", failure(Class::Timeout))), Arc::new(always("c", answer(10))));
    let upstream = upstream("", &[&a, &b, &c]);
    assert_eq!(served(&upstream, &whole_request()).await, "c");
    assert_eq!(asked(&[&a, &b, &c]), "a1 a2 a3 a4 b c");
}

/// Another key is for what a key is limited in. A provider that is full is full for every key.
#[tokio::test(start_paused = true)]
async fn a_key_that_was_not_limited_is_not_used_up() {
    let a = Arc::new(
        Weather::new("a", |now| match now.nth {
            0 => overloaded().now(),
            1 => says(429, "").with("retry-after", "20").now(),
            _ => answer(10),
        })
        .keys(2),
    );
    let upstream = upstream("", &[&a]);
    assert_eq!(served(&upstream, &whole_request()).await, "a");
    assert_eq!(a.calls().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn too_long_for_one_goes_to_those_that_read_more() {
    let a = Arc::new(always("a", context_length().now()));
    let others =
        ["same", "unknown", "more", "most"].map(|name| Arc::new(always(name, failure(Class::Timeout))));
    let route = r#"[models.m]
        targets = [
            { provider = "a", context_window = 8000 }, { provider = "same", context_window = 8000 },
            { provider = "unknown" }, { provider = "most", context_window = 200000, tier = 2 },
            { provider = "more", context_window = 16000, tier = 2 },
        ]"#;
    let [same, unknown, more, most] = &others;
    let upstream = upstream(route, &[&a, same, unknown, more, most]);
    assert!(ask(&upstream, &whole_request(), MINUTE).await.is_err());
    assert_eq!(asked(&[&a, same, unknown, more, most]), "a most more");
}

/// A wait is worth it while nobody else could answer.
#[tokio::test(start_paused = true)]
async fn a_long_wait_goes_to_another_model() {
    let patient = overloaded().with("retry-after", "20");
    for (wait, order) in [(patient.now(), "a c"), (overloaded().with("retry-after", "2").now(), "a a c")] {
        let (a, c) = (Arc::new(always("a", wait)), Arc::new(always("c", answer(10))));
        let route = "[models.m]\ntargets = [{ provider = \"a\" }, { provider = \"c\", tier = 2 }]";
        assert_eq!(served(&upstream(route, &[&a, &c]), &whole_request()).await, "c");
        assert_eq!(asked(&[&a, &c]), order);
    }
}

/// One that is shut is no reason to give up one that failed once.
#[tokio::test(start_paused = true)]
async fn a_neighbour_that_is_shut_is_no_alternative() {
    let a = Arc::new(Weather::new("a", |now| if now.nth == 0 { says(500, "").now() } else { answer(10) }));
    let b = Arc::new(always("b", answer(10)));
    let upstream = upstream("", &[&b, &a]);
    assert_eq!(served(&upstream, &whole_request()).await, "b");
    upstream.control("b", "m", Control::Isolated).unwrap();
    assert_eq!(served(&upstream, &whole_request()).await, "a");
    assert_eq!(asked(&[&b, &a]), "b a a");
}

#[tokio::test(start_paused = true)]
async fn the_last_one_standing_is_asked_and_an_isolated_one_never() {
    let a = Arc::new(Weather::new("a", |now| if now.nth < 20 { overloaded().now() } else { answer(10) }));
    let upstream = upstream("", &[&a]);
    for nth in 0..20 {
        assert!(ask(&upstream, &whole_request(), seconds(1)).await.is_err(), "{nth}");
    }
    assert_eq!(breaker(&upstream, "a"), "open");
    assert_eq!(served(&upstream, &whole_request()).await, "a");
    for control in [Control::ForcedOpen, Control::ForcedClosed, Control::Automatic] {
        upstream.control("a", "m", control).unwrap();
        assert_eq!(served(&upstream, &whole_request()).await, "a", "{control:?}");
    }
    let before = a.calls().len();
    upstream.control("a", "m", Control::Isolated).unwrap();
    let error = ask(&upstream, &whole_request(), MINUTE).await.err().unwrap();
    assert!(matches!(error, UpstreamError::SwitchedOff { .. }), "{error}");
    assert_eq!(a.calls().len(), before);
    upstream.control("a", "m", Control::Automatic).unwrap();
    assert_eq!(served(&upstream, &whole_request()).await, "a");
}

#[tokio::test(start_paused = true)]
async fn of_two_the_isolated_one_is_passed_by() {
    let (a, b) = (Arc::new(always("a", answer(10))), Arc::new(always("b", answer(10))));
    let upstream = upstream("", &[&a, &b]);
    assert_eq!(served(&upstream, &whole_request()).await, "a");
    upstream.control("a", "m", Control::Isolated).unwrap();
    for _ in 0..10 {
        assert_eq!(served(&upstream, &whole_request()).await, "b");
    }
    assert_eq!(a.calls().len(), 1);
}

/// Who is on its ramp lets few calls in, but for those who have nowhere else to go.
#[tokio::test(start_paused = true)]
async fn one_that_comes_back_is_asked_by_those_whom_another_failed() {
    let a = Arc::new(always("a", answer(10)));
    let b = Arc::new(Weather::new("b", |now| if now.nth == 0 { answer(10) } else { says(504, "").now() }));
    let upstream = upstream("", &[&b, &a]);
    assert_eq!(served(&upstream, &whole_request()).await, "b");
    for _ in 0..2 {
        assert_eq!(served(&upstream, &whole_request()).await, "a");
    }
    for control in [Control::ForcedOpen, Control::Automatic] {
        upstream.control("a", "m", control).unwrap();
    }
    sleep(MINUTE).await;
    // The probe, and then more than the tenth that a ramp begins with.
    for _ in 0..20 {
        assert_eq!(served(&upstream, &whole_request()).await, "a");
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(breaker(&upstream, "a"), "ramp");
}

/// No more calls than the settings allow, however many could be asked.
#[tokio::test(start_paused = true)]
async fn the_number_of_calls_is_bounded() {
    for attempts in [1, 2, 6] {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let many = names.map(|name| Arc::new(always(name, failure(Class::Timeout))));
        let all: Vec<_> = many.iter().collect();
        let upstream = upstream(&format!("[upstream.retry]\nattempts = {attempts}"), &all);
        assert!(ask(&upstream, &whole_request(), MINUTE).await.is_err());
        assert_eq!(calls(&all).len(), attempts);
    }
}

/// What failed says less than what might still have worked: the caller is told when to come again.
#[tokio::test(start_paused = true)]
async fn the_error_is_the_one_that_helps_most() {
    let full = overloaded().with("retry-after", "7");
    let limited = says(429, "").with("retry-after", "40");
    for (fates, class, wait) in [
        ([full.clone(), says(404, "")], Class::Capacity, Some(7)),
        ([full.clone(), says(401, "")], Class::Capacity, Some(7)),
        ([says(401, ""), full.clone()], Class::Capacity, Some(7)),
        ([full.clone(), says(500, "")], Class::Capacity, Some(7)),
        ([limited.clone(), full.clone()], Class::Capacity, Some(7)),
        ([full.clone().with("x", ""), limited.clone()], Class::Capacity, Some(7)),
        ([says(500, ""), says(404, "")], Class::ServerError, None),
        ([says(401, ""), says(404, "")], Class::Auth, None),
        ([full, says(400, "")], Class::InvalidRequest, None),
    ] {
        let [one, other] = &fates;
        let (a, b) = (Arc::new(always("a", one.clone().now())), Arc::new(always("b", other.clone().now())));
        // Without retries, so that each speaks once.
        let upstream = upstream("[upstream.retry]\nbudget = 0.0\nfloor = 0", &[&a, &b]);
        let error = ask(&upstream, &whole_request(), MINUTE).await.err().unwrap();
        assert_eq!(error.fault().class, class, "{fates:?}: {error}");
        assert_eq!(error.fault().wait, wait.map(seconds), "{fates:?}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_end_without_an_answer_count_against_goodput() {
    let a = Arc::new(Weather::new("a", |now| match now.nth {
        0..6 => answer(10),
        6..8 => says(504, "").now(),
        _ => says(400, "").now(),
    }));
    let upstream = upstream("", &[&a]);
    for _ in 0..10 {
        let _ = ask(&upstream, &streamed_request(), MINUTE).await;
    }
    let health = super::target_report(&upstream, "a").health;
    assert_eq!(health.last_minute.goodput, Some(0.75), "the two wrong requests are nobody's fault");
}

/// The caller's own key: no other one is tried with it, and nothing is held against it.
#[tokio::test(start_paused = true)]
async fn a_callers_own_key_is_the_only_one() {
    use refrain::config::Secret;
    use refrain::upstream::Ask;
    let a = Arc::new(always("a", says(401, "").now()));
    let b = Arc::new(always("b", answer(10)));
    let upstream = upstream("", &[&a, &b]);
    let (key, request) = (Secret::new("k-own"), request(&chat("q")));
    for _ in 0..3 {
        let ask = Ask { credential: Some(&key), ..Ask::new(&request, Instant::now() + MINUTE) };
        assert_eq!(&*upstream.send(ask).await.unwrap().served.provider, "b");
    }
    assert!(a.calls().iter().chain(&b.calls()).all(|call| call.key.as_deref() == Some("k-own")));
    assert_eq!((a.calls().len(), b.calls().len()), (3, 3));
}

/// A stream that breaks after its first content is the caller's to end: nobody else is asked.
#[tokio::test(start_paused = true)]
async fn nothing_is_tried_again_after_the_first_content() {
    let first = Duration::from_millis(100);
    for fate in [
        Fate::Break { first, failure: overloaded() },
        Fate::Break { first, failure: Failure::Broken },
        Fate::Stall { first },
        Fate::Trickle { every: first },
    ] {
        let (a, b) = (Arc::new(always("a", fate.clone())), Arc::new(always("b", answer(10))));
        let upstream = upstream("", &[&a, &b]);
        assert!(ask(&upstream, &streamed_request(), seconds(120)).await.is_err(), "{fate:?}");
        assert_eq!(asked(&[&a, &b]), "a", "{fate:?}");
        assert_eq!(provider_report(&upstream, "a").in_flight, 0);
    }
}

/// Before it everything is: also what comes as the first event of a stream.
#[tokio::test(start_paused = true)]
async fn everything_is_tried_again_before_the_first_content() {
    for fate in [Fate::KeepAlive { every: Duration::from_millis(100) }, Fate::Hang, overloaded().after(500)] {
        let (a, b) = (Arc::new(always("a", fate.clone())), Arc::new(always("b", answer(10))));
        let upstream = upstream("[upstream]\nfirst_content_timeout = \"5s\"", &[&a, &b]);
        let begun = Instant::now();
        assert_eq!(served(&upstream, &streamed_request()).await, "b", "{fate:?}");
        assert!(begun.elapsed() < Duration::from_millis(5_100), "{fate:?}");
    }
}

/// A silent provider leaves time for the others.
#[tokio::test(start_paused = true)]
async fn the_first_one_does_not_use_up_all_of_the_time() {
    let (a, b) = (Arc::new(always("a", Fate::Hang)), Arc::new(always("b", answer(1_000))));
    let upstream = upstream("", &[&a, &b]);
    let completion = ask(&upstream, &streamed_request(), seconds(10)).await.unwrap();
    assert_eq!((&*completion.served.provider, completion.served.attempts), ("b", 2));
    // And one that is alone may take all of it.
    let alone = Arc::new(always("a", answer(9_000)));
    let upstream = super::upstream("", &[&alone]);
    assert_eq!(ask(&upstream, &streamed_request(), seconds(10)).await.unwrap().served.attempts, 1);
}

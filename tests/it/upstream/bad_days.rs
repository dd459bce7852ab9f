//! Long bad days: what callers see of them, and what the providers do.

use std::sync::Arc;
use std::time::Duration;

use refrain::chat::ChatRequest;
use refrain::upstream::Upstream;

use super::{breaker, seconds, streamed_request, target_report, upstream, whole_request};
use crate::support::weather::{
    Callers, Day, Failure, Fate, Moment, Weather, answer, overloaded, ratio, says, share,
};

const TWENTY_MINUTES: u32 = 20 * 60;

/// How a provider is bad.
type Bad = fn() -> Fate;

fn callers(rate: u32, patience: u64) -> Callers {
    Callers { request: streamed_request(), rate, patience: seconds(patience) }
}

fn well(name: &str) -> Arc<Weather> {
    Arc::new(Weather::new(name, |now| now.usual(500.0)))
}

/// Nobody waits longer than it wants to.
fn assert_in_time(day: &Day, patience: Duration) {
    let longest = day.0.iter().max_by_key(|story| story.took).unwrap();
    assert!(longest.took <= patience + Duration::from_millis(50), "{longest:?}");
}

#[tokio::test(start_paused = true)]
async fn bursts_of_529_at_one_of_two_providers_are_not_seen() {
    // 30 % of the time in bursts of 6 s, of 1.5 s, and at random.
    let forecasts: [fn(&mut Moment<'_>) -> bool; 3] =
        [|now| now.in_burst(6.0, 20.0), |now| now.in_burst(1.5, 5.0), |now| now.chance(0.3)];
    for fails in forecasts {
        let sky = move |now: &mut Moment<'_>| {
            if fails(now) { overloaded().after(50) } else { now.usual(500.0) }
        };
        let (a, b) = (Arc::new(Weather::new("a", sky)), well("b"));
        let upstream = upstream("", &[&a, &b]);
        let day = callers(10, 30).ask_for(TWENTY_MINUTES, &upstream).await;
        let goodput = share(day.0.iter(), |story| story.end.is_ok() && story.took < seconds(10));
        assert!(day.success() >= 0.999, "{}", day.success());
        assert!(goodput >= 0.99, "{goodput}");
        let calls = a.calls().len() + b.calls().len();
        assert!(calls * 10 <= day.0.len() * 12, "{calls} calls for {} requests", day.0.len());
        assert!(!a.calls().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_flapping_provider_beside_one_that_is_well_is_not_seen() {
    let a = Arc::new(Weather::new("a", |now| {
        if now.in_burst(5.0, 10.0) { now.usual(500.0) } else { overloaded().after(20) }
    }));
    let day = callers(10, 30).ask_for(TWENTY_MINUTES, &upstream("", &[&a, &well("b")])).await;
    assert!(day.success() >= 0.999, "{}: {:?}", day.success(), day.told());
    assert_in_time(&day, seconds(30));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_turns_slow_is_left_within_a_window_and_found_again() {
    const SLOW: std::ops::Range<u64> = 600..1_800;
    let sky = |now: &mut Moment<'_>| {
        let slow = SLOW.contains(&now.at.as_secs());
        now.usual(if slow { 5_000.0 } else { 500.0 })
    };
    let (a, b) = (Arc::new(Weather::new("a", sky)), well("b"));
    let upstream = upstream("", &[&a, &b]);
    let day = callers(10, 60).ask_for(2_700, &upstream).await;
    assert!(day.success() >= 0.999);
    let normal = day.p99(0, SLOW.start);
    for minute in (SLOW.start + 60..2_700).step_by(60) {
        let p99 = day.p99(minute, minute + 60);
        assert!(p99 < 2 * normal, "p99 is {p99:?} from second {minute} on, and {normal:?} usually");
    }
    assert!(a.calls_within(0, SLOW.start) >= 5_990, "on a good day the first one serves");
    let tried = a.calls_within(SLOW.start + 60, SLOW.end);
    assert!((1..=60).contains(&tried), "it was tried {tried} times while it was slow");
    let back = a.calls_within(SLOW.end + 420, 2_700);
    assert!(back >= 4_700, "it serves {back} of 4,800 once it is well again");
}

/// From second 60 to 660 everybody fails like this.
async fn outage(overlay: &str, fate: Bad, request: ChatRequest, patience: u64) -> Outage {
    const DOWN: std::ops::Range<u64> = 60..660;
    let sky = move |now: &mut Moment<'_>| {
        if DOWN.contains(&now.at.as_secs()) { fate() } else { now.usual(500.0) }
    };
    let (a, b) = (Arc::new(Weather::new("a", sky).keys(1)), Arc::new(Weather::new("b", sky).keys(1)));
    let upstream = upstream(overlay, &[&a, &b]);
    let callers = Callers { request, rate: 20, patience: seconds(patience) };
    let day = callers.ask_for(1_100, &upstream).await;
    assert_in_time(&day, seconds(patience));
    Outage { a, b, upstream, day }
}

struct Outage {
    a: Arc<Weather>,
    b: Arc<Weather>,
    upstream: Arc<Upstream>,
    day: Day,
}

impl Outage {
    /// Calls for a request, of those that came in this stretch of seconds.
    fn attempts(&self, from: u64, to: u64) -> f64 {
        let calls = self.a.calls_within(from, to) + self.b.calls_within(from, to);
        ratio(calls, self.day.between(from, to).count())
    }
}

#[tokio::test(start_paused = true)]
async fn with_everybody_down_each_caller_gets_an_error_and_nobody_is_hammered() {
    let fates: [(&str, Bad); 7] = [
        ("529", || overloaded().after(20)),
        ("529 with a wait", || overloaded().with("retry-after", "2").after(20)),
        ("500", || says(500, "").after(20)),
        ("connect", || Failure::Connect.now()),
        ("429", || says(429, "").with("retry-after", "5").after(20)),
        ("hangs", || Fate::Hang),
        ("only keeps alive", || Fate::KeepAlive { every: Duration::from_millis(300) }),
    ];
    for (name, fate) in fates {
        let outage = outage("", fate, streamed_request(), 10).await;
        let failed = share(outage.day.between(75, 650), |story| story.end.is_err());
        assert!(failed >= 0.999, "{name}: {failed}");
        let attempts = outage.attempts(70, 660);
        assert!(attempts <= 1.2, "{name}: {attempts} calls for a request");
        // A cool-down is 5 minutes at most, and a ramp half a minute.
        let well = share(outage.day.between(660 + 330, 1_100), |story| story.end.is_ok());
        assert!(well >= 1.0, "{name}: {well} are answered once all are well");
        // What hangs keeps its slots until the deadline.
        let soon = share(outage.day.between(670, 720), |story| story.end.is_ok());
        assert!(soon >= 0.95, "{name}: {soon} are answered in the first minute");
        for provider in ["a", "b"] {
            assert!(breaker(&outage.upstream, provider) != "open", "{name}: {provider} is open");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whole_answers_fare_no_worse() {
    let outage = outage("", || Fate::Hang, whole_request(), 10).await;
    assert!(outage.attempts(70, 660) <= 1.2, "{}", outage.attempts(70, 660));
    let well = share(outage.day.between(660 + 330, 1_100), |story| story.end.is_ok());
    assert!(well >= 1.0, "{well}");
}

/// One of two comes back: it is found although the other is still asked first.
#[tokio::test(start_paused = true)]
async fn who_comes_back_first_is_found_first() {
    const DOWN: std::ops::Range<u64> = 60..1_260;
    let sky = |now: &mut Moment<'_>| {
        if DOWN.contains(&now.at.as_secs()) { overloaded().after(20) } else { now.usual(500.0) }
    };
    let gone = |now: &mut Moment<'_>| {
        if now.at >= seconds(60) { overloaded().after(20) } else { now.usual(500.0) }
    };
    let (a, b) = (Arc::new(Weather::new("a", gone)), Arc::new(Weather::new("b", sky)));
    let day = callers(10, 30).ask_for(1_400, &upstream("", &[&a, &b])).await;
    let found = share(day.between(1_260, 1_270), |story| story.end.is_ok());
    assert!(found >= 0.9, "{found} are answered at once");
    let found = share(day.between(1_270, 1_400), |story| story.end.is_ok());
    assert!(found >= 0.99, "{found} are answered after that");
}

/// The latest calls, counted from `from` on: the most in any 50 ms, and the mean.
fn crowding(calls: &[Duration], spread: Duration) -> (usize, usize) {
    let bin = Duration::from_millis(50);
    let within = |at: &Duration| calls.iter().filter(|other| (*at..*at + bin).contains(other)).count();
    let most = calls.iter().map(within).max().unwrap_or_default();
    let bins = (spread.as_millis() / bin.as_millis()).max(1) as usize;
    (most, calls.len() / bins)
}

#[tokio::test(start_paused = true)]
async fn those_who_failed_together_do_not_come_back_together() {
    // So many that chance alone never crowds a moment threefold.
    const CALLERS: u32 = 5_000;
    // The breaker would spare the provider all of it.
    let no_breaker = "[upstream.breaker]\nmin_calls = 1000000\n[upstream.limit]\nmax_in_flight = 5000";
    let cases: [(Bad, Duration, Duration); 3] = [
        (|| overloaded().after(20), seconds(0), Duration::from_millis(500)),
        (|| overloaded().with("retry-after", "20").after(20), seconds(20), seconds(2)),
        (|| says(429, "").with("retry-after", "20").after(20), seconds(20), seconds(2)),
    ];
    for (fate, wait, spread) in cases {
        let a = Arc::new(
            Weather::new("a", move |now| if now.nth < CALLERS as usize { fate() } else { answer(100) })
                .keys(1),
        );
        let upstream = upstream(no_breaker, &[&a]);
        let crowd = Callers { request: streamed_request(), rate: 1_000_000, patience: seconds(60) };
        let day = crowd.ask_times(CALLERS, &upstream).await;
        let retries: Vec<_> = a.calls().iter().skip(CALLERS as usize).map(|call| call.at).collect();
        assert!((1_000..=1_003).contains(&retries.len()), "a fifth of them and the floor: {}", retries.len());
        assert_eq!(day.0.iter().filter(|story| story.end.is_ok()).count(), retries.len());
        assert!(*retries.iter().min().unwrap() >= wait);
        let (most, mean) = crowding(&retries, spread);
        assert!(most <= 3 * mean, "{most} in 50 ms, {mean} on average");
    }
}

/// A key rests; those who come meanwhile wait for it, and not for the same moment.
#[tokio::test(start_paused = true)]
async fn those_who_wait_for_a_key_do_not_come_together() {
    let a = Arc::new(
        Weather::new("a", |now| {
            if now.nth == 0 { says(429, "").with("retry-after", "20").now() } else { answer(100) }
        })
        .keys(1),
    );
    let upstream = upstream("[upstream.limit]\nmax_in_flight = 5000", &[&a]);
    let crowd = Callers { request: streamed_request(), rate: 100, patience: seconds(60) };
    let day = crowd.ask_for(10, &upstream).await;
    assert!(day.success() >= 0.999, "{}", day.success());
    let calls: Vec<_> = a.calls().iter().skip(1).map(|call| call.at).collect();
    assert!(calls.iter().all(|at| *at >= seconds(20)));
    let (most, mean) = crowding(&calls, seconds(2));
    assert!(most <= 3 * mean, "{most} in 50 ms, {mean} on average");
}

/// What cannot be told apart from a slow provider is told apart from an impatient caller.
#[tokio::test(start_paused = true)]
async fn impatient_callers_do_not_shut_a_provider_for_the_others() {
    for request in [streamed_request(), whole_request()] {
        let a = Arc::new(Weather::new("a", |_| Fate::Answer { first: seconds(3), rest: seconds(1) }));
        let (upstream, b) = (&mut None, well("b"));
        let upstream = &*upstream.insert(super::upstream("", &[&a, &b]));
        let patient = Callers { request: request.clone(), rate: 2, patience: seconds(60) };
        patient.ask_for(120, upstream).await;
        let hasty = Callers { request: request.clone(), rate: 2, patience: seconds(1) };
        hasty.ask_for(120, upstream).await;
        assert_eq!(breaker(upstream, "a"), "closed");
        let errors = target_report(upstream, "a").health.last_minute.errors;
        assert!(errors.is_empty(), "{errors:?}");
        let before = a.calls().len();
        let day = patient.ask_for(60, upstream).await;
        assert_eq!((day.success(), a.calls().len() - before), (1.0, 120), "it still serves first");
    }
}

//! What holds whatever the providers do and whenever callers leave.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::{join_all, poll_fn};
use futures_util::{FutureExt, StreamExt};
use proptest::prelude::*;
use refrain::chat::ChatRequest;
use refrain::upstream::breaker::Control;
use refrain::upstream::{Ask, Body, Priority, Upstream, UpstreamError};
use tokio::time::{Instant, sleep, timeout};

use super::{breaker, provider_report, request, seconds, streamed_request, upstream, whole_request};
use crate::support::streamed;
use crate::support::weather::{Failure, Fate, Weather, answer, overloaded, read, says};

/// How far behind a deadline an answer may be.
const GRACE: Duration = Duration::from_millis(50);

/// Few slots, short lines, quick breakers: so that everything happens.
const TIGHT: &str = r#"
    [upstream]
    first_content_timeout = "8s"
    stall_timeout = "5s"
    total_timeout = "40s"
    [upstream.breaker]
    min_calls = 3
    cool_down = "2s"
    max_cool_down = "4s"
    ramp = "2s"
    [upstream.limit]
    min_in_flight = 1
    max_in_flight = 2
    queue = 2
    queue_timeout = "3s"
    tenant_in_flight = 2
    [upstream.hedge]
    budget = 1.0
    min_delay = "100ms"
    [models.m]
    hedge = true
    targets = [
        { provider = "a", weight = 2 }, { provider = "b", reserved = true }, { provider = "c", tier = 2 },
    ]
"#;

/// Runs a test in paused time, for proptest.
fn paused<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(test)
}

fn fates() -> impl Strategy<Value = Fate> {
    let time = || (0_u64..9_000).prop_map(Duration::from_millis);
    let failures = prop_oneof![
        Just(overloaded()),
        Just(overloaded().with("retry-after", "1e9")),
        (0_u32..20).prop_map(|wait| overloaded().with("retry-after", wait.to_string())),
        (0_u32..20).prop_map(|wait| says(429, "").with("retry-after", wait.to_string())),
        Just(says(429, "").with("retry-after", "1e9")),
        Just(says(429, "")),
        Just(says(401, "")),
        Just(says(402, "")),
        Just(says(404, "")),
        Just(says(500, "").with("x-should-retry", "true")),
        Just(says(504, "").with("x-should-retry", "false")),
        Just(Failure::Connect),
        Just(Failure::Broken),
    ];
    let failure = || failures.clone();
    prop_oneof![
        4 => (time(), time()).prop_map(|(first, rest)| Fate::Answer { first, rest }),
        4 => (0_u64..3_000, failure()).prop_map(|(after, failure)| failure.after(after)),
        1 => Just(Fate::Hang),
        1 => (100_u64..3_000).prop_map(|ms| Fate::KeepAlive { every: Duration::from_millis(ms) }),
        1 => (100_u64..3_000).prop_map(|ms| Fate::Trickle { every: Duration::from_millis(ms) }),
        1 => time().prop_map(|first| Fate::Stall { first }),
        1 => (time(), failure()).prop_map(|(first, failure)| Fate::Break { first, failure }),
    ]
}

/// Three providers who go through their fates in turn, and are well from a moment on.
fn three(fates: &[Vec<Fate>], well_from: Duration) -> [Arc<Weather>; 3] {
    let provider = |name: &str, fates: &[Fate]| {
        let fates = fates.to_vec();
        Arc::new(
            Weather::new(name, move |now| {
                if now.at >= well_from { answer(10) } else { fates[now.nth % fates.len()].clone() }
            })
            .keys(2),
        )
    };
    [provider("a", &fates[0]), provider("b", &fates[1]), provider("c", &fates[2])]
}

/// A caller of the random kind.
#[derive(Clone, Debug)]
struct Caller {
    comes: Duration,
    patience: Duration,
    /// Leaves without a word.
    leaves: Option<Duration>,
    stream: bool,
    batch: bool,
    tenant: &'static str,
}

fn callers() -> impl Strategy<Value = Vec<Caller>> {
    let ms = |most: u64| (0..most).prop_map(Duration::from_millis);
    let caller = (ms(20_000), ms(30_000), prop::option::of(ms(20_000)), any::<[bool; 3]>());
    let caller = caller.prop_map(|(comes, patience, leaves, [stream, batch, tenant])| {
        let tenant = if tenant { "one" } else { "other" };
        Caller { comes, patience, leaves, stream, batch, tenant }
    });
    prop::collection::vec(caller, 1..16)
}

/// Asks as the caller does. Checks the deadline and the number of calls.
async fn live(upstream: &Upstream, caller: &Caller) {
    sleep(caller.comes).await;
    let request = if caller.stream { streamed_request() } else { whole_request() };
    let begun = Instant::now();
    let failures = AtomicU32::new(0);
    let count = |_: &UpstreamError| {
        failures.fetch_add(1, Ordering::SeqCst);
    };
    let ask = Ask {
        priority: if caller.batch { Priority::Batch } else { Priority::Interactive },
        tenant: caller.tenant,
        on_failure: &count,
        ..Ask::new(&request, begun + caller.patience)
    };
    let story = async {
        if let Ok(completion) = upstream.send(ask).await {
            assert!(completion.served.attempts <= 6, "{:?}", completion.served);
            assert!(begun.elapsed() <= caller.patience + GRACE, "{:?}", begun.elapsed());
            let _ = read(completion.body).await;
        }
        assert!(begun.elapsed() <= caller.patience + GRACE, "{:?} of {caller:?}", begun.elapsed());
        assert!(failures.load(Ordering::SeqCst) <= 6);
    };
    let _ = timeout(caller.leaves.unwrap_or(seconds(3_600)), story).await;
}

/// Nothing is held any more, and everybody can be asked.
async fn assert_all_given_back(upstream: &Upstream, providers: &[Arc<Weather>; 3]) {
    let report = upstream.report();
    for provider in &report.providers {
        let held = (provider.in_flight, provider.queue_depth, provider.tenants.len());
        assert_eq!(held, (0, 0, 0), "{provider:?}");
    }
    for target in &report.targets {
        assert_eq!(target.health.in_flight, 0, "{target:?}");
    }
    assert!(providers.iter().all(|provider| provider.in_flight() == 0));
    // Longer than any rest of a key or a breaker.
    sleep(seconds(2 * 3_600)).await;
    for provider in providers {
        let only = format!(r#"{{"only":["{}"]}}"#, provider.named());
        let mut body = streamed("q");
        body["provider"] = serde_json::from_str(&only).unwrap();
        // The probe, then through the ramp.
        for _ in 0..3 {
            assert_eq!(super::served(upstream, &request(&body)).await, provider.named());
            sleep(seconds(3)).await;
        }
        let state = breaker(upstream, provider.named());
        assert_eq!(state, "closed", "{}", provider.named());
        for key in provider_report(upstream, provider.named()).keys {
            assert!(key.for_ms.is_none_or(|ms| ms == 0) || key.state == "ready", "{key:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn nobody_waits_too_long_and_nothing_leaks(
        fates in prop::collection::vec(prop::collection::vec(fates(), 1..6), 3),
        callers in callers(),
    ) {
        paused(async {
            let providers = three(&fates, seconds(70));
            let upstream = upstream(TIGHT, &[&providers[0], &providers[1], &providers[2]]);
            join_all(callers.iter().map(|caller| live(&upstream, caller))).await;
            sleep(seconds(70)).await;
            assert_all_given_back(&upstream, &providers).await;
        });
    }
}

/// Polls the future so often, and drops it.
async fn polled<T>(future: impl Future<Output = T>, mut times: usize) -> Option<T> {
    let mut future = Box::pin(future);
    poll_fn(move |context| {
        if times == 0 {
            return std::task::Poll::Ready(None);
        }
        times -= 1;
        future.poll_unpin(context).map(Some)
    })
    .await
}

/// A request that meets everything: a full line, a failure, a retry, a late call and a second one,
/// a stream. Dropped at each of its awaits in turn.
#[test]
fn dropped_at_any_await_it_gives_everything_back() {
    let requests: [fn() -> ChatRequest; 2] = [streamed_request, whole_request];
    for request in requests {
        let mut most = 0;
        for times in 1.. {
            let done = paused(async move {
                let fate = |nth: usize, ms: u64| match nth % 4 {
                    0 => overloaded().after(300),
                    1 => Failure::Connect.after(100),
                    2 => says(429, "").with("retry-after", "1").after(50),
                    _ => Fate::Answer { first: Duration::from_millis(ms), rest: Duration::from_millis(500) },
                };
                let provider = |name: &str, ms| {
                    let sky = move |now: &mut crate::support::weather::Moment<'_>| {
                        if now.at >= seconds(60) { answer(10) } else { fate(now.nth, ms) }
                    };
                    Arc::new(Weather::new(name, sky).keys(2))
                };
                let providers = [provider("a", 1_500), provider("b", 1_200), provider("c", 900)];
                let upstream = upstream(TIGHT, &[&providers[0], &providers[1], &providers[2]]);
                let others = (0..6).map(|nth| {
                    let caller = Caller {
                        comes: Duration::from_millis(nth * 20),
                        patience: seconds(20),
                        leaves: None,
                        stream: nth % 2 == 0,
                        batch: false,
                        tenant: "one",
                    };
                    let upstream = &upstream;
                    async move { live(upstream, &caller).await }
                });
                let request = request();
                let ours = async {
                    sleep(Duration::from_millis(150)).await;
                    let ask = Ask { tenant: "one", ..Ask::new(&request, Instant::now() + seconds(20)) };
                    match upstream.send(ask).await {
                        Ok(completion) => drop(read(completion.body).await),
                        Err(error) => drop(error),
                    }
                };
                let (_, done) = tokio::join!(join_all(others), polled(ours, times));
                sleep(seconds(60)).await;
                assert_all_given_back(&upstream, &providers).await;
                done.is_some()
            });
            if done {
                most = times;
                break;
            }
        }
        assert!(most > 3, "it was dropped at {most} awaits");
    }
}

/// Two providers, of which the first takes so long and is to be probed.
async fn half_open(ms: u64) -> (Arc<Upstream>, Arc<Weather>) {
    let (a, b) = (Weather::new("a", move |_| answer(ms)), Weather::new("b", |_| answer(100)));
    let (a, b) = (Arc::new(a), Arc::new(b));
    let upstream = upstream("", &[&a, &b]);
    assert_eq!(super::served(&upstream, &streamed_request()).await, "a");
    for control in [Control::ForcedOpen, Control::Automatic] {
        upstream.control("a", "m", control).unwrap();
    }
    (upstream, a)
}

/// After a cool-down one request probes, whoever else comes meanwhile.
#[tokio::test(start_paused = true)]
async fn half_open_lets_one_pass() {
    let (upstream, a) = half_open(3_000).await;
    let before = a.calls().len();
    let request = streamed_request();
    let asking = (0..100).map(|nth| {
        let (upstream, request) = (&upstream, &request);
        async move {
            sleep(Duration::from_millis(nth * 20)).await;
            super::served(upstream, request).await
        }
    });
    let served = join_all(asking).await;
    assert_eq!(a.calls().len() - before, 1, "one probes");
    assert_eq!(served.iter().filter(|name| *name == "b").count(), 99);
    sleep(seconds(40)).await;
    assert_eq!(breaker(&upstream, "a"), "closed");
}

/// A probe whose caller leaves is the next caller's.
#[tokio::test(start_paused = true)]
async fn a_probe_whose_caller_leaves_is_the_next_ones() {
    let (upstream, _a) = half_open(1_000).await;
    for _ in 0..3 {
        let request = streamed_request();
        let left = timeout(Duration::from_millis(500), super::served(&upstream, &request)).await;
        assert!(left.is_err(), "it was the probe");
        assert_eq!(breaker(&upstream, "a"), "half_open");
    }
    assert_eq!(super::served(&upstream, &streamed_request()).await, "a");
    assert_eq!(breaker(&upstream, "a"), "ramp");
}

/// A caller who leaves in the middle of a stream frees its slot at once.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_left_frees_its_slot() {
    let a = Arc::new(Weather::new("a", |_| Fate::Trickle { every: Duration::from_millis(100) }));
    let upstream = upstream("", &[&a]);
    let request: ChatRequest = request(&streamed("q"));
    let completion = upstream.send(Ask::new(&request, Instant::now() + seconds(60))).await.unwrap();
    let Body::Stream(mut pieces) = completion.body else { panic!("no stream") };
    for _ in 0..3 {
        pieces.next().await.unwrap().unwrap();
    }
    assert_eq!((provider_report(&upstream, "a").in_flight, a.in_flight()), (1, 1));
    drop(pieces);
    assert_eq!((provider_report(&upstream, "a").in_flight, a.in_flight()), (0, 0));
}

use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use tokio::runtime::Builder;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{advance, sleep, timeout};

use super::Priority::{Batch, Interactive};
use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn limiter(limit: u32, room: usize) -> Limiter {
    Limiter::new(AdaptiveLimit::fixed(limit), Waiting { room, longest: 10 * SECOND })
}

/// A request that is polled by hand.
struct Request(BoxFuture<'static, Result<Slot, Shed>>);

impl Request {
    /// Not polled yet.
    fn new(limiter: &Limiter, priority: Priority, patience: Duration) -> Self {
        let (limiter, deadline) = (limiter.clone(), Instant::now() + patience);
        Self(async move { limiter.acquire(priority, deadline).await }.boxed())
    }

    /// Polled once, and in line.
    fn waiting(limiter: &Limiter, priority: Priority) -> Self {
        let mut request = Self::new(limiter, priority, 60 * SECOND);
        assert!(request.poll().is_none(), "there is a slot, or no room to wait");
        request
    }

    fn poll(&mut self) -> Option<Result<Slot, Shed>> {
        (&mut self.0).now_or_never()
    }

    fn slot(&mut self) -> Slot {
        self.poll().expect("there is an answer").expect("there is a slot")
    }

    /// The label of the error that came.
    fn shed(&mut self) -> &'static str {
        self.poll().expect("there is an answer").expect_err("there is no slot").label()
    }
}

async fn take(limiter: &Limiter) -> Slot {
    limiter.acquire(Interactive, Instant::now() + SECOND).await.expect("a slot is free")
}

/// Slots taken and requests waiting.
fn counts(limiter: &Limiter) -> (u32, usize) {
    let stats = limiter.stats(Instant::now());
    (stats.in_flight, stats.waiting)
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_comes_back_goes_to_the_oldest_and_batch_is_served_last() {
    let limiter = limiter(2, 9);
    let (first, second) = (take(&limiter).await, take(&limiter).await);
    let mut batch = Request::waiting(&limiter, Batch);
    let mut older = Request::waiting(&limiter, Interactive);
    let mut newer = Request::waiting(&limiter, Interactive);
    assert_eq!(counts(&limiter), (2, 3));
    drop(first);
    let older = older.slot();
    assert!(newer.poll().is_none() && batch.poll().is_none());
    drop(second);
    let newer = newer.slot();
    assert!(batch.poll().is_none());
    drop(newer);
    drop((batch.slot(), older));
    assert_eq!(counts(&limiter), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn without_room_the_oldest_hears_at_once_and_batch_before_interactive() {
    let (limiter, start) = (limiter(1, 2), Instant::now());
    let held = take(&limiter).await;
    let mut batch = Request::waiting(&limiter, Batch);
    let mut oldest = Request::waiting(&limiter, Interactive);
    let mut newer = Request::waiting(&limiter, Interactive);
    assert_eq!(batch.shed(), "queue_full");
    let mut newest = Request::waiting(&limiter, Interactive);
    assert_eq!(oldest.shed(), "queue_full");
    assert_eq!(Request::new(&limiter, Batch, SECOND).shed(), "queue_full", "it drives nobody out");
    assert_eq!(start.elapsed(), Duration::ZERO);
    drop(held);
    drop(newer.slot());
    drop(newest.slot());
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_the_deadline_or_than_allowed() {
    let limiter = limiter(1, 9);
    let held = take(&limiter).await;
    for (patience, waited) in [(3, 3), (30, 10), (0, 0)] {
        let start = Instant::now();
        let error = limiter.acquire(Interactive, start + patience * SECOND).await.expect_err("none is free");
        assert_eq!((error.label(), start.elapsed()), ("queue_timeout", waited * SECOND));
        assert_eq!(counts(&limiter), (1, 0));
    }
    drop(held);
    drop(take(&limiter).await);
    assert_eq!(
        Request::new(&limiter, Interactive, Duration::ZERO).shed(),
        "queue_timeout",
        "though one is free"
    );
}

#[tokio::test(start_paused = true)]
async fn who_is_shed_hears_how_long_slots_are_held() {
    let limiter = limiter(1, 0);
    let held = take(&limiter).await;
    let shed = |mut request: Request| request.poll().expect("an answer").expect_err("no slot").retry_after();
    assert_eq!(shed(Request::new(&limiter, Interactive, SECOND)), SECOND);
    advance(20 * SECOND).await;
    drop(held);
    let _held = take(&limiter).await;
    assert_eq!(shed(Request::new(&limiter, Interactive, SECOND)), 20 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn stats_show_the_line() {
    let limiter = limiter(1, 9);
    let _held = take(&limiter).await;
    let _waiting = Request::waiting(&limiter, Batch);
    advance(2 * SECOND).await;
    let oldest = Some(2 * SECOND);
    let stats = LimiterStats { limit: 1, in_flight: 1, waiting: 1, oldest };
    assert_eq!(limiter.stats(Instant::now()), stats);
}

/// Where a request can be dropped, by what has happened to it.
#[derive(Clone, Copy, Debug)]
enum Point {
    NeverPolled,
    InLine,
    GivenASlot,
    Dropped,
    TimedOut,
    GivenASlotTooLate,
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_anywhere_passes_its_slot_on() {
    use Point::{Dropped, GivenASlot, GivenASlotTooLate, InLine, NeverPolled, TimedOut};
    for point in [NeverPolled, InLine, GivenASlot, Dropped, TimedOut, GivenASlotTooLate] {
        let limiter = limiter(1, 2);
        let mut held = Some(take(&limiter).await);
        let request = match point {
            NeverPolled => Request::new(&limiter, Interactive, SECOND),
            _ => Request::waiting(&limiter, Interactive),
        };
        let mut next = Vec::new();
        match point {
            NeverPolled | InLine => {}
            GivenASlot => held = None,
            Dropped => next = [(); 2].map(|()| Request::waiting(&limiter, Interactive)).into(),
            TimedOut => advance(60 * SECOND).await,
            GivenASlotTooLate => {
                advance(60 * SECOND).await;
                held = None;
            }
        }
        if next.is_empty() && held.is_some() {
            next.push(Request::waiting(&limiter, Interactive));
        }
        drop(request);
        assert_eq!(counts(&limiter), (u32::from(held.is_some()), next.len()), "{point:?}");
        drop(held);
        for mut next in next {
            drop(next.slot());
        }
        assert_eq!(counts(&limiter), (0, 0), "{point:?}");
        drop(take(&limiter).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slot_given_to_a_request_that_is_dropped_goes_to_the_next_in_line() {
    let limiter = limiter(1, 9);
    let held = take(&limiter).await;
    let gone: Vec<_> = (0..4).map(|_| Request::waiting(&limiter, Interactive)).collect();
    let mut last = Request::waiting(&limiter, Batch);
    drop(held);
    assert!(last.poll().is_none());
    for request in gone {
        assert_eq!(counts(&limiter).0, 1);
        drop(request);
    }
    assert_eq!(counts(&limiter), (1, 0));
    drop(last.slot());
    assert_eq!(counts(&limiter), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_comes_with_the_deadline_is_not_lost() {
    let limiter = limiter(1, 9);
    let held = take(&limiter).await;
    let mut request = Request::new(&limiter, Interactive, SECOND);
    assert!(request.poll().is_none());
    advance(SECOND).await;
    drop(held);
    drop(request.poll().expect("there is an answer"));
    assert_eq!(counts(&limiter), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_higher_limit_lets_waiters_in_and_a_lower_one_holds_back() {
    let limiter = limiter(1, 9);
    let held = take(&limiter).await;
    let (mut first, mut second) =
        (Request::waiting(&limiter, Interactive), Request::waiting(&limiter, Interactive));
    limiter.0.adapt(|limit| *limit = AdaptiveLimit::fixed(2));
    let first = first.slot();
    limiter.0.adapt(|limit| *limit = AdaptiveLimit::fixed(1));
    drop(held);
    assert!(second.poll().is_none());
    drop(first);
    drop(second.slot());
}

#[tokio::test(start_paused = true)]
async fn congestion_lowers_the_limit_and_successes_at_the_limit_raise_it() {
    let limiter = Limiter::new(AdaptiveLimit::new(1, 3), Waiting { room: 9, longest: 10 * SECOND });
    let limit = || limiter.stats(Instant::now()).limit;
    let burst = [take(&limiter).await, take(&limiter).await, take(&limiter).await];
    burst.iter().for_each(Slot::refused);
    assert_eq!(limit(), 2);
    drop(burst);

    let alone = take(&limiter).await;
    for _ in 0..9 {
        alone.succeed();
    }
    assert_eq!(limit(), 2, "nobody was held back");
    let at_the_limit = take(&limiter).await;
    let mut waiting = Request::waiting(&limiter, Interactive);
    at_the_limit.succeed();
    assert!(waiting.poll().is_none());
    at_the_limit.succeed();
    assert_eq!(limit(), 3);
    drop(waiting.slot());
}

/// One caller of the model test; times in milliseconds.
#[derive(Clone, Debug)]
struct Caller {
    arrives: u64,
    batch: bool,
    /// Until its deadline.
    patience: u64,
    holds: u64,
    /// Goes away after this, waiting or not.
    leaves: u64,
    /// How its call ends: well, by congestion, or without a word.
    well: Option<bool>,
}

fn caller() -> impl Strategy<Value = Caller> {
    let (well, times) = (any::<Option<bool>>(), (0..300_u64, 0..300_u64, 0..100_u64, 0..500_u64));
    (any::<bool>(), well, times).prop_map(|(batch, well, (arrives, patience, holds, leaves))| Caller {
        arrives,
        batch,
        patience,
        holds,
        leaves,
        well,
    })
}

impl Caller {
    async fn call(self, limiter: Limiter, in_flight: &AtomicU32, limit: u32) {
        sleep(Duration::from_millis(self.arrives)).await;
        let start = Instant::now();
        let patience = Duration::from_millis(self.patience);
        let priority = if self.batch { Batch } else { Interactive };
        let slot = match limiter.acquire(priority, start + patience).await {
            Ok(slot) => slot,
            Err(shed) => {
                assert!(shed.label() == "queue_full" || start.elapsed() == patience);
                return;
            }
        };
        assert!(start.elapsed() <= patience, "later than its deadline");
        let _counted = Counted::new(in_flight, limit);
        sleep(Duration::from_millis(self.holds)).await;
        match self.well {
            Some(true) => slot.succeed(),
            Some(false) => slot.refused(),
            None => {}
        }
    }
}

struct Counted<'a>(&'a AtomicU32);

impl<'a> Counted<'a> {
    fn new(in_flight: &'a AtomicU32, limit: u32) -> Self {
        assert!(in_flight.fetch_add(1, Ordering::SeqCst) < limit, "more at once than the limit");
        Self(in_flight)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Nobody has a slot or waits, and every slot there is can be had.
async fn assert_whole(limiter: &Limiter) {
    assert_eq!(counts(limiter), (0, 0));
    let mut slots = Vec::new();
    for _ in 0..limiter.stats(Instant::now()).limit {
        slots.push(take(limiter).await);
    }
    let soon = Instant::now() + Duration::from_nanos(1);
    assert!(limiter.acquire(Interactive, soon).await.is_err());
}

proptest! {
    /// Whoever comes, waits, runs, or goes away at any time: never more at once than the limit, no
    /// wait beyond a deadline, and in the end no slot is lost.
    #[test]
    fn slots_are_neither_lost_nor_made(
        limit in 1..4_u32,
        room in 0..6_usize,
        callers in prop::collection::vec(caller(), 1..60),
    ) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime can be built").block_on(async {
            let limiter = Limiter::new(AdaptiveLimit::new(1, limit), Waiting { room, longest: SECOND });
            let in_flight = Arc::new(AtomicU32::new(0));
            let mut tasks = JoinSet::new();
            for caller in callers {
                let (limiter, in_flight) = (limiter.clone(), in_flight.clone());
                let leaves = Duration::from_millis(caller.leaves);
                tasks.spawn(async move {
                    let _ = timeout(leaves, caller.call(limiter, &in_flight, limit)).await;
                });
            }
            while let Some(done) = tasks.join_next().await {
                done.expect("no assertion failed");
            }
            assert_whole(&limiter).await;
        });
    }
}

/// On several threads the races are real: a slot may be on its way to a waiter that goes away.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_slot_is_lost_between_threads() {
    let limiter = limiter(2, 8);
    let in_flight = Arc::new(AtomicU32::new(0));
    let mut tasks = JoinSet::new();
    for patience in 0..4_000_u32 {
        let (limiter, in_flight) = (limiter.clone(), in_flight.clone());
        tasks.spawn(async move {
            let priority = if patience % 3 == 0 { Batch } else { Interactive };
            let call = async {
                let Ok(slot) = limiter.acquire(priority, Instant::now() + 60 * SECOND).await else { return };
                let counted = Counted::new(&in_flight, 2);
                yield_now().await;
                drop(counted);
                drop(slot);
            };
            let leaves = async {
                for _ in 0..patience % 7 {
                    yield_now().await;
                }
            };
            tokio::select! {
                () = call => {}
                () = leaves => {}
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no assertion failed");
    }
    assert_whole(&limiter).await;
}

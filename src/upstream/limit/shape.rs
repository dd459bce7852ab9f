//! Requests and tokens per minute, kept below what a provider allows.
//!
//! Why not run into its limit and wait: a refused call has cost its time, some providers count
//! it all the same, and the key that it went out with rests longer than was needed.
//!
//! The bucket's arithmetic (GCRA) is governor's. Its clock and its store are ours: time comes
//! from the caller, like everywhere in the policies, so paused tests drive it; and a request
//! must pass both buckets or spend from neither, which needs the level of one given back.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{NotKeyed, StateStore};
use governor::{Quota, RateLimiter};
use tokio::time::Instant;

/// Of a minute's allowance this part may come at once: ten seconds' worth. Providers count in
/// windows shorter than the minute they speak of.
const BURST: u32 = 6;

/// Keeps requests and tokens per minute. Shared by all calls; a check takes one short lock.
#[derive(Debug)]
pub struct Shaper {
    start: Instant,
    buckets: Mutex<Buckets>,
}

#[derive(Debug)]
struct Buckets {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
}

impl Shaper {
    /// At most so many requests and tokens per minute, each without a limit when `None`. A sixth
    /// of them (at least one) may come at once.
    pub fn new(requests: Option<NonZeroU32>, tokens: Option<NonZeroU32>, now: Instant) -> Self {
        let buckets = Buckets { requests: requests.map(Bucket::new), tokens: tokens.map(Bucket::new) };
        Self { start: now, buckets: Mutex::new(buckets) }
    }

    /// Takes a request of so many tokens off the allowance, or says how long until it would pass
    /// if no other came before it; then nothing is taken.
    ///
    /// A request larger than what may come at once passes when the bucket is full, and those
    /// after it wait until it is paid off: a minute at most, even for one larger than a whole
    /// minute's allowance. While smaller ones keep the bucket from filling, it is not its turn.
    pub fn check(&self, tokens: u32, now: Instant) -> Result<(), Duration> {
        let now = Nanos::from(now.saturating_duration_since(self.start));
        let buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = take(buckets.requests.as_ref(), 1, now);
        let tokens = take(buckets.tokens.as_ref(), tokens, now);
        match (requests, tokens) {
            (Ok(_), Ok(_)) => Ok(()),
            (Err(wait), Err(other)) => Err(wait.max(other)),
            (Err(wait), Ok(taken)) | (Ok(taken), Err(wait)) => {
                if let Some(taken) = taken {
                    taken.give_back();
                }
                Err(wait)
            }
        }
    }
}

/// Takes from the bucket, if there is one.
fn take(bucket: Option<&Bucket>, cells: u32, now: Nanos) -> Result<Option<Taken<'_>>, Duration> {
    bucket.map(|bucket| bucket.take(cells, now)).transpose()
}

/// One allowance. Used under a lock only: each check is several steps.
#[derive(Debug)]
struct Bucket {
    limiter: RateLimiter<NotKeyed, Level, Told, NoOpMiddleware<Nanos>>,
    /// The limiter's own.
    level: Level,
    per_minute: u32,
    burst: u32,
    /// The time for one cell.
    interval: u64,
}

impl Bucket {
    fn new(per_minute: NonZeroU32) -> Self {
        let burst = NonZeroU32::new(per_minute.get() / BURST).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_minute(per_minute).allow_burst(burst);
        let level = Level::default();
        Self {
            limiter: RateLimiter::new(quota, level.clone(), Told::default()),
            level,
            per_minute: per_minute.get(),
            burst: burst.get(),
            interval: Nanos::from(quota.replenish_interval()).as_u64(),
        }
    }

    /// Takes so many cells, or says how long until they could be taken.
    fn take(&self, cells: u32, now: Nanos) -> Result<Taken<'_>, Duration> {
        let before = self.level.get();
        let cells = cells.min(self.per_minute);
        let (at_once, later) = (cells.min(self.burst), cells.saturating_sub(self.burst));
        if let Some(at_once) = NonZeroU32::new(at_once) {
            self.limiter.clock().tell(now);
            let decision = self.limiter.check_n(at_once).expect("no more than a burst is asked for");
            decision.map_err(|refused| refused.wait_time_from(now))?;
            self.level.set(self.level.get() + u64::from(later) * self.interval);
        }
        Ok(Taken { level: &self.level, before })
    }
}

/// What was taken.
#[must_use]
struct Taken<'a> {
    level: &'a Level,
    before: u64,
}

impl Taken<'_> {
    fn give_back(self) {
        self.level.set(self.before);
    }
}

/// When the bucket will be full, in nanoseconds since the start; 0 before its first use.
#[derive(Clone, Debug, Default)]
struct Level(Arc<AtomicU64>);

impl Level {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, level: u64) {
        self.0.store(level, Ordering::Relaxed);
    }
}

impl StateStore for Level {
    type Key = NotKeyed;

    fn measure_and_replace<T, F, E>(&self, _: &NotKeyed, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let level = NonZeroU64::new(self.get()).map(|level| Nanos::from(level.get()));
        let (outcome, level) = decide(level)?;
        self.set(level.as_u64());
        Ok(outcome)
    }
}

/// The time that the caller told, since the start.
#[derive(Debug, Default)]
struct Told(AtomicU64);

impl Told {
    fn tell(&self, now: Nanos) {
        self.0.store(now.as_u64(), Ordering::Relaxed);
    }
}

impl Clock for Told {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::from(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests;

//! What is normal for a target: the p95 of its time to first content, learned in the long run.
//!
//! Models differ by a factor of fifty, so "slow" can only mean slower than its own norm. The
//! breaker feeds it while the target is healthy, and not while it is slow: a long bad day must
//! not become the norm by itself.
//!
//! A norm is made of the last one to two days, of quiet and of busy hours. What was not confirmed
//! for so long is forgotten, and with it a target that has become slower for good is accepted (at
//! once, when the operator forces the breaker closed). Histograms and not a moving average: the
//! average says nothing of the one in twenty that people wait for.

use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use super::window::{histogram, millis, p95};

/// How long half of the memory is.
const HALF: Duration = Duration::from_hours(24);

/// The p95 of fewer is just the longest of them.
const SOME: u64 = 20;

/// Enough that five lie beyond the p95: then one odd call does not move it far.
const ENOUGH: u64 = 100;

/// Within 1 %, in 8 kB.
const FIGURES: u8 = 2;

/// The norm of one target.
#[derive(Debug)]
pub(in crate::upstream) struct Baseline {
    /// The half before, and the running one.
    all: Histogram<u32>,
    running: Histogram<u32>,
    since: Instant,
}

impl Baseline {
    /// Nothing is known.
    pub(in crate::upstream) fn new(now: Instant) -> Self {
        Self { all: histogram(FIGURES), running: histogram(FIGURES), since: now }
    }

    /// A healthy call had its first content after this time.
    pub(in crate::upstream) fn learn(&mut self, after: Duration, now: Instant) {
        self.forget_old(now);
        self.all.saturating_record(millis(after));
        self.running.saturating_record(millis(after));
    }

    /// The p95, of at least 20 calls.
    pub(in crate::upstream) fn p95(&mut self, now: Instant) -> Option<Duration> {
        self.p95_of_at_least(SOME, now)
    }

    /// The p95 as something to judge by: of at least 100 calls.
    pub(super) fn settled_p95(&mut self, now: Instant) -> Option<Duration> {
        self.p95_of_at_least(ENOUGH, now)
    }

    fn p95_of_at_least(&mut self, samples: u64, now: Instant) -> Option<Duration> {
        self.forget_old(now);
        p95(&self.all).filter(|_| self.all.len() >= samples)
    }

    fn forget_old(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.since);
        if age >= 2 * HALF {
            *self = Self::new(now);
        } else if age >= HALF {
            self.all = std::mem::replace(&mut self.running, histogram(FIGURES));
            self.since += HALF;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn learn(baseline: &mut Baseline, calls: u64, after: Duration, now: Instant) {
        (0..calls).for_each(|_| baseline.learn(after, now));
    }

    #[test]
    fn little_is_not_enough() {
        let now = Instant::now();
        let mut baseline = Baseline::new(now);
        learn(&mut baseline, 19, ms(200), now);
        assert_eq!(baseline.p95(now), None);
        learn(&mut baseline, 1, ms(200), now);
        assert_eq!((baseline.p95(now), baseline.settled_p95(now)), (Some(ms(200)), None));
        learn(&mut baseline, 80, ms(200), now);
        assert_eq!(baseline.settled_p95(now), Some(ms(200)));
    }

    #[test]
    fn five_of_a_hundred_do_not_move_it() {
        let now = Instant::now();
        let mut baseline = Baseline::new(now);
        learn(&mut baseline, 95, ms(200), now);
        learn(&mut baseline, 5, ms(60_000), now);
        assert_eq!(baseline.p95(now), Some(ms(200)));
    }

    #[test]
    fn a_new_norm_replaces_the_old_one_within_two_days() {
        let start = Instant::now();
        let mut baseline = Baseline::new(start);
        learn(&mut baseline, 1_000, ms(200), start);
        for hour in 1..=48 {
            assert_eq!(baseline.settled_p95(start + HOUR * (hour - 1)), Some(ms(200)));
            learn(&mut baseline, 10, ms(100), start + HOUR * hour);
        }
        assert_eq!(baseline.settled_p95(start + HOUR * 48), Some(ms(100)));
    }

    #[test]
    fn a_night_and_a_quiet_day_are_bridged() {
        let start = Instant::now();
        let mut baseline = Baseline::new(start);
        learn(&mut baseline, 1_000, ms(200), start + HOUR * 9);
        assert_eq!(baseline.settled_p95(start + HOUR * 47), Some(ms(200)));
        assert_eq!(baseline.p95(start + HOUR * 48), None);
    }

    #[test]
    fn a_long_silence_forgets_at_once() {
        let start = Instant::now();
        let mut baseline = Baseline::new(start);
        learn(&mut baseline, 1_000, ms(200), start);
        assert_eq!(baseline.p95(start + HOUR * 500), None);
        learn(&mut baseline, 100, ms(100), start + HOUR * 500);
        assert_eq!(baseline.settled_p95(start + HOUR * 510), Some(ms(100)));
    }
}

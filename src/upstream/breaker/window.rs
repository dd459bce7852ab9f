//! What a target's latest calls came to.
//!
//! A call is counted here when its outcome is known; until then it counts as under way, however
//! long that is. So the rate is one of calls, each counted once, and a slow call neither drops out
//! of the denominator nor fails against a window that has forgotten its start.

use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use crate::upstream::slices::Slices;

/// Of a minute, slices of 5 s.
const SLICES: u32 = 12;

/// Longer times count as this, in milliseconds: ten minutes.
const LONGEST: u64 = 600_000;

/// Within 3 %, in about a kilobyte a slice. Why a histogram and not the latest few hundred
/// times: at a high rate those cover two seconds, and their p95 trembles about its limit.
const FIGURES: u8 = 1;

#[derive(Clone, Debug)]
struct Tally {
    calls: u32,
    failed: u32,
    first_content: Histogram<u32>,
}

impl Default for Tally {
    fn default() -> Self {
        Self { calls: 0, failed: 0, first_content: histogram(FIGURES) }
    }
}

/// Counts over a sliding window; constant in memory.
#[derive(Debug)]
pub(super) struct Window {
    /// The sum of the slices.
    total: Tally,
    slices: Slices<Tally>,
}

impl Window {
    /// An empty window of this length.
    pub(super) fn new(length: Duration, now: Instant) -> Self {
        Self { total: Tally::default(), slices: Slices::new(length, SLICES, now) }
    }

    /// Forgets what is too old by now. All other calls are as of the latest roll.
    pub(super) fn roll(&mut self, now: Instant) {
        let total = &mut self.total;
        self.slices.roll(now, |old| {
            total.calls -= old.calls;
            total.failed -= old.failed;
            total.first_content.subtract(old.first_content).expect("a slice is part of the total");
        });
    }

    /// A call failed.
    pub(super) fn add_failed(&mut self) {
        for tally in [&mut self.total, self.slices.current()] {
            tally.calls += 1;
            tally.failed += 1;
        }
    }

    /// A call was answered, whenever that was.
    pub(super) fn add_answered(&mut self) {
        for tally in [&mut self.total, self.slices.current()] {
            tally.calls += 1;
        }
    }

    /// A call had its first content after this time.
    pub(super) fn add_content(&mut self, after: Duration) {
        for tally in [&mut self.total, self.slices.current()] {
            tally.calls += 1;
            tally.first_content.saturating_record(millis(after));
        }
    }

    /// How many calls have an outcome.
    pub(super) fn calls(&self) -> u32 {
        self.total.calls
    }

    /// How many of them failed.
    pub(super) fn failed(&self) -> u32 {
        self.total.failed
    }

    /// 95 of 100 first contents came within this time; with fewer than 20, all of them.
    pub(super) fn p95(&self) -> Option<Duration> {
        p95(&self.total.first_content)
    }
}

/// An empty histogram of milliseconds.
pub(super) fn histogram(figures: u8) -> Histogram<u32> {
    Histogram::new_with_bounds(1, LONGEST, figures).expect("the bounds fit the figures")
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The middle of the cell that holds the p95, so that coarse and fine histograms are not biased
/// against each other.
pub(super) fn p95(histogram: &Histogram<u32>) -> Option<Duration> {
    let middle = || histogram.median_equivalent(histogram.value_at_quantile(0.95));
    (!histogram.is_empty()).then(|| Duration::from_millis(middle()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn counts_for_a_minute() {
        let start = Instant::now();
        let mut window = Window::new(seconds(60), start);
        window.add_failed();
        window.add_content(seconds(2));
        window.roll(start + seconds(30));
        window.add_answered();
        assert_eq!((window.failed(), window.calls()), (1, 3));
        window.roll(start + seconds(60));
        assert_eq!((window.failed(), window.calls(), window.p95()), (0, 1, None));
        window.roll(start + seconds(90));
        assert_eq!((window.failed(), window.calls()), (0, 0));
    }

    #[test]
    fn p95_is_within_three_percent() {
        let mut window = Window::new(seconds(60), Instant::now());
        for ms in 1..=10_000 {
            window.add_content(Duration::from_millis(ms));
        }
        let p95 = window.p95().expect("there are some");
        assert!(p95.abs_diff(seconds(19) / 2) < seconds(19) * 3 / 200, "{p95:?}");
    }

    #[test]
    fn no_time_is_too_short_or_too_long() {
        let start = Instant::now();
        let mut window = Window::new(seconds(60), start);
        window.add_content(Duration::ZERO);
        window.add_content(Duration::MAX);
        assert!(window.p95() > Some(seconds(570)));
        window.roll(start + seconds(60));
        assert_eq!(window.calls(), 0);
    }
}

//! The latest stretch of time, in equal slices: what sliding windows are made of.
//!
//! Exact counts in a ring of slices, and no decaying average: an average weighs a sample by the
//! time since the one before, so a tight burst of failures can hide in it. Memory is the number
//! of slices, whatever the traffic.

use std::time::Duration;

use tokio::time::Instant;

/// What was counted lately. Covers the running slice and those before it: between
/// `(slices - 1) / slices` of the span and all of it.
#[derive(Clone, Debug)]
pub(super) struct Slices<T> {
    width: Duration,
    ring: Vec<T>,
    /// The running slice, and when it began.
    current: usize,
    since: Instant,
}

impl<T: Default> Slices<T> {
    /// Empty slices that cover `span`, at least one of at least a millisecond each.
    pub(super) fn new(span: Duration, slices: u32, now: Instant) -> Self {
        let count = slices.max(1);
        Self {
            width: (span / count).max(Duration::from_millis(1)),
            ring: (0..count).map(|_| T::default()).collect(),
            current: 0,
            since: now,
        }
    }

    /// Moves on to `now`, and hands over what is too old by then. A `now` before the running
    /// slice, as of callers that raced for a lock, counts as in it.
    pub(super) fn roll(&mut self, now: Instant, mut leave: impl FnMut(T)) {
        for _ in 0..self.ring.len() {
            if now.saturating_duration_since(self.since) < self.width {
                return;
            }
            self.since += self.width;
            self.current = (self.current + 1) % self.ring.len();
            leave(std::mem::take(&mut self.ring[self.current]));
        }
        // All slices are empty now: where the next one begins does not matter any more.
        self.since = self.since.max(now);
    }

    /// The slice that runs at the latest [`roll`](Self::roll).
    pub(super) fn current(&mut self) -> &mut T {
        &mut self.ring[self.current]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_count_leaves_when_its_slice_comes_round_again() {
        let start = Instant::now();
        let mut slices = Slices::<u32>::new(seconds(60), 12, start);
        *slices.current() += 7;
        let mut gone = 0;
        slices.roll(start + seconds(59), |count| gone += count);
        assert_eq!(gone, 0);
        slices.roll(start + seconds(60), |count| gone += count);
        assert_eq!(gone, 7);
    }

    #[test]
    fn a_long_silence_empties_all() {
        let start = Instant::now();
        let mut slices = Slices::<u32>::new(seconds(60), 12, start);
        *slices.current() += 1;
        slices.roll(start + seconds(31), |_| {});
        *slices.current() += 1;
        let mut gone = 0;
        slices.roll(start + seconds(100_000), |count| gone += count);
        assert_eq!(gone, 2);
        *slices.current() += 1;
        slices.roll(start + seconds(100_054), |count| gone += count);
        assert_eq!(gone, 2);
        slices.roll(start + seconds(100_060), |count| gone += count);
        assert_eq!(gone, 3);
    }

    #[test]
    fn time_that_runs_back_counts_as_now() {
        let start = Instant::now();
        let mut slices = Slices::<u32>::new(seconds(60), 12, start + seconds(30));
        *slices.current() += 1;
        slices.roll(start, |_| panic!("it is not old"));
    }

    #[test]
    fn no_span_is_too_short() {
        let start = Instant::now();
        let mut slices = Slices::<u32>::new(Duration::ZERO, 0, start);
        *slices.current() += 1;
        let mut gone = 0;
        slices.roll(start + Duration::from_millis(1), |count| gone += count);
        assert_eq!(gone, 1);
    }

    proptest! {
        /// Everything leaves once, not before eleven twelfths of the span and not after all of it.
        #[test]
        fn each_count_stays_for_about_the_span(steps in prop::collection::vec(0u64..200, 1..200)) {
            let start = Instant::now();
            let mut slices = Slices::<Vec<Instant>>::new(Duration::from_millis(120), 12, start);
            let (mut now, mut gone) = (start, Vec::new());
            for step in &steps {
                now += Duration::from_millis(*step);
                slices.roll(now, |left| gone.extend(left.into_iter().map(|at| (at, now))));
                slices.current().push(now);
            }
            prop_assert!(gone.iter().all(|(at, left)| *left - *at > Duration::from_millis(110)));
            let end = now + Duration::from_millis(120);
            slices.roll(end, |left| gone.extend(left.into_iter().map(|at| (at, end))));
            prop_assert_eq!(gone.len(), steps.len());
        }
    }
}

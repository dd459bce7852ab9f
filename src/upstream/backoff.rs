//! When to try again.
//!
//! Clients that failed together must not come back together, so a delay is drawn from the whole
//! stretch between nothing and the exponential bound ("full jitter":
//! <https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/>). A provider that
//! names a wait knows better: it is never asked earlier. And no caller waits for a retry that
//! could not answer before the deadline: then it is time to move on.

use std::time::Duration;

/// How long to wait before a retry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The bound of the first delay; each further one doubles it.
    pub base: Duration,
    /// No bound is above.
    pub cap: Duration,
    /// Of the time that is left, what the call after the wait needs.
    pub reserve: Duration,
}

impl Default for Backoff {
    /// Half a second, doubling to 8 s, as the providers' own clients do; a second for the call.
    fn default() -> Self {
        Self {
            base: Duration::from_millis(500),
            cap: Duration::from_secs(8),
            reserve: Duration::from_secs(1),
        }
    }
}

impl Backoff {
    /// `jitter × min(cap, base × 2^attempt)`; `attempt` is 0 for the first retry, `jitter` a
    /// number in 0..1 (what lies outside counts as the nearer end).
    pub fn delay(&self, attempt: u32, jitter: f64) -> Duration {
        let bound = self.base.saturating_mul(2_u32.saturating_pow(attempt)).min(self.cap);
        scaled(bound, jitter)
    }

    /// How long to wait before retry number `attempt` when `left` is left of the deadline, or
    /// `None` when neither the wait nor the call after it would fit: move on at once.
    ///
    /// `wait` is what the provider asked for. It is kept, and up to a tenth of it is added (at
    /// least [`base`](Self::base), at most [`cap`](Self::cap), and never past the deadline), so
    /// that those who were told the same do not come back in step.
    pub fn next(
        &self,
        attempt: u32,
        wait: Option<Duration>,
        jitter: f64,
        left: Duration,
    ) -> Option<Duration> {
        let latest = left.checked_sub(self.reserve)?;
        let delay = match wait {
            None => self.delay(attempt, jitter),
            Some(wait) if wait > latest => return None,
            Some(wait) => {
                let spread = (wait / 10).max(self.base).min(self.cap);
                wait.saturating_add(scaled(spread, jitter)).min(latest)
            }
        };
        (delay <= latest).then_some(delay)
    }
}

fn scaled(bound: Duration, jitter: f64) -> Duration {
    // The comparison also catches what is not a number.
    if jitter > 0.0 { bound.mul_f64(jitter.min(1.0)) } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn doubles_up_to_the_cap() {
        let backoff = Backoff::default();
        let bounds = [0, 1, 2, 3, 4, 5, u32::MAX].map(|attempt| backoff.delay(attempt, 1.0));
        assert_eq!(bounds, [500, 1000, 2000, 4000, 8000, 8000, 8000].map(ms));
    }

    #[test]
    fn jitter_spreads_over_all_of_it() {
        let backoff = Backoff::default();
        assert_eq!([0.0, 0.25, 0.5].map(|jitter| backoff.delay(1, jitter)), [0, 250, 500].map(ms));
        assert_eq!([-1.0, 7.0, f64::NAN].map(|jitter| backoff.delay(1, jitter)), [0, 1000, 0].map(ms));
    }

    #[test]
    fn the_provider_knows_better() {
        let backoff = Backoff::default();
        let next = |wait, jitter| backoff.next(0, Some(wait), jitter, MINUTE);
        assert_eq!(next(ms(2_000), 0.0), Some(ms(2_000)));
        assert_eq!(next(ms(2_000), 0.5), Some(ms(2_250)));
        assert_eq!(next(ms(20_000), 1.0), Some(ms(22_000)));
        assert_eq!(next(Duration::ZERO, 0.5), Some(ms(250)));
    }

    #[test]
    fn what_does_not_fit_moves_on_at_once() {
        let backoff = Backoff::default();
        assert_eq!(backoff.next(0, Some(ms(9_000)), 0.0, ms(10_000)), Some(ms(9_000)));
        assert_eq!(backoff.next(0, Some(ms(9_001)), 0.0, ms(10_000)), None);
        assert_eq!(backoff.next(4, None, 1.0, ms(8_999)), None);
        assert_eq!(backoff.next(4, None, 1.0, ms(9_000)), Some(ms(8_000)));
        assert_eq!(backoff.next(0, None, 0.0, ms(999)), None);
        assert_eq!(backoff.next(0, Some(Duration::MAX), 1.0, Duration::MAX), None);
    }

    #[test]
    fn spreading_never_costs_a_retry_that_would_fit() {
        assert_eq!(Backoff::default().next(0, Some(ms(9_000)), 1.0, ms(10_000)), Some(ms(9_000)));
    }

    proptest! {
        #[test]
        fn within_its_bounds(
            base in 0_u64..5_000,
            cap in 0_u64..60_000,
            reserve in 0_u64..5_000,
            attempt: u32,
            wait in prop::option::of(0_u64..100_000),
            jitter in 0.0..1.0,
            left in 0_u64..200_000,
        ) {
            let backoff = Backoff { base: ms(base), cap: ms(cap), reserve: ms(reserve) };
            prop_assert!(backoff.delay(attempt, jitter) <= ms(cap));
            prop_assert!(backoff.delay(attempt, jitter) <= backoff.delay(attempt.saturating_add(1), jitter));

            match (backoff.next(attempt, wait.map(ms), jitter, ms(left)), wait) {
                (Some(next), wait) => {
                    prop_assert!(next + ms(reserve) <= ms(left));
                    prop_assert!(wait.is_none_or(|wait| ms(wait) <= next && next <= ms(wait + cap)));
                }
                (None, Some(wait)) => prop_assert!(wait + reserve > left),
                (None, None) => prop_assert!(backoff.delay(attempt, jitter) + ms(reserve) > ms(left)),
            }
        }
    }

    /// A thousand that failed in the same moment: no 50 ms get more than three times their share.
    #[test]
    fn no_herd() {
        let backoff = Backoff::default();
        let mut random = StdRng::seed_from_u64(7);
        for (attempt, wait, spread) in [(0, None, 500), (2, None, 2_000), (0, Some(ms(20_000)), 2_000)] {
            let back = || backoff.next(attempt, wait, random.random(), MINUTE).expect("a minute is enough");
            let mut back: Vec<_> = std::iter::repeat_with(back).take(1_000).collect();
            back.sort_unstable();
            let until = |at: Duration| back.partition_point(|other| *other < at + ms(50));
            let most = back.iter().enumerate().map(|(before, at)| until(*at) - before).max();
            assert!(most <= Some(3 * 1_000 * 50 / spread), "{most:?} of 1000 in 50 of {spread} ms");
        }
    }
}

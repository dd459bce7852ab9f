//! How many calls at once a provider takes, found out by trying.
//!
//! Providers do not say how many they take, and it changes with their load. Additive increase and
//! multiplicative decrease finds it and shares it fairly with others who do the same (Chiu and
//! Jain 1989; Netflix's concurrency-limits recommends it for clients). The signs of too much are
//! capacity errors and timeouts, never the latency of whole answers, which follows their length.
//!
//! In an outage everything is such a sign, and the limit falls to its lower bound although nothing
//! is wrong with the number of calls. So what it was when calls last succeeded is not forgotten:
//! up to there it rises with every success, as TCP does below its slow start threshold (RFC 5681).

use std::time::Duration;

use tokio::time::Instant;

/// At most one decrease within this time.
const INTERVAL: Duration = Duration::from_secs(1);

/// A limit on concurrency that moves between two bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdaptiveLimit {
    min: u32,
    max: u32,
    current: u32,
    /// Since the last change, while the limit held others back.
    successes: u32,
    lowered: Option<Instant>,
    /// Nothing succeeded since then.
    in_vain: bool,
    /// What it came down to before everything failed.
    known: u32,
}

impl AdaptiveLimit {
    /// A limit between `min` and `max`, both at least 1, that begins at `max`: nobody is held
    /// back before there is a reason. Bounds the wrong way round count as `max` twice.
    pub fn new(min: u32, max: u32) -> Self {
        let max = max.max(1);
        let min = min.clamp(1, max);
        Self { min, max, current: max, successes: 0, lowered: None, in_vain: false, known: min }
    }

    /// A limit that does not move; 0 counts as 1.
    pub fn fixed(limit: u32) -> Self {
        Self::new(limit, limit)
    }

    /// The limit now.
    pub fn current(&self) -> u32 {
        self.current
    }

    /// A call succeeded. One more is allowed after as many successes as the limit allows calls, so
    /// about once in the time of a call; after an outage, with every success. A success counts only
    /// when the limit was reached while it was under way (`constrained`): with less traffic it shows
    /// nothing about the limit.
    pub fn succeed(&mut self, constrained: bool) {
        self.in_vain = false;
        if !constrained || self.current == self.max {
            return;
        }
        self.successes += 1;
        if self.successes >= self.current || self.current < self.known {
            self.current += 1;
            self.successes = 0;
        }
    }

    /// A call that began at `dispatched` met a sign of too much: the limit becomes 0.7 of what it was.
    ///
    /// One burst counts once. Calls that began before the last decrease were too many by the old
    /// limit and say nothing about the new one, however late they fail; and within a second nothing
    /// counts, or a provider that refuses in milliseconds would empty the limit in a few of them.
    pub fn congested(&mut self, dispatched: Instant, now: Instant) {
        let counted = |lowered: Instant| dispatched <= lowered || now < lowered + INTERVAL;
        if self.lowered.is_some_and(counted) {
            return;
        }
        self.lowered = Some(now);
        self.successes = 0;
        self.current = lower(self.current).max(self.min);
        if !self.in_vain {
            self.known = self.current;
        }
        self.in_vain = true;
    }
}

/// 0.7 of `limit`, rounded down.
fn lower(limit: u32) -> u32 {
    limit / 10 * 7 + limit % 10 * 7 / 10
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn succeed(limit: &mut AdaptiveLimit, times: u32) {
        for _ in 0..times {
            limit.succeed(true);
        }
    }

    #[test]
    fn a_burst_lowers_once_and_as_many_successes_as_calls_raise_by_one() {
        let (mut limit, start) = (AdaptiveLimit::new(2, 10), Instant::now());
        for _ in 0..5 {
            limit.congested(start, start);
        }
        assert_eq!(limit.current(), 7);
        succeed(&mut limit, 6);
        assert_eq!(limit.current(), 7);
        succeed(&mut limit, 1);
        assert_eq!(limit.current(), 8);
        succeed(&mut limit, 8 + 9 + 100);
        assert_eq!(limit.current(), 10, "its bound");
    }

    #[test]
    fn successes_without_need_raise_nothing() {
        let (mut limit, start) = (AdaptiveLimit::new(1, 10), Instant::now());
        limit.congested(start, start);
        for _ in 0..100 {
            limit.succeed(false);
        }
        assert_eq!(limit.current(), 7);
    }

    #[test]
    fn calls_of_before_the_decrease_do_not_lower_again() {
        let (mut limit, start) = (AdaptiveLimit::new(1, 100), Instant::now());
        limit.congested(start, start + SECOND);
        assert_eq!(limit.current(), 70);
        limit.congested(start + SECOND, start + 60 * SECOND);
        assert_eq!(limit.current(), 70, "it began before");
        limit.congested(start + 2 * SECOND, start + 60 * SECOND);
        assert_eq!(limit.current(), 49);
        limit.congested(start + 60 * SECOND + SECOND / 10, start + 60 * SECOND + SECOND / 2);
        assert_eq!(limit.current(), 49, "too soon");
    }

    #[test]
    fn after_an_outage_it_soon_is_what_it_was() {
        let (mut limit, start) = (AdaptiveLimit::new(4, 100), Instant::now());
        for second in 0..60 {
            limit.congested(start + second * SECOND, start + second * SECOND + SECOND / 2);
        }
        assert_eq!(limit.current(), 4);
        succeed(&mut limit, 66);
        assert_eq!(limit.current(), 70, "what it was after the first sign");
        succeed(&mut limit, 69);
        assert_eq!(limit.current(), 70, "and from there as ever");
        succeed(&mut limit, 1);
        assert_eq!(limit.current(), 71);
        // While some succeed it is too much, and not an outage.
        for second in 100..120 {
            limit.congested(start + second * SECOND, start + second * SECOND + SECOND / 2);
            limit.succeed(false);
        }
        succeed(&mut limit, 3);
        assert_eq!(limit.current(), 4);
    }

    #[test]
    fn a_limit_is_never_zero() {
        let start = Instant::now();
        for mut limit in [AdaptiveLimit::new(0, 0), AdaptiveLimit::new(0, 1), AdaptiveLimit::fixed(1)] {
            limit.congested(start, start);
            assert_eq!(limit.current(), 1);
        }
        assert_eq!(AdaptiveLimit::new(9, 3), AdaptiveLimit::fixed(3));
    }

    proptest! {
        #[test]
        fn seven_tenths(limit: u32) {
            prop_assert_eq!(u64::from(lower(limit)), u64::from(limit) * 7 / 10);
        }

        /// It stays within its bounds, moves up by one and down by 0.7 at most once a second, and
        /// comes back to its upper bound.
        #[test]
        fn a_limit_keeps_its_bounds_and_recovers(
            min in 1..50_u32,
            spread in 0..50_u32,
            steps in prop::collection::vec((any::<bool>(), any::<bool>(), 0..3_000_u64), 0..200),
        ) {
            let (mut limit, mut now) = (AdaptiveLimit::new(min, min + spread), Instant::now());
            let mut lowered: Option<Instant> = None;
            for (success, constrained, millis) in steps {
                let before = limit.current();
                if success {
                    limit.succeed(constrained);
                    prop_assert!((before..=before + 1).contains(&limit.current()));
                } else {
                    limit.congested(now, now);
                    if limit.current() < before {
                        prop_assert!(lowered.is_none_or(|lowered| now - lowered >= INTERVAL));
                        prop_assert_eq!(limit.current(), lower(before).max(min));
                        lowered = Some(now);
                    }
                }
                prop_assert!((min..=min + spread).contains(&limit.current()));
                now += Duration::from_millis(millis);
            }
            succeed(&mut limit, 100 * 100);
            prop_assert_eq!(limit.current(), min + spread);
        }
    }
}

//! How many calls at once a provider takes, found out by trying.
//!
//! Providers do not say how many they take, and it changes with their load. Additive increase and
//! multiplicative decrease finds it and shares it fairly with others who do the same (Chiu and
//! Jain 1989; Netflix's concurrency-limits recommends it for clients). The signs of too much are
//! capacity errors and timeouts, never the latency of whole answers, which follows their length.
//!
//! In an outage everything is such a sign, and nothing is wrong with the number of calls. So a
//! provider that goes on refusing everything after the limit was lowered gets the old one back; and
//! where everything timed out, the limit rises with every success up to where it was known to be
//! well, as TCP does below its slow start threshold (RFC 5681).

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
    /// What it was when a call succeeded that had begun under it.
    good: u32,
    /// Below it, it rises fast.
    known: u32,
}

impl AdaptiveLimit {
    /// A limit between `min` and `max`, both at least 1, that begins at `max`: nobody is held
    /// back before there is a reason. Bounds the wrong way round count as `max` twice.
    pub fn new(min: u32, max: u32) -> Self {
        let max = max.max(1);
        let min = min.clamp(1, max);
        let (lowered, in_vain) = (None, false);
        Self { min, max, current: max, successes: 0, lowered, in_vain, good: max, known: min }
    }

    /// A limit that does not move; 0 counts as 1.
    pub fn fixed(limit: u32) -> Self {
        Self::new(limit, limit)
    }

    /// The limit now.
    pub fn current(&self) -> u32 {
        self.current
    }

    /// A call that began at `dispatched` succeeded. One more is allowed after as many successes as
    /// the limit allows calls, so about once in the time of a call; after an outage, with every
    /// success. A success counts only when the limit was reached while it was under way
    /// (`constrained`): with less traffic it shows nothing about the limit.
    pub fn succeed(&mut self, dispatched: Instant, constrained: bool) {
        self.in_vain = false;
        if constrained && self.current < self.max {
            self.successes += 1;
            if self.successes >= self.current || self.current < self.known {
                self.current += 1;
                self.successes = 0;
            }
        }
        if self.lowered.is_none_or(|lowered| lowered < dispatched) {
            self.good = self.current;
        }
    }

    /// A call that began at `dispatched` was refused for want of capacity. The limit becomes 0.7 of
    /// what it was; or what it was when calls last succeeded, if lowering it was no use and nothing
    /// has succeeded since.
    ///
    /// One burst counts once. Calls that began before the last decrease were too many by the old
    /// limit and say nothing about the new one, however late they fail; and within a second nothing
    /// counts, or a provider that refuses in milliseconds would empty the limit in a few of them.
    pub fn refused(&mut self, dispatched: Instant, now: Instant) {
        if self.has_counted(dispatched, now) {
            return;
        }
        if self.in_vain {
            self.current = self.current.max(self.good);
        } else {
            self.lower(now);
        }
    }

    /// A call that began at `dispatched` timed out: the same, but the limit falls until something
    /// succeeds. A provider that is late with everything may have too much of it.
    pub fn timed_out(&mut self, dispatched: Instant, now: Instant) {
        if !self.has_counted(dispatched, now) {
            self.lower(now);
        }
    }

    fn has_counted(&self, dispatched: Instant, now: Instant) -> bool {
        self.lowered.is_some_and(|lowered| dispatched <= lowered || now < lowered + INTERVAL)
    }

    fn lower(&mut self, now: Instant) {
        let lowered = lower(self.current).max(self.min);
        if !std::mem::replace(&mut self.in_vain, true) {
            // On the way up again, what was known is in doubt and not yet wrong.
            let is_known = self.current >= self.known;
            self.known = if is_known { lowered } else { self.known.midpoint(lowered) };
        }
        self.lowered = Some(now);
        self.successes = 0;
        self.current = lowered;
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

    /// Calls under the limit of the moment.
    fn succeed(limit: &mut AdaptiveLimit, times: u32) {
        for _ in 0..times {
            limit.succeed(Instant::now() + 3_600 * SECOND, true);
        }
    }

    #[test]
    fn a_burst_lowers_once_and_as_many_successes_as_calls_raise_by_one() {
        for sign in [AdaptiveLimit::refused, AdaptiveLimit::timed_out] {
            let (mut limit, start) = (AdaptiveLimit::new(2, 10), Instant::now());
            for _ in 0..5 {
                sign(&mut limit, start, start);
            }
            assert_eq!(limit.current(), 7);
            succeed(&mut limit, 6);
            assert_eq!(limit.current(), 7);
            succeed(&mut limit, 1);
            assert_eq!(limit.current(), 8);
            succeed(&mut limit, 8 + 9 + 100);
            assert_eq!(limit.current(), 10, "its bound");
        }
    }

    #[test]
    fn successes_without_need_raise_nothing() {
        let (mut limit, start) = (AdaptiveLimit::new(1, 10), Instant::now());
        limit.refused(start, start);
        for _ in 0..100 {
            limit.succeed(start, false);
        }
        assert_eq!(limit.current(), 7);
    }

    #[test]
    fn calls_of_before_the_decrease_do_not_lower_again() {
        let (mut limit, start) = (AdaptiveLimit::new(1, 100), Instant::now());
        limit.timed_out(start, start + SECOND);
        assert_eq!(limit.current(), 70);
        limit.timed_out(start + SECOND, start + 60 * SECOND);
        assert_eq!(limit.current(), 70, "it began before");
        limit.timed_out(start + 2 * SECOND, start + 60 * SECOND);
        assert_eq!(limit.current(), 49);
        limit.timed_out(start + 60 * SECOND + SECOND / 10, start + 60 * SECOND + SECOND / 2);
        assert_eq!(limit.current(), 49, "too soon");
    }

    /// Every two seconds, from there on.
    fn signs(
        limit: &mut AdaptiveLimit,
        sign: fn(&mut AdaptiveLimit, Instant, Instant),
        from: Instant,
        times: u32,
    ) {
        for at in (0..times).map(|nth| from + 2 * nth * SECOND) {
            sign(limit, at, at + SECOND / 2);
        }
    }

    #[test]
    fn where_everything_is_refused_the_limit_is_not_what_is_wrong() {
        let (mut limit, start) = (AdaptiveLimit::new(4, 100), Instant::now());
        limit.succeed(start, false);
        signs(&mut limit, AdaptiveLimit::refused, start + SECOND, 1);
        assert_eq!(limit.current(), 70);
        // Of before: it says nothing about the new limit.
        limit.succeed(start, false);
        signs(&mut limit, AdaptiveLimit::refused, start + 3 * SECOND, 1);
        assert_eq!(limit.current(), 49);
        signs(&mut limit, AdaptiveLimit::refused, start + 5 * SECOND, 100);
        assert_eq!(limit.current(), 100, "what it was when calls succeeded");
    }

    #[test]
    fn while_some_succeed_it_falls() {
        let (mut limit, start) = (AdaptiveLimit::new(4, 100), Instant::now());
        for nth in 0..20 {
            signs(&mut limit, AdaptiveLimit::refused, start + 2 * nth * SECOND, 1);
            limit.succeed(start + (2 * nth + 1) * SECOND, false);
        }
        assert_eq!(limit.current(), 4);
        succeed(&mut limit, 3);
        assert_eq!(limit.current(), 4);
        succeed(&mut limit, 1);
        assert_eq!(limit.current(), 5, "and rises slowly");
    }

    #[test]
    fn after_an_outage_it_soon_is_what_it_was() {
        let (mut limit, start) = (AdaptiveLimit::new(4, 100), Instant::now());
        signs(&mut limit, AdaptiveLimit::timed_out, start, 60);
        assert_eq!(limit.current(), 4);
        succeed(&mut limit, 66);
        assert_eq!(limit.current(), 70, "what it was after the first sign");
        succeed(&mut limit, 69);
        assert_eq!(limit.current(), 70, "and from there as ever");
        succeed(&mut limit, 1);
        assert_eq!(limit.current(), 71);
    }

    #[test]
    fn a_limit_is_never_zero() {
        let start = Instant::now();
        for mut limit in [AdaptiveLimit::new(0, 0), AdaptiveLimit::new(0, 1), AdaptiveLimit::fixed(1)] {
            limit.timed_out(start, start);
            assert_eq!(limit.current(), 1);
        }
        assert_eq!(AdaptiveLimit::new(9, 3), AdaptiveLimit::fixed(3));
    }

    proptest! {
        #[test]
        fn seven_tenths(limit: u32) {
            prop_assert_eq!(u64::from(lower(limit)), u64::from(limit) * 7 / 10);
        }

        /// It stays within its bounds, moves up by one and down by 0.7 at most once a second (but for
        /// a decrease that is taken back), and comes back to its upper bound.
        #[test]
        fn a_limit_keeps_its_bounds_and_recovers(
            min in 1..50_u32,
            spread in 0..50_u32,
            steps in prop::collection::vec((0..3, any::<bool>(), 0..3_000_u64), 0..200),
        ) {
            let (mut limit, mut now) = (AdaptiveLimit::new(min, min + spread), Instant::now());
            let mut lowered: Option<Instant> = None;
            for (what, constrained, millis) in steps {
                let before = limit.current();
                match what {
                    0 => limit.succeed(now, constrained),
                    1 => limit.refused(now, now),
                    _ => limit.timed_out(now, now),
                }
                if what == 0 {
                    prop_assert!((before..=before + 1).contains(&limit.current()));
                } else if limit.current() < before {
                    prop_assert!(lowered.is_none_or(|lowered| now - lowered >= INTERVAL));
                    prop_assert_eq!(limit.current(), lower(before).max(min));
                    lowered = Some(now);
                } else {
                    prop_assert!(limit.current() == before || what == 1);
                }
                prop_assert!((min..=min + spread).contains(&limit.current()));
                now += Duration::from_millis(millis);
            }
            succeed(&mut limit, 100 * 100);
            prop_assert_eq!(limit.current(), min + spread);
        }
    }
}

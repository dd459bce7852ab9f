//! When a second call races the first.
//!
//! A provider that usually begins within two seconds and has been silent for four will often go on
//! being silent: another one, asked now, wins. But a call to a model costs money and the capacity
//! that is short on a bad day. So the second call waits until the first is later than 95 of 100
//! usually are, and a budget bounds the extra calls, the more so when all of them are late (as
//! Finagle's `BackupRequestFilter` does). What may be hedged at all, and with whom, is the
//! attempt loop's matter.

use std::time::Duration;

use tokio::time::Instant;

use super::budget::{self, Budget};

/// When and how often to hedge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// No second call before that, however fast the provider usually is.
    pub min_delay: Duration,
    /// Extra calls for the requests that may be hedged.
    pub budget: budget::Settings,
}

impl Default for Settings {
    /// After a second at the earliest, and for two of the last minute's 100 requests.
    fn default() -> Self {
        let budget = budget::Settings { ratio: 0.02, floor: 0, window: Duration::from_mins(1) };
        Self { min_delay: Duration::from_secs(1), budget }
    }
}

/// The hedging of one alias.
#[derive(Debug)]
pub struct Hedge {
    min_delay: Duration,
    budget: Budget,
}

impl Hedge {
    /// Nothing has been asked, so nothing may be hedged yet.
    pub fn new(settings: Settings, now: Instant) -> Self {
        Self { min_delay: settings.min_delay, budget: Budget::new(settings.budget, now) }
    }

    /// A request that may be hedged makes its first call.
    pub fn deposit(&self, now: Instant) {
        self.budget.deposit(now);
    }

    /// How long the first call may be silent, given the p95 of its target's time to first content
    /// ([`Breaker::first_content_p95`](super::breaker::Breaker::first_content_p95)). `None`: too
    /// little is known of the target to call it late, so no hedge.
    pub fn after(&self, first_content_p95: Option<Duration>) -> Option<Duration> {
        first_content_p95.map(|p95| p95.max(self.min_delay))
    }

    /// The first call is late: whether a second may be made. Ask when it is about to be made, for
    /// the answer takes it out of the budget.
    pub fn try_launch(&self, now: Instant) -> bool {
        self.budget.try_withdraw(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_p95_but_not_at_once() {
        let hedge = Hedge::new(Settings::default(), Instant::now());
        assert_eq!(hedge.after(Some(Duration::from_secs(3))), Some(Duration::from_secs(3)));
        assert_eq!(hedge.after(Some(Duration::from_millis(80))), Some(Duration::from_secs(1)));
        assert_eq!(hedge.after(None), None);
    }

    /// Ten requests a second, and every first call is late.
    #[test]
    fn two_in_a_hundred_and_no_more() {
        let start = Instant::now();
        let hedge = Hedge::new(Settings::default(), start);
        let mut launched = 0;
        for request in 1..=6_000 {
            let now = start + Duration::from_millis(100) * request;
            hedge.deposit(now);
            launched += u32::from(hedge.try_launch(now));
            assert!(launched * 100 <= request * 2, "{launched} hedges of {request} requests");
        }
        assert!(launched >= 100, "{launched}");
    }

    #[test]
    fn the_budget_comes_back() {
        let start = Instant::now();
        let hedge = Hedge::new(Settings::default(), start);
        let fifty = |now| (0..50).for_each(|_| hedge.deposit(now));
        fifty(start);
        assert!(hedge.try_launch(start));
        assert!(!hedge.try_launch(start));
        let later = start + Duration::from_mins(1);
        assert!(!hedge.try_launch(later), "the old requests do not count any more");
        fifty(later);
        assert!(hedge.try_launch(later));
    }
}

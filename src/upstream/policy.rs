//! The policies of the attempt loop as configured, in one place.

use std::time::Duration;

use tokio::time::Instant;

use super::backoff::Backoff;
use super::budget::{self, Budget};
use super::{breaker, hedge};
use crate::config;

/// The stretch of time that the retry budget looks back on.
const BUDGET_WINDOW: Duration = Duration::from_secs(10);
/// The same of the hedging budget: hedges are few.
const HEDGE_WINDOW: Duration = Duration::from_mins(1);

/// What the loop may do.
#[derive(Debug)]
pub(super) struct Policy {
    /// Calls for one request at most.
    pub(super) attempts: u32,
    /// Of them to one target.
    pub(super) per_target: u32,
    pub(super) backoff: Backoff,
    /// Gives numbers in 0..1.
    pub(super) jitter: fn() -> f64,
    /// Shared by all requests.
    pub(super) retries: Budget,
}

impl Policy {
    pub(super) fn new(settings: &config::Upstream, now: Instant) -> Self {
        let config::Retry { attempts, per_target, base, cap, budget, floor } = settings.retry;
        let budget = budget::Settings { ratio: budget, floor, window: BUDGET_WINDOW };
        Self {
            attempts,
            per_target,
            backoff: Backoff { base, cap, ..Backoff::default() },
            jitter: rand::random::<f64>,
            retries: Budget::new(budget, now),
        }
    }
}

/// The breakers' settings.
pub(super) fn breakers(settings: &config::Breaker) -> breaker::Settings {
    let config::Breaker {
        error_rate,
        window,
        min_calls,
        slow_factor,
        slow_for,
        cool_down,
        max_cool_down,
        ramp,
    } = *settings;
    breaker::Settings { error_rate, window, min_calls, slow_factor, slow_for, cool_down, max_cool_down, ramp }
}

/// The hedges' settings.
pub(super) fn hedges(settings: &config::Hedge) -> hedge::Settings {
    let budget = budget::Settings { ratio: settings.budget, floor: 0, window: HEDGE_WINDOW };
    hedge::Settings { min_delay: settings.min_delay, budget }
}

//! Whether a target should be asked at all.
//!
//! A provider that is short of capacity recovers sooner when it is left alone, and a caller is
//! answered sooner by another. So each target (a provider's model) has a breaker that opens when
//! too many calls fail, or when first contents have come far later than the target's own norm for
//! minutes. It lets one call probe after a cool-down, and then a growing share of them.
//!
//! Calls to a model last seconds to minutes. Counting them at their end would hide those under
//! way, so a call counts from its dispatch, and the target's health is judged at the first
//! content; how a stream ends is not the breaker's matter. Opening by rate and half-opening with
//! one probe follow linkerd2-proxy's breaker, the doubling cool-down Envoy's outlier detection,
//! and the probe that proves nothing Finagle's failure accrual.

pub(super) mod baseline;
mod health;
mod machine;
mod report;
mod window;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use machine::{Machine, Role};

pub use report::{BreakerState, Label, Reason, Transition};

/// When a breaker opens, and how it closes again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Opens when this share of the calls within `window` failed, 0 to 1.
    pub error_rate: f64,
    /// How long an outcome counts.
    pub window: Duration,
    /// Fewer calls, those under way included, prove nothing.
    pub min_calls: u32,
    /// Opens when the p95 of the time to first content is over this times the target's own.
    pub slow_factor: f64,
    /// For that long without a break.
    pub slow_for: Duration,
    /// From the first opening to the probe; doubled by each further one.
    pub cool_down: Duration,
    /// No cool-down is longer. A breaker that stayed closed for as long begins anew.
    pub max_cool_down: Duration,
    /// From the probe's success until all calls pass.
    pub ramp: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            error_rate: 0.25,
            window: Duration::from_mins(1),
            min_calls: 10,
            slow_factor: 2.0,
            slow_for: Duration::from_mins(5),
            cool_down: Duration::from_secs(30),
            max_cool_down: Duration::from_mins(5),
            ramp: Duration::from_secs(30),
        }
    }
}

/// What a call says of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The first content of a stream came.
    Content {
        /// Since dispatch.
        after: Duration,
    },
    /// An answer came at which speed cannot be judged: a whole body is complete when it comes.
    Answered,
    /// The target failed: no capacity, a timer that ran out, a server error, no connection.
    Failed,
    /// Given up before the first content although nothing failed, as the loser of a hedge is. Says
    /// that the target is slow when it waited long enough, else nothing: without it the slowest
    /// calls would never be seen.
    Abandoned {
        /// Since dispatch.
        after: Duration,
    },
    /// Says nothing of the target's health: the request's fault, a filter, a key, ourselves.
    Neutral,
}

/// Who decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// The breaker.
    #[default]
    Automatic,
    /// The operator: no calls, but for those that have nowhere else to go. Once it is automatic
    /// again, it begins with a probe.
    ForcedOpen,
    /// The operator: all calls. What was normal is learned anew, so this is also how to accept
    /// that a target has become slower for good.
    ForcedClosed,
    /// The operator: no calls at all. Once it is automatic again, it begins with a probe.
    Isolated,
}

/// The breaker does not let the call pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// When it will let some pass at the latest; `None` when that depends on a probe under way or
    /// on the operator.
    pub until: Option<Instant>,
}

/// The breaker of one target. Clones share it.
///
/// A call takes one lock for about a microsecond, and none waits. About 30 kB each, whatever the
/// traffic.
#[derive(Clone, Debug)]
pub struct Breaker(Arc<Mutex<Machine>>);

impl Breaker {
    /// A closed breaker that knows nothing of its target. `jitter` gives numbers in 0..1, and makes
    /// cool-downs up to a fifth shorter.
    pub fn new(settings: Settings, jitter: fn() -> f64, now: Instant) -> Self {
        Self(Arc::new(Mutex::new(Machine::new(settings, jitter, now))))
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a call pass that is dispatched now, or not.
    pub fn try_acquire(&self, now: Instant) -> Result<Permit, Refused> {
        self.permit(|machine| machine.admit(now))
    }

    /// Lets a call pass that has no other target, so that the last one is never shut; refused only
    /// when isolated. Who is the last is the caller's matter. Past an open breaker the call does
    /// not count: under full load some success always comes soon, and would end every cool-down.
    pub fn try_acquire_anyway(&self, now: Instant) -> Result<Permit, Refused> {
        self.permit(|machine| machine.admit_anyway(now))
    }

    fn permit(&self, admit: impl Fn(&mut Machine) -> Result<Role, Refused>) -> Result<Permit, Refused> {
        let mut machine = self.machine();
        let role = admit(&mut machine)?;
        Ok(Permit { breaker: self.clone(), epoch: machine.epoch(), role })
    }

    /// Sets who decides.
    pub fn set_control(&self, control: Control, now: Instant) {
        self.machine().set_control(control, now);
    }

    /// Who decides.
    pub fn control(&self) -> Control {
        self.machine().control()
    }

    /// Whether the operator lets nothing pass, not even as the last resort.
    pub fn is_isolated(&self) -> bool {
        self.control() == Control::Isolated
    }

    /// Where it stands, and why.
    pub fn state(&self, now: Instant) -> BreakerState {
        self.machine().state(now)
    }

    /// The p95 of the target's time to first content while it was healthy, of the last days;
    /// `None` under 20 streams.
    pub fn first_content_p95(&self, now: Instant) -> Option<Duration> {
        self.machine().first_content_p95(now)
    }

    /// The changes since the last time this was asked, oldest first, at most the latest 16: for the
    /// log. Any other call may have made some.
    pub fn take_transitions(&self) -> Vec<Transition> {
        self.machine().take_transitions()
    }
}

/// A call that may be made. Dropping it means that the call was cancelled: it counts no longer,
/// and when it was the probe another may be.
#[derive(Debug)]
#[must_use = "dropping it means that the call was cancelled"]
pub struct Permit {
    breaker: Breaker,
    epoch: u64,
    role: Role,
}

impl Permit {
    /// Says what the call came to: at the first content or the failure before it.
    pub fn record(mut self, outcome: Outcome, now: Instant) {
        // What is beside the breaker has nothing to give back when it is dropped.
        let role = std::mem::replace(&mut self.role, Role::Beside);
        self.breaker.machine().record(role, self.epoch, outcome, now);
    }

    /// Whether this call alone decides if the target is back. No call to hedge.
    pub fn is_probe(&self) -> bool {
        self.role == Role::Probe
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.role != Role::Beside {
            self.breaker.machine().give_back(self.role, self.epoch);
        }
    }
}

#[cfg(test)]
mod tests;

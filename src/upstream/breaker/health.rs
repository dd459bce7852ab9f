//! What a target's calls say of its health.

use std::time::Duration;

use tokio::time::Instant;

use super::baseline::Baseline;
use super::report::Reason;
use super::window::Window;
use super::{Outcome, Settings};

/// Below this nobody waits, whatever the norm.
const NEVER_SLOW: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Health {
    settings: Settings,
    /// Calls whose outcome is open.
    under_way: u32,
    window: Window,
    slow: Option<Slow>,
    baseline: Baseline,
}

/// A stretch of time without a p95 that is bearable.
#[derive(Clone, Copy, Debug)]
struct Slow {
    since: Instant,
    calls: u32,
}

impl Health {
    /// Nothing is known.
    pub(super) fn new(settings: Settings, now: Instant) -> Self {
        Self {
            settings,
            under_way: 0,
            window: Window::new(settings.window, now),
            slow: None,
            baseline: Baseline::new(now),
        }
    }

    /// A call was dispatched.
    pub(super) fn begin(&mut self) {
        self.under_way += 1;
    }

    /// A call was cancelled.
    pub(super) fn give_back(&mut self) {
        self.under_way -= 1;
    }

    /// A call has an outcome. Gives the reason when that makes the target unfit.
    pub(super) fn end(&mut self, outcome: Outcome, now: Instant) -> Option<Reason> {
        self.under_way -= 1;
        self.window.roll(now);
        match outcome {
            Outcome::Failed => self.failed(),
            Outcome::Content { after } => self.content(after, now),
            Outcome::Abandoned { after } => {
                self.norm_exceeded_by(after, now).and_then(|_| self.content(after, now))
            }
            Outcome::Answered => {
                self.window.add_answered();
                None
            }
            Outcome::Neutral => None,
        }
    }

    fn failed(&mut self) -> Option<Reason> {
        self.window.add_failed();
        let (failed, calls) = (self.window.failed(), self.window.calls().saturating_add(self.under_way));
        let too_many = f64::from(failed) >= self.settings.error_rate * f64::from(calls);
        (too_many && calls >= self.settings.min_calls).then_some(Reason::ErrorRate { failed, calls })
    }

    fn content(&mut self, after: Duration, now: Instant) -> Option<Reason> {
        let Settings { slow_factor: factor, slow_for, min_calls, .. } = self.settings;
        if self.window.p95().is_none() {
            // After a pause nobody can say that it was slow all the time.
            self.slow = None;
        }
        self.window.add_content(after);
        let p95 = self.window.p95()?;
        let Some(baseline) = self.norm_exceeded_by(p95, now) else {
            self.slow = None;
            self.baseline.learn(after, now);
            return None;
        };
        let slow = self.slow.get_or_insert(Slow { since: now, calls: 0 });
        slow.calls = slow.calls.saturating_add(1);
        let lasted = now.saturating_duration_since(slow.since);
        let too_long = lasted >= slow_for && slow.calls >= min_calls;
        too_long.then_some(Reason::Slow { p95, baseline, factor, lasted })
    }

    /// The norm, when it is settled and `after` is too long by it.
    pub(super) fn norm_exceeded_by(&mut self, after: Duration, now: Instant) -> Option<Duration> {
        let limit = |norm: Duration| norm.as_secs_f64() * self.settings.slow_factor;
        let over = |norm: &Duration| after > NEVER_SLOW && after.as_secs_f64() > limit(*norm);
        self.baseline.settled_p95(now).filter(over)
    }

    /// Since when the p95 has been unbearable.
    pub(super) fn slow_since(&self) -> Option<Instant> {
        self.slow.map(|slow| slow.since)
    }

    /// The norm.
    pub(super) fn first_content_p95(&mut self, now: Instant) -> Option<Duration> {
        self.baseline.p95(now)
    }

    /// Nothing that was, or is under way, counts any more; what is normal stays.
    pub(super) fn forget_calls(&mut self, now: Instant) {
        self.under_way = 0;
        self.window = Window::new(self.settings.window, now);
        self.slow = None;
    }

    /// What is normal has to be learned anew.
    pub(super) fn forget_norm(&mut self, now: Instant) {
        self.baseline = Baseline::new(now);
    }
}

//! The state machine.
//!
//! ```text
//!              too many failed, or too slow for too long
//!      Closed ────────────────────────────────────────────> Open <───┐
//!        ^                                                   │       │
//!        │ ramp over                            cool-down over       │ the probe failed
//!        │                                                   v       │
//!       Ramp <──────────────────────────────────────── HalfOpen ─────┘
//!        │                  the probe had content
//!        └──> Open, as from Closed
//! ```
//!
//! Each opening begins an epoch. Calls of an earlier one come too late to say anything of the
//! target as it is now, and their permits neither count nor give anything back.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::health::Health;
use super::report::{BreakerState, Label, Reason, Transition};
use super::{Control, Outcome, Refused, Settings};

/// A cool-down is up to a fifth shorter than it says, so that several instances do not probe
/// in the same moment.
const SPREAD: f64 = 0.2;

/// Far enough in the future, and small enough that adding it to now cannot overflow.
const FOREVER: Duration = Duration::from_hours(365 * 24);

/// Shares of a ramp are in thousandths.
const ALL: u32 = 1_000;
const FIRST_SHARE: u32 = 100;

/// Transitions that nobody has taken; the oldest are lost first.
const KEPT: usize = 16;

#[derive(Debug)]
pub(super) struct Machine {
    settings: Settings,
    jitter: fn() -> f64,
    control: Control,
    phase: Phase,
    /// Of the phase, or of the operator's control.
    since: Instant,
    reason: Option<Reason>,
    /// In a row, without a long time closed in between.
    openings: u32,
    epoch: u64,
    health: Health,
    transitions: VecDeque<Transition>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Closed,
    Open { until: Instant },
    HalfOpen { probing: bool },
    Ramp { credit: u32 },
}

/// What a call counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// As one of many.
    Counted,
    /// It alone decides.
    Probe,
    /// Not at all: it was let past an open breaker.
    Beside,
}

impl Machine {
    pub(super) fn new(settings: Settings, jitter: fn() -> f64, now: Instant) -> Self {
        let max_cool_down = settings.max_cool_down.min(FOREVER);
        let settings = Settings { max_cool_down, ramp: settings.ramp.min(FOREVER), ..settings };
        Self {
            settings,
            jitter,
            control: Control::Automatic,
            phase: Phase::Closed,
            since: now,
            reason: None,
            openings: 0,
            epoch: 0,
            health: Health::new(settings, now),
            transitions: VecDeque::new(),
        }
    }

    /// Whether a call may be dispatched now, and as what.
    pub(super) fn admit(&mut self, now: Instant) -> Result<Role, Refused> {
        self.advance(now);
        if self.is_held_open() {
            return Err(Refused { until: None });
        }
        match self.phase {
            Phase::Closed => Ok(self.count()),
            Phase::Open { until } => Err(Refused { until: Some(until) }),
            Phase::HalfOpen { probing: true } => Err(Refused { until: None }),
            Phase::HalfOpen { probing: false } => {
                self.phase = Phase::HalfOpen { probing: true };
                Ok(Role::Probe)
            }
            Phase::Ramp { credit } => {
                // Each call adds the share of the moment, and whole ones pass.
                let credit = credit + self.share(now);
                self.phase = Phase::Ramp { credit: credit % ALL };
                if credit < ALL { Err(Refused { until: Some(self.ramp_end()) }) } else { Ok(self.count()) }
            }
        }
    }

    /// As [`admit`](Self::admit), for a call that has nowhere else to go.
    pub(super) fn admit_anyway(&mut self, now: Instant) -> Result<Role, Refused> {
        self.advance(now);
        match (self.control, self.phase) {
            (Control::Isolated, _) => Err(Refused { until: None }),
            // Nothing is saved by not counting it: the more calls, the sooner it is clear.
            (_, Phase::Ramp { .. }) => Ok(self.count()),
            _ => Ok(self.admit(now).unwrap_or(Role::Beside)),
        }
    }

    fn count(&mut self) -> Role {
        self.health.begin();
        Role::Counted
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// A call that was admitted in `epoch` has an outcome.
    pub(super) fn record(&mut self, role: Role, epoch: u64, outcome: Outcome, now: Instant) {
        self.advance(now);
        if epoch != self.epoch {
            return;
        }
        match role {
            Role::Beside => {}
            Role::Probe => self.judge_probe(outcome, now),
            Role::Counted => {
                let ill = self.health.end(outcome, now);
                if let Some(reason) = ill.filter(|_| self.control == Control::Automatic) {
                    self.open(reason, now);
                }
            }
        }
    }

    /// A call that was admitted in `epoch` was cancelled.
    pub(super) fn give_back(&mut self, role: Role, epoch: u64) {
        if epoch == self.epoch {
            match role {
                Role::Beside => {}
                Role::Probe => self.phase = Phase::HalfOpen { probing: false },
                Role::Counted => self.health.give_back(),
            }
        }
    }

    /// What time alone decides.
    fn advance(&mut self, now: Instant) {
        match self.phase {
            Phase::Open { until } if until <= now => {
                self.enter(Phase::HalfOpen { probing: false }, self.reason, until);
            }
            Phase::Ramp { .. } if self.ramp_end() <= now => {
                self.enter(Phase::Closed, None, self.ramp_end());
            }
            _ => {}
        }
    }

    fn judge_probe(&mut self, outcome: Outcome, now: Instant) {
        // After an outage the first answer may well be a slow one.
        let must_be_quick = matches!(self.reason, Some(Reason::Slow { .. } | Reason::ProbeSlow { .. }));
        match outcome {
            Outcome::Failed => self.open(Reason::ProbeFailed, now),
            Outcome::Content { after } | Outcome::Abandoned { after }
                if must_be_quick && let Some(baseline) = self.health.norm_exceeded_by(after, now) =>
            {
                let factor = self.settings.slow_factor;
                self.open(Reason::ProbeSlow { after, baseline, factor }, now);
            }
            Outcome::Content { .. } | Outcome::Answered => {
                self.enter(Phase::Ramp { credit: 0 }, self.reason, now);
            }
            Outcome::Abandoned { .. } | Outcome::Neutral => self.phase = Phase::HalfOpen { probing: false },
        }
    }

    fn open(&mut self, reason: Reason, now: Instant) {
        let Settings { cool_down, max_cool_down, .. } = self.settings;
        let was_well =
            matches!(self.phase, Phase::Closed) && now.saturating_duration_since(self.since) >= max_cool_down;
        self.openings = if was_well { 1 } else { self.openings.saturating_add(1) };
        let doubled = cool_down.saturating_mul(2_u32.saturating_pow(self.openings - 1));
        let until = now + doubled.min(max_cool_down).mul_f64(1.0 - SPREAD * unit((self.jitter)()));
        self.epoch += 1;
        self.health.forget_calls(now);
        self.enter(Phase::Open { until }, Some(reason), now);
    }

    fn enter(&mut self, phase: Phase, reason: Option<Reason>, at: Instant) {
        let from = self.label();
        self.phase = phase;
        self.moved(from, reason, at);
    }

    fn moved(&mut self, from: Label, reason: Option<Reason>, at: Instant) {
        self.since = at;
        self.reason = reason;
        if self.transitions.len() == KEPT {
            self.transitions.pop_front();
        }
        self.transitions.push_back(Transition { at, from, to: self.label(), reason });
    }

    pub(super) fn set_control(&mut self, control: Control, now: Instant) {
        self.advance(now);
        if control == self.control {
            return;
        }
        let from = self.label();
        let was_held_open = self.is_held_open();
        self.control = control;
        if control != Control::Automatic {
            self.epoch += 1;
            self.health.forget_calls(now);
            // What is half open when it is let go begins with a probe.
            self.phase = Phase::HalfOpen { probing: false };
        }
        if control == Control::ForcedClosed {
            self.health.forget_norm(now);
            self.phase = Phase::Closed;
            self.openings = 0;
        }
        let reason = (control != Control::Automatic || was_held_open).then_some(Reason::Operator);
        self.moved(from, reason, now);
    }

    pub(super) fn control(&self) -> Control {
        self.control
    }

    fn is_held_open(&self) -> bool {
        matches!(self.control, Control::ForcedOpen | Control::Isolated)
    }

    fn ramp_end(&self) -> Instant {
        self.since + self.settings.ramp
    }

    /// The share of calls that a ramp admits, in thousandths.
    fn share(&self, now: Instant) -> u32 {
        let ramp = self.settings.ramp.as_nanos().max(1);
        let climbed = now.saturating_duration_since(self.since).as_nanos().min(ramp);
        let more = climbed.saturating_mul(u128::from(ALL - FIRST_SHARE)) / ramp;
        FIRST_SHARE + u32::try_from(more).unwrap_or(ALL - FIRST_SHARE)
    }

    fn label(&self) -> Label {
        match (self.control, self.phase) {
            (Control::Isolated, _) => Label::Isolated,
            (Control::ForcedOpen, _) => Label::ForcedOpen,
            (Control::ForcedClosed, _) => Label::ForcedClosed,
            (_, Phase::Closed) => Label::Closed,
            (_, Phase::Open { .. }) => Label::Open,
            (_, Phase::HalfOpen { .. }) => Label::HalfOpen,
            (_, Phase::Ramp { .. }) => Label::Ramp,
        }
    }

    pub(super) fn state(&mut self, now: Instant) -> BreakerState {
        self.advance(now);
        let until = match self.phase {
            Phase::Open { until } => Some(until),
            Phase::Ramp { .. } => Some(self.ramp_end()),
            Phase::Closed | Phase::HalfOpen { .. } => None,
        };
        let (label, slow_since) = (self.label(), self.health.slow_since());
        BreakerState { label, since: self.since, until, reason: self.reason, slow_since }
    }

    pub(super) fn first_content_p95(&mut self, now: Instant) -> Option<Duration> {
        self.health.first_content_p95(now)
    }

    pub(super) fn take_transitions(&mut self) -> Vec<Transition> {
        self.transitions.drain(..).collect()
    }
}

/// A number in 0..1; also of what is not a number.
fn unit(jitter: f64) -> f64 {
    if jitter > 0.0 { jitter.min(1.0) } else { 0.0 }
}

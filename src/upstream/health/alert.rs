//! When a target's state is worth waking someone.
//!
//! | condition       | what, over how long           | rises at | falls below | calls needed       |
//! |-----------------|-------------------------------|----------|-------------|--------------------|
//! | `error_rate`    | failed / judged, 1 minute     | 0.05     | 0.025       | 10, and 3 failures |
//! | `first_content` | median / usual, 5 minutes     | 1.2      | 1.1         | 50                 |
//! | `p99`           | whole calls' p99 / usual, 5 m | 1.5      | 1.25        | 100                |
//!
//! An alarm that rose stands until its value falls below the second number (hysteresis: a value that
//! trembles around one limit would ring all night). With fewer calls than needed an alarm stays as
//! it is, because two good calls do not prove a recovery. Without any call, sent or awaited, it is
//! over: nobody suffers. The numbers of calls keep chance out: the median of fewer than 50 calls is
//! easily off by a tenth, and the p99 of fewer than 100 is nothing but the slowest call.

use tokio::time::Instant;

use super::baseline::Baseline;
use super::window::Slot;

/// Failures in a minute before their share is looked at: one failed call of twenty is no outage.
const LEAST_FAILURES: u64 = 3;

/// What is wrong with a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Too many calls fail.
    ErrorRate,
    /// First content comes later than usual: an early warning.
    FirstContent,
    /// The slowest calls take much longer than usual.
    P99,
}

impl Condition {
    pub(super) const ALL: [Self; 3] = [Self::ErrorRate, Self::FirstContent, Self::P99];

    /// The label in metrics and reports.
    pub fn label(self) -> &'static str {
        match self {
            Self::ErrorRate => "error_rate",
            Self::FirstContent => "first_content",
            Self::P99 => "p99",
        }
    }

    /// The value from which on the alarm rises: a share for the error rate, else a multiple of what
    /// is usual.
    pub fn limit(self) -> f64 {
        match self {
            Self::ErrorRate => 0.05,
            Self::FirstContent => 1.2,
            Self::P99 => 1.5,
        }
    }

    /// The value below which it falls.
    fn falls_below(self) -> f64 {
        match self {
            Self::ErrorRate => 0.025,
            Self::FirstContent => 1.1,
            Self::P99 => 1.25,
        }
    }

    /// Calls without which nothing is decided.
    pub(super) fn least_calls(self) -> u64 {
        match self {
            Self::ErrorRate => 10,
            Self::FirstContent => 50,
            Self::P99 => 100,
        }
    }
}

/// An alarm that stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alert {
    /// What is wrong.
    pub condition: Condition,
    /// The value when it was last measured, in the unit of [`Condition::limit`].
    pub measured: f64,
    /// What it rose at.
    pub limit: f64,
    /// When it rose.
    pub since: Instant,
}

/// What a look at the windows says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Evidence {
    /// Nobody calls.
    Silence,
    /// Too little to decide.
    Thin,
    /// A value; whether it is bad enough depends on where it came from.
    Value { measured: f64, rises: bool },
}

/// The alarms of one target.
#[derive(Debug, Default)]
pub(super) struct Alarms([Option<Alert>; Condition::ALL.len()]);

impl Alarms {
    /// Those that stand.
    pub(super) fn standing(&self) -> Vec<Alert> {
        self.0.into_iter().flatten().collect()
    }

    /// Takes in how things are now. `waiting`: some call is under way.
    pub(super) fn look(
        &mut self,
        minute: &Slot,
        five_minutes: &Slot,
        baseline: &Baseline,
        waiting: bool,
        now: Instant,
    ) {
        let median = five_minutes.first_content.at(0.5);
        let p99 = five_minutes.total.at(0.99);
        let evidence = [
            errors(minute, waiting),
            slowness(Condition::FirstContent, five_minutes, median, baseline.first_content_ms(), waiting),
            slowness(Condition::P99, five_minutes, p99, baseline.p99_ms(), waiting),
        ];
        for ((alarm, condition), evidence) in self.0.iter_mut().zip(Condition::ALL).zip(evidence) {
            *alarm = next(alarm.take(), condition, evidence, now);
        }
    }
}

/// The state diagram of one alarm.
fn next(standing: Option<Alert>, condition: Condition, evidence: Evidence, now: Instant) -> Option<Alert> {
    match (standing, evidence) {
        (_, Evidence::Silence) => None,
        (standing, Evidence::Thin) => standing,
        (None, Evidence::Value { measured, rises }) => {
            rises.then(|| Alert { condition, measured, limit: condition.limit(), since: now })
        }
        (Some(alert), Evidence::Value { measured, .. }) => {
            (measured >= condition.falls_below()).then_some(Alert { measured, ..alert })
        }
    }
}

fn errors(minute: &Slot, waiting: bool) -> Evidence {
    let failures = minute.failures;
    let Some(measured) = minute.error_rate() else { return nothing(minute, waiting) };
    if minute.judged.max(failures) < Condition::ErrorRate.least_calls() {
        return Evidence::Thin;
    }
    let rises = measured >= Condition::ErrorRate.limit() && failures >= LEAST_FAILURES;
    Evidence::Value { measured, rises }
}

fn slowness(
    condition: Condition,
    window: &Slot,
    found_ms: Option<f64>,
    usual_ms: Option<f64>,
    waiting: bool,
) -> Evidence {
    let calls = if condition == Condition::P99 { window.total.count() } else { window.first_content.count() };
    match (found_ms, usual_ms) {
        (Some(found), Some(usual)) if calls >= condition.least_calls() && usual > 0.0 => {
            let measured = found / usual;
            Evidence::Value { measured, rises: measured >= condition.limit() }
        }
        (None, _) => nothing(window, waiting),
        _ => Evidence::Thin,
    }
}

/// What it means that nothing can be measured.
fn nothing(window: &Slot, waiting: bool) -> Evidence {
    let silent = !waiting && window.attempts == 0 && window.judged == 0;
    if silent { Evidence::Silence } else { Evidence::Thin }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn value(measured: f64) -> Evidence {
        Evidence::Value { measured, rises: measured >= Condition::P99.limit() }
    }

    #[tokio::test(start_paused = true)]
    async fn rises_at_one_value_and_falls_below_another() {
        let start = Instant::now();
        let mut alarm = None;
        let mut at = |seconds, evidence| {
            alarm = next(alarm, Condition::P99, evidence, start + Duration::from_secs(seconds));
            alarm.map(|alert| (alert.measured, alert.since - start))
        };
        assert_eq!(at(0, value(1.49)), None);
        let second = Duration::from_secs(5);
        assert_eq!(at(5, value(1.5)), Some((1.5, second)));
        assert_eq!(at(10, value(1.3)), Some((1.3, second)), "in between it stands");
        assert_eq!(at(15, Evidence::Thin), Some((1.3, second)), "few calls prove nothing");
        assert_eq!(at(20, value(1.24)), None);
        assert_eq!(at(25, value(1.3)), None, "in between it does not rise");
        assert_eq!(at(30, value(2.0)), Some((2.0, Duration::from_secs(30))));
        assert_eq!(at(35, Evidence::Silence), None);
        assert_eq!(at(40, Evidence::Thin), None);
    }

    proptest! {
        /// Whatever is measured: who stands is above the lower limit, who does not below the upper.
        #[test]
        fn never_between_the_limits_without_a_past(values in prop::collection::vec(0.0..3.0, 1..50)) {
            let now = Instant::now();
            let mut alarm = None;
            for measured in values {
                let before = alarm;
                alarm = next(alarm, Condition::P99, value(measured), now);
                match alarm {
                    Some(_) => prop_assert!(measured >= 1.5 || before.is_some() && measured >= 1.25),
                    None => prop_assert!(measured < 1.25 || before.is_none() && measured < 1.5),
                }
            }
        }
    }
}

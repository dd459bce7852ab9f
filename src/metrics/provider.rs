//! What happens at one provider.

use std::time::Duration;

use super::counts::TallyCell;
use super::latency::Latency;
use super::tally::Tally;
use super::timeline::{Minute, Timeline};

/// Counts one provider's calls.
#[derive(Debug)]
pub(super) struct ProviderMetrics {
    /// Answered, by model.
    calls: TallyCell,
    errors: TallyCell,
    timeline: Timeline<ProviderCounts>,
    /// From the call to the first content.
    pub(super) first_content: Latency,
    /// From the call to the end of the answer.
    pub(super) total: Latency,
}

impl ProviderMetrics {
    pub(super) fn starting_in(minute: Minute) -> Self {
        Self {
            calls: TallyCell::default(),
            errors: TallyCell::default(),
            timeline: Timeline::starting_in(minute),
            first_content: Latency::starting_in(minute),
            total: Latency::starting_in(minute),
        }
    }

    pub(super) fn call(&self, now: Minute, model: &str, first_content: Option<Duration>, total: Duration) {
        self.timeline.turn(now, || self.read());
        self.calls.add(model, 1);
        if let Some(first_content) = first_content {
            self.first_content.record(now, first_content);
        }
        self.total.record(now, total);
    }

    pub(super) fn error(&self, now: Minute, class: &'static str) {
        self.timeline.turn(now, || self.read());
        self.errors.add(class, 1);
    }

    /// All that was counted.
    pub(super) fn read(&self) -> ProviderCounts {
        ProviderCounts { calls: self.calls.get(), errors: self.errors.get() }
    }

    /// What was counted since `minute`, which must be answerable in minute `now`.
    pub(super) fn since(&self, minute: Minute, now: Minute) -> ProviderCounts {
        self.timeline.turn(now, || self.read());
        let life = self.read();
        let before = self.timeline.value_at(minute).unwrap_or_default();
        ProviderCounts { calls: life.calls.minus(&before.calls), errors: life.errors.minus(&before.errors) }
    }
}

/// What happened at one provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProviderCounts {
    /// Answered calls, by model.
    pub(super) calls: Tally,
    /// Failed calls, by class.
    pub(super) errors: Tally,
}

//! How each target does, seen from our own calls to it.
//!
//! Why our own: a provider's status page is green through minutes in which it answers after sixty
//! seconds, or only every third call. Two things about calls to models decide how they are counted.
//! They last from seconds to minutes, so a call is judged when its first content comes and not when
//! it ends, and one that still waits is visible as an attempt and as in flight. And how long they
//! last depends on the question, so a target is compared with its own past and never with a fixed
//! number.
//!
//! Answers from the cache never come here: a hit flatters no provider.
//!
//! A busy target takes about 0.6 MB, an idle one 20 kB. All of it lives in memory: counts and norms
//! begin anew with the process.

mod alert;
mod baseline;
mod board;
mod export;
mod report;
#[cfg(test)]
mod tests;
mod window;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

pub use alert::{Alert, Condition};
pub use board::{Board, Labels};
pub use export::prometheus_text;
pub use report::{AlertReport, HealthReport, Norms, WindowReport};

use alert::Alarms;
use baseline::Baseline;
use window::Windows;

/// More tokens than any model writes: a provider that reports more reports nonsense, and must not
/// spoil the sums.
const MOST_TOKENS: u64 = 10_000_000;

/// The health of one target. Shared by all its calls. Recording takes a lock for some tens of
/// nanoseconds, and every five seconds for some tens of microseconds, to look at the alarms; a
/// report takes it for 0.2 ms. Nothing here awaits.
///
/// A `now` that lies before an earlier one, as threads may have it, counts as the earlier one.
#[derive(Debug)]
pub struct Health {
    labels: Labels,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    start: Instant,
    in_flight: u64,
    windows: Windows,
    baseline: Baseline,
    alarms: Alarms,
}

impl Health {
    /// Nothing measured yet.
    pub fn new(labels: Labels, now: Instant) -> Arc<Self> {
        let state = State {
            start: now,
            in_flight: 0,
            windows: Windows::default(),
            baseline: Baseline::default(),
            alarms: Alarms::default(),
        };
        Arc::new(Self { labels, state: Mutex::new(state) })
    }

    /// Whose health it is.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// A call is sent off. To be asked for right before, since all its durations run from `now`.
    pub fn started(self: &Arc<Self>, now: Instant) -> Call {
        let mut state = self.turned(now);
        state.in_flight += 1;
        state.windows.record(|slot| slot.attempts += 1);
        drop(state);
        Call { health: Arc::clone(self), started: now, first_content: None, over: false }
    }

    /// An attempt is about to be made again here after one that failed.
    pub fn retried(&self, now: Instant) {
        self.turned(now).windows.record(|slot| slot.retries += 1);
    }

    /// A second call, to this target, had its first content before the first one.
    pub fn hedge_won(&self, now: Instant) {
        self.turned(now).windows.record(|slot| slot.hedges_won += 1);
    }

    /// A second call, to this target, was made in vain.
    pub fn hedge_lost(&self, now: Instant) {
        self.turned(now).windows.record(|slot| slot.hedges_lost += 1);
    }

    /// A caller's request ended here, with its answer inside the caller's deadline or not. To be
    /// told once a request, of the target that was asked last.
    pub fn in_time(&self, in_time: bool, now: Instant) {
        self.turned(now).windows.record(|slot| if in_time { slot.in_time += 1 } else { slot.too_late += 1 });
    }

    /// Books what a call cost that did not finish: the loser of a hedge, an answer that broke off.
    /// A cost that is no number or negative counts as nothing.
    pub fn booked(&self, cost_usd: f64, now: Instant) {
        self.turned(now).windows.record(|slot| slot.book(cost_usd));
    }

    /// The alarms that stand now, in the order of [`Condition`].
    pub fn alerts(&self, now: Instant) -> Vec<Alert> {
        let mut state = self.turned(now);
        state.look(now);
        state.alarms.standing()
    }

    /// Everything about this target, as `GET /stats/providers` shows it.
    pub fn report(&self, now: Instant) -> HealthReport {
        let mut state = self.turned(now);
        state.look(now);
        HealthReport::of(&self.labels, &state, now)
    }

    /// The state, with its windows moved on to `now`. Whatever another thread's panic left behind
    /// is used as it is: the state is whole between two statements.
    fn turned(&self, now: Instant) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.turn(now);
        state
    }
}

impl State {
    /// Moves the windows on. Looks at the alarms whenever the finest of them has moved, so that an
    /// alarm rises and falls by what happens and not by who asks.
    fn turn(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.start);
        if let Some(block) = self.windows.ending_block(age) {
            self.baseline.learn(block);
        }
        if self.windows.turn(age) {
            self.look(now);
        }
    }

    fn look(&mut self, now: Instant) {
        let (minute, five_minutes) = (self.windows.minute(), self.windows.five_minutes());
        self.alarms.look(&minute, &five_minutes, &self.baseline, self.in_flight > 0, now);
    }
}

/// A call under way. Dropping it says that it was cancelled: it counts neither for nor against the
/// target, unless its first content had come.
#[derive(Debug)]
#[must_use = "dropping it says that the call was cancelled"]
pub struct Call {
    health: Arc<Health>,
    started: Instant,
    first_content: Option<Duration>,
    over: bool,
}

/// What is known of an answer at its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Finished {
    /// Tokens of the answer, as the provider reports them.
    pub output_tokens: Option<u64>,
    /// What the call cost in US dollars; `None` when the price is not known.
    pub cost_usd: Option<f64>,
}

impl Call {
    /// Content has come in a stream; only the first time counts. Not for an answer that comes
    /// whole: its first content is its end, and would make the target look slow.
    pub fn content(&mut self, now: Instant) {
        if self.first_content.is_some() {
            return;
        }
        let after = now.saturating_duration_since(self.started);
        self.first_content = Some(after);
        self.health.turned(now).windows.record(|slot| {
            slot.judged += 1;
            slot.first_content.record(after);
        });
    }

    /// The answer is complete.
    pub fn finished(mut self, finished: Finished, now: Instant) {
        self.over = true;
        let total = now.saturating_duration_since(self.started);
        let tokens = finished.output_tokens.unwrap_or(0).min(MOST_TOKENS);
        let writing = self.first_content.map(|first_content| total.saturating_sub(first_content));
        let judged = u64::from(self.first_content.is_none());
        let mut state = self.health.turned(now);
        state.in_flight = state.in_flight.saturating_sub(1);
        state.windows.record(|slot| {
            slot.answers += 1;
            slot.judged += judged;
            slot.total.record(total);
            slot.output_tokens += tokens;
            slot.book(finished.cost_usd.unwrap_or(0.0));
            if let Some(writing) = writing {
                slot.wrote(tokens, writing);
            }
        });
    }

    /// The call failed and the target is to blame, before its first content or after; `label` is
    /// the error's, from its closed set.
    pub fn failed(self, label: &'static str, now: Instant) {
        self.ended(label, 1, now);
    }

    /// The target refused the request for a reason that lies in it: not valid, too long, filtered.
    /// Counted by its label like a failure, and judged like an answer: the target works.
    pub fn refused(self, label: &'static str, now: Instant) {
        self.ended(label, 0, now);
    }

    fn ended(mut self, label: &'static str, failures: u64, now: Instant) {
        self.over = true;
        let judged = u64::from(self.first_content.is_none());
        let mut state = self.health.turned(now);
        state.in_flight = state.in_flight.saturating_sub(1);
        state.windows.record(|slot| {
            slot.judged += judged;
            slot.failures += failures;
            *slot.errors.entry(label).or_default() += 1;
        });
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        // A drop is not told the time.
        let mut state = self.health.turned(Instant::now());
        state.in_flight = state.in_flight.saturating_sub(1);
        state.windows.record(|slot| slot.cancelled += 1);
    }
}

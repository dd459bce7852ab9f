//! From what each caller saw to the figures of a phase.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde::Serialize;

use super::timetable::{Span, Timetable};

/// What one caller saw.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    /// When the request was to be sent, since the start of the drill.
    pub(super) due: Duration,
    /// How much later than that it was sent: the generator's own fault.
    pub(super) late: Duration,
    /// Requests of one number ask the same.
    pub(super) question: u64,
    pub(super) ending: Ending,
    /// From when it was due to the first piece of content.
    pub(super) first_content: Option<Duration>,
    /// From when it was due to the end.
    pub(super) total: Duration,
    /// Who answered.
    pub(super) source: Source,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With its whole answer.
    Answered,
    /// With an answer to something else.
    Wrong,
    /// With an answer that broke off.
    Broken,
    /// With this error status.
    Refused(u16),
    /// With no word at all.
    Lost,
}

/// Who answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Source {
    /// In a few words; empty for nobody.
    pub(super) name: String,
    /// From memory, as fresh as the caller wants it: no provider was asked.
    pub(super) is_hit: bool,
    /// Less than the caller asked for: a smaller model, or an answer past its time.
    pub(super) is_degraded: bool,
}

impl Sample {
    fn is_answered(&self) -> bool {
        self.ending == Ending::Answered
    }

    /// Who answered, or what came in place of an answer.
    fn served_by(&self) -> String {
        match self.ending {
            Ending::Answered => self.source.name.clone(),
            Ending::Wrong => "nobody (a wrong answer)".to_owned(),
            Ending::Broken => "nobody (it broke off)".to_owned(),
            Ending::Refused(status) => format!("nobody ({status})"),
            Ending::Lost => "nobody (no word)".to_owned(),
        }
    }

    /// How long the caller waited.
    pub(super) fn waited(&self) -> Duration {
        self.total.saturating_sub(self.late)
    }
}

/// All that was seen in a drill.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) samples: Vec<Sample>,
    /// How many calls the providers had had at some moments, in their order.
    pub(super) calls: Vec<(Duration, u64)>,
}

/// What happened in one phase. Shares are of 1; a request belongs to the phase in which it was due,
/// a call to the one in which a provider got it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Requests that callers made.
    pub requests: u64,
    /// Of them, those with a whole answer to what was asked.
    pub success: f64,
    /// Of them, those that had it inside the deadline.
    pub goodput: f64,
    /// From when an answered request was due to its first content. Hits from memory are left out, here
    /// and in `total`: they must not flatter the providers.
    pub first_content: Option<Quantiles>,
    /// From when it was due to the last byte.
    pub total: Option<Quantiles>,
    /// Calls to providers for each request that memory did not answer; `None` when it answered all.
    pub calls_per_request: Option<f64>,
    /// Answers inside the deadline by providers, by the second in which they were whole.
    pub answers_per_second: f64,
    /// Answered by a smaller model, or past an answer's time.
    pub degraded: f64,
    /// Told to come again later (429 and 503): no room here, or none at any provider.
    pub shed: f64,
    /// Who answered, of all requests; for those without an answer, what came in its place.
    pub served: BTreeMap<String, f64>,
}

/// Two quantiles of a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// The median, in milliseconds.
    pub p50_ms: f64,
    /// What 99 of 100 do not exceed, in milliseconds.
    pub p99_ms: f64,
    /// Of how many.
    pub of: u64,
}

/// A timer is a millisecond or two late, a task on a busy machine tens of them; beyond this, the
/// machine has more to do than it can.
const LATE_MS: f64 = 50.0;

impl Record {
    /// The figures of a span, judged by this deadline.
    pub(super) fn figures(&self, times: Timetable, span: Span, deadline: Duration) -> Figures {
        let (from, to) = times.span(span);
        let samples: Vec<&Sample> =
            self.samples.iter().filter(|sample| (from..to).contains(&sample.due)).collect();
        let requests = count(&samples, |_| true);
        let part = |is: fn(&Sample) -> bool| share(count(&samples, is), requests);
        let in_time = |sample: &Sample| sample.is_answered() && sample.waited() <= deadline;
        let mut served: BTreeMap<String, u64> = BTreeMap::new();
        for sample in &samples {
            *served.entry(sample.served_by()).or_default() += 1;
        }
        let asked = count(&samples, |sample| !sample.source.is_hit);
        let whole_by = |sample: &&Sample| (from..to).contains(&(sample.due + sample.total));
        let given: Vec<&Sample> = self
            .samples
            .iter()
            .filter(|sample| in_time(sample) && !sample.source.is_hit)
            .filter(whole_by)
            .collect();
        let by_providers = || samples.iter().filter(|sample| sample.is_answered() && !sample.source.is_hit);
        Figures {
            requests,
            success: part(Sample::is_answered),
            goodput: share(count(&samples, in_time), requests),
            first_content: Quantiles::of(by_providers().filter_map(|sample| sample.first_content)),
            total: Quantiles::of(by_providers().map(|sample| sample.total)),
            calls_per_request: (asked > 0).then(|| share(self.calls_between(from, to), asked)),
            answers_per_second: as_f64(count(&given, |_| true))
                / to.saturating_sub(from).as_secs_f64().max(1e-3),
            degraded: part(|sample| sample.is_answered() && sample.source.is_degraded),
            shed: part(|sample| matches!(sample.ending, Ending::Refused(429 | 503))),
            served: served.into_iter().map(|(name, times)| (name, share(times, requests))).collect(),
        }
    }

    fn calls_between(&self, from: Duration, to: Duration) -> u64 {
        let until = |at: Duration| {
            let known = self.calls.iter().rev().find(|(moment, _)| *moment <= at);
            known.map_or(0, |(_, calls)| *calls)
        };
        until(to).saturating_sub(until(from))
    }

    /// Of the requests in a span whose question had been answered before they were due: how many
    /// there were, and how many were answered again.
    pub(super) fn known(&self, times: Timetable, span: Span) -> (u64, u64) {
        let (from, to) = times.span(span);
        let mut first_answer: HashMap<u64, Duration> = HashMap::new();
        for sample in self.samples.iter().filter(|sample| sample.is_answered() && !sample.source.is_degraded)
        {
            let at = sample.due + sample.total;
            let first = first_answer.entry(sample.question).or_insert(at);
            *first = at.min(*first);
        }
        let is_known =
            |sample: &&Sample| first_answer.get(&sample.question).is_some_and(|first| *first <= sample.due);
        let known: Vec<&Sample> =
            self.samples.iter().filter(|sample| (from..to).contains(&sample.due)).filter(is_known).collect();
        (count(&known, |_| true), count(&known, Sample::is_answered))
    }

    /// The longest that any caller waited.
    pub(super) fn longest_wait(&self) -> Duration {
        self.samples.iter().map(Sample::waited).max().unwrap_or_default()
    }

    /// How late the generator was: 99 of 100 requests no more than this.
    pub(super) fn lateness_ms(&self) -> f64 {
        Quantiles::of(self.samples.iter().map(|sample| sample.late)).map_or(0.0, |late| late.p99_ms)
    }

    /// Whether the machine kept up with the load. If not, times are its own and not the service's.
    pub(super) fn is_punctual(&self) -> bool {
        self.lateness_ms() <= LATE_MS
    }

    /// Answers to something else.
    pub(super) fn wrong(&self) -> u64 {
        self.samples.iter().filter(|sample| sample.ending == Ending::Wrong).count() as u64
    }
}

impl Quantiles {
    /// By nearest rank; `None` of nothing.
    fn of(times: impl Iterator<Item = Duration>) -> Option<Self> {
        let mut times: Vec<Duration> = times.collect();
        times.sort_unstable();
        let at = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100).max(1);
            times.get(rank - 1).map(|time| time.as_secs_f64() * 1e3)
        };
        Some(Self { p50_ms: at(50)?, p99_ms: at(99)?, of: times.len() as u64 })
    }
}

fn count(samples: &[&Sample], is: impl Fn(&Sample) -> bool) -> u64 {
    samples.iter().filter(|sample| is(sample)).count() as u64
}

/// A part of all; 0 of nothing.
fn share(part: u64, all: u64) -> f64 {
    as_f64(part) / as_f64(all.max(1))
}

#[expect(clippy::cast_precision_loss, reason = "counts of a drill are small")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;

//! What became of a stream, and the figures to say it in.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Question;
use crate::eval::curve::{Best, Curve};
use crate::eval::report;
use crate::eval::score::{Interval, rate, wilson};
use crate::eval::table::{percent, share};

/// Parts of the stream at whose ends the figures so far are noted.
const CHECKPOINTS: usize = 20;

/// Where an answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    Exact,
    Semantic,
    Upstream,
}

/// What became of one question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) served: Served,
    pub(super) wrong: bool,
    /// A question of this class had been asked before.
    pub(super) repeats: bool,
    /// An answer of this class was stored, and this kept it from being served.
    pub(super) missed: Option<&'static str>,
}

impl Event {
    fn is_hit(&self) -> bool {
        self.served != Served::Upstream
    }
}

/// What became of a stream.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    pub(super) stream: &'a [Question],
    pub(super) events: Vec<Event>,
}

impl Run<'_> {
    /// Answers from the cache, right and wrong ones.
    pub(super) fn hits(&self) -> u32 {
        count(self.events.iter().filter(|event| event.is_hit()))
    }

    pub(super) fn wrong(&self) -> u32 {
        count(self.events.iter().filter(|event| event.wrong))
    }

    /// The figures over the whole stream. `curve` is the judge's.
    pub fn figures(&self, judge: &str, curve: &Curve) -> Figures {
        Figures {
            at_1_percent_wrong: curve.best_within(0.01),
            at_2_percent_wrong: curve.best_within(0.02),
            course: self.course(),
            ..self.figures_where(judge, |_| true)
        }
    }

    /// The figures over the questions of one source.
    pub(super) fn figures_where(&self, judge: &str, of: impl Fn(&Question) -> bool) -> Figures {
        let events = || self.stream.iter().zip(&self.events).filter(|(asked, _)| of(asked)).map(|(_, it)| it);
        let requests = count(events());
        let hits = count(events().filter(|event| event.is_hit()));
        let wrong = count(events().filter(|event| event.wrong));
        let mut missed = BTreeMap::<&'static str, u32>::new();
        for reason in events().filter_map(|event| event.missed) {
            *missed.entry(reason).or_default() += 1;
        }
        Figures {
            judge: judge.to_owned(),
            requests,
            ideal_hit_rate: rate(count(events().filter(|event| event.repeats)), requests),
            hit_rate: rate(hits, requests),
            hit_interval: wilson(hits, requests),
            exact_rate: rate(count(events().filter(|event| event.served == Served::Exact)), requests),
            wrong_rate: rate(wrong, requests),
            wrong_interval: wilson(wrong, requests),
            precision: rate(hits - wrong, hits),
            at_1_percent_wrong: None,
            at_2_percent_wrong: None,
            missed,
            course: Vec::new(),
        }
    }

    fn course(&self) -> Vec<Checkpoint> {
        let (mut requests, mut hits, mut wrong) = (0, 0, 0);
        let mut checkpoints = Vec::new();
        let part = self.events.len().div_ceil(CHECKPOINTS);
        for events in self.events.chunks(part.max(1)) {
            requests += count(events.iter());
            hits += count(events.iter().filter(|event| event.is_hit()));
            wrong += count(events.iter().filter(|event| event.wrong));
            let (hit_rate, wrong_rate) = (rate(hits, requests), rate(wrong, requests));
            checkpoints.push(Checkpoint { requests, hit_rate, wrong_rate });
        }
        checkpoints
    }
}

/// What one policy does on a stream. Rates are shares of all requests; intervals are those of
/// independent requests, which a stream's are not quite.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Whose scores these are.
    pub judge: String,
    /// Questions asked.
    pub requests: u32,
    /// Questions whose class had been asked before: what a perfect cache would hit.
    pub ideal_hit_rate: Option<f64>,
    /// Hits, right and wrong.
    pub hit_rate: Option<f64>,
    /// With 95 % confidence.
    pub hit_interval: Interval,
    /// Hits on the very same text among them.
    pub exact_rate: Option<f64>,
    /// Wrong answers served from the cache.
    pub wrong_rate: Option<f64>,
    /// With 95 % confidence.
    pub wrong_interval: Interval,
    /// Right hits among all hits.
    pub precision: Option<f64>,
    /// The judge's most hits at 1 % wrong answers; not by kind.
    pub at_1_percent_wrong: Option<Best>,
    /// The judge's most hits at 2 % wrong answers; not by kind.
    pub at_2_percent_wrong: Option<Best>,
    /// Questions whose answer was stored and not served, by what refused it: a stage, `score`,
    /// `policy`, a reason for having no vector, or `not_near` when it was not among the candidates.
    pub missed: BTreeMap<&'static str, u32>,
    /// How hits and wrong answers came about; not by kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<Checkpoint>,
}

/// The rates over the first part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Checkpoint {
    /// The part's length.
    pub requests: u32,
    /// Hits, right and wrong.
    pub hit_rate: Option<f64>,
    /// Wrong answers served from the cache.
    pub wrong_rate: Option<f64>,
}

impl report::Figures for Figures {
    const WRONG: &'static str = "of all requests";

    fn judge(&self) -> &str {
        &self.judge
    }

    fn rates(&self) -> (Option<f64>, Option<f64>) {
        (self.hit_rate, self.wrong_rate)
    }

    fn columns(&self) -> Vec<(&'static str, String)> {
        let best = |best: &Option<Best>| percent(best.map(|best| best.hit_rate), 1);
        vec![
            ("requests", self.requests.to_string()),
            ("ideal", percent(self.ideal_hit_rate, 1)),
            ("at <= 1 % wrong", best(&self.at_1_percent_wrong)),
            ("at <= 2 %", best(&self.at_2_percent_wrong)),
            ("hits", share(self.hit_rate, self.hit_interval, 1)),
            ("exact", percent(self.exact_rate, 1)),
            ("wrong", share(self.wrong_rate, self.wrong_interval, 2)),
            ("precision", percent(self.precision, 1)),
        ]
    }
}

pub(super) fn count(things: impl Iterator) -> u32 {
    u32::try_from(things.count()).unwrap_or(u32::MAX)
}

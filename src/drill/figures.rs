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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const DEADLINE: Duration = Duration::from_secs(1);

    /// Ten seconds: before until 3, during until 7.
    fn times() -> Timetable {
        Timetable::of(Duration::from_secs(10))
    }

    fn answered(due: u64, total: u64) -> Sample {
        Sample {
            due: ms(due),
            late: Duration::ZERO,
            question: due,
            ending: Ending::Answered,
            first_content: Some(ms(total / 2)),
            total: ms(total),
            source: Source { name: "a".into(), ..Source::default() },
        }
    }

    fn record(samples: Vec<Sample>) -> Record {
        Record { samples, calls: Vec::new() }
    }

    fn before(samples: Vec<Sample>) -> Figures {
        record(samples).figures(times(), Span::Before, DEADLINE)
    }

    #[test]
    fn shares_are_of_the_requests_that_were_due_in_the_span() {
        let hit = Source { name: "memory".into(), is_hit: true, is_degraded: false };
        let small = Source { name: "small".into(), is_hit: false, is_degraded: true };
        let figures = before(vec![
            answered(0, 100),
            Sample { source: hit, total: ms(1), ..answered(10, 1) },
            Sample { source: small, ..answered(20, 200) },
            answered(30, 1_200),
            Sample { ending: Ending::Refused(503), ..answered(40, 5) },
            Sample { ending: Ending::Refused(502), ..answered(50, 5) },
            Sample { ending: Ending::Broken, ..answered(60, 5) },
            Sample { ending: Ending::Lost, ..answered(2_999, 5) },
            answered(3_000, 100),
        ]);
        assert_eq!(figures.requests, 8);
        assert_eq!((figures.success, figures.goodput), (0.5, 0.375));
        assert_eq!((figures.degraded, figures.shed), (0.125, 0.125));
        let served: Vec<_> = figures.served.iter().map(|(name, share)| (name.as_str(), *share)).collect();
        let refused = [("nobody (502)", 0.125), ("nobody (503)", 0.125)];
        let lost = [("nobody (it broke off)", 0.125), ("nobody (no word)", 0.125)];
        let answered = [[("a", 0.25), ("memory", 0.125)], refused, lost].concat();
        assert_eq!(served, [answered, vec![("small", 0.125)]].concat());
    }

    #[test]
    fn hits_do_not_flatter_the_providers() {
        let hit = Source { name: "memory".into(), is_hit: true, is_degraded: false };
        let hits = (0..99).map(|due| Sample { source: hit.clone(), ..answered(due, 0) });
        let mut record = record(hits.chain([answered(500, 100)]).collect());
        record.calls = vec![(ms(0), 0), (ms(3_000), 2), (ms(7_000), 9)];
        let figures = record.figures(times(), Span::Before, DEADLINE);
        let total = figures.total.unwrap();
        assert_eq!((total.p50_ms, total.of), (100.0, 1));
        assert_eq!(figures.calls_per_request, Some(2.0));
        assert!((figures.answers_per_second - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_asked_is_nothing_seen() {
        let figures = before(Vec::new());
        assert_eq!((figures.requests, figures.success, figures.calls_per_request), (0, 0.0, None));
        assert_eq!((figures.first_content, figures.served.len()), (None, 0));
    }

    #[test]
    fn calls_belong_to_the_span_in_which_they_came() {
        let calls = vec![(ms(0), 0), (ms(3_000), 30), (ms(4_000), 60), (ms(7_000), 100), (ms(10_000), 110)];
        let record = Record { samples: (0..10).map(|n| answered(n * 1_000, 10)).collect(), calls };
        let calls = |span| record.figures(times(), span, DEADLINE).calls_per_request;
        assert_eq!((calls(Span::Before), calls(Span::During)), (Some(10.0), Some(17.5)));
        assert_eq!((calls(Span::Settled), calls(Span::After)), (Some(40.0 / 3.0), Some(10.0 / 3.0)));
    }

    #[test]
    fn answers_per_second_count_by_their_end() {
        let samples =
            vec![answered(2_900, 200), answered(3_500, 100), answered(6_900, 200), answered(6_000, 1_500)];
        let figures = record(samples).figures(times(), Span::During, DEADLINE);
        assert!((figures.answers_per_second - 0.5).abs() < 1e-9, "of the first, and of the second");
    }

    #[test]
    fn a_question_is_known_once_it_was_answered() {
        let same = |due, ending| Sample { question: 7, ending, ..answered(due, 100) };
        let samples = vec![
            same(2_000, Ending::Answered),
            same(2_050, Ending::Answered),
            same(3_000, Ending::Answered),
            same(3_100, Ending::Refused(502)),
            answered(3_200, 100),
        ];
        assert_eq!(record(samples).known(times(), Span::During), (2, 1));
    }

    #[test]
    fn a_late_generator_is_not_the_callers_wait() {
        let late = Sample { late: ms(300), ..answered(0, 1_200) };
        let figures = before(vec![late.clone()]);
        assert_eq!((figures.goodput, figures.total.unwrap().p50_ms), (1.0, 1_200.0));
        let record = record(vec![late]);
        assert_eq!(record.longest_wait(), ms(900));
    }

    #[test]
    fn one_late_request_of_a_hundred_is_borne() {
        let late = |late: u64| {
            let sample = |n| Sample { late: ms(if n < late { 51 } else { 1 }), ..answered(n, 10) };
            record((0..100).map(sample).collect())
        };
        assert!(late(1).is_punctual() && !late(2).is_punctual());
        assert!(record(Vec::new()).is_punctual());
    }

    proptest! {
        #[test]
        fn quantiles_are_nearest_ranks(times in prop::collection::vec(0..10_000_u64, 1..300)) {
            let quantiles = Quantiles::of(times.iter().map(|time| ms(*time))).unwrap();
            for (percent, value) in [(50, quantiles.p50_ms), (99, quantiles.p99_ms)] {
                let at_most = times.iter().filter(|time| ms(**time).as_secs_f64() * 1e3 <= value).count();
                let below = times.iter().filter(|time| ms(**time).as_secs_f64() * 1e3 < value).count();
                prop_assert!(at_most * 100 >= times.len() * percent);
                prop_assert!(below * 100 < times.len() * percent);
            }
        }

        #[test]
        fn shares_of_who_served_make_the_whole(endings in prop::collection::vec(0..3_u8, 1..50)) {
            let samples = endings.iter().zip(0..).map(|(ending, due)| match ending {
                0 => answered(due, 10),
                1 => Sample { ending: Ending::Lost, ..answered(due, 10) },
                _ => Sample { source: Source { name: "b".into(), ..Source::default() }, ..answered(due, 10) },
            });
            let figures = before(samples.collect());
            prop_assert!((figures.served.values().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(figures.goodput <= figures.success);
        }
    }
}

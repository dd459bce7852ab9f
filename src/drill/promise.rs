//! What must hold on a bad day, and whether it did.

use std::time::Duration;

use serde::Serialize;

use super::figures::{Figures, Record};
use super::timetable::{Span, Timetable};

/// Of the requests, this part is answered.
const SUCCESS: f64 = 0.999;
/// And this part inside the deadline.
const GOODPUT: f64 = 0.99;
/// First contents may take so much longer than before.
const SLOWER: f64 = 2.0;
/// Faster than this is never slow, whatever was normal: the breaker's own rule.
const NEVER_SLOW_MS: f64 = 100.0;
/// Of fewer requests, a p99 is just the longest, and a percentage one of them.
const ENOUGH: u64 = 100;
/// What the machine may add to a deadline: the drill shares it with the service and the providers.
const GRACE: Duration = Duration::from_millis(250);

/// Something that must hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Promise {
    /// Requests are answered.
    Success(Span),
    /// And inside the deadline.
    Goodput(Span),
    /// First content comes about as soon as before.
    FirstContent(Span),
    /// No more calls a request than this.
    Attempts { span: Span, most: f64 },
    /// No more requests than this share get less than they asked for.
    Degraded { span: Span, most: f64 },
    /// The answers inside the deadline are this share of so many a second.
    Yield { span: Span, share: f64, of: f64 },
    /// What was answered before is answered again.
    Known(Span),
    /// Nobody waits for longer than the deadline.
    Deadline,
    /// No answer belongs to another question.
    Right,
}

/// A promise and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// What must hold.
    pub promise: String,
    /// What was measured.
    pub measured: String,
    /// Whether it held.
    pub verdict: Verdict,
}

/// Whether a promise held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It did.
    Kept,
    /// It did not.
    Broken,
    /// There were too few requests to say, or the machine was too busy.
    Unjudged,
}

impl Promise {
    /// Whether it held in this drill.
    pub(super) fn judge(self, record: &Record, times: Timetable, deadline: Duration) -> Judged {
        let of = |span| record.figures(times, span, deadline);
        match self {
            Self::Success(span) => {
                let Figures { requests, success, .. } = of(span);
                let promise =
                    format!("{}: at least {} of the requests are answered", span.name(), percent(SUCCESS));
                judged(promise, percent(success), (requests > 0).then_some(success >= SUCCESS))
            }
            Self::Goodput(span) => {
                let Figures { requests, goodput, .. } = of(span);
                let promise = format!(
                    "{}: at least {} are answered inside the deadline",
                    span.name(),
                    percent(GOODPUT)
                );
                judged(promise, percent(goodput), (requests > 0).then_some(goodput >= GOODPUT))
            }
            Self::FirstContent(span) => {
                let late_ms = record.is_punctual().then(|| record.lateness_ms());
                first_content(span, &of(Span::Before), &of(span), late_ms)
            }
            Self::Attempts { span, most } => {
                let Figures { requests, calls_per_request: calls, .. } = of(span);
                let promise = format!("{}: at most {most} calls a request", span.name());
                let measured = calls.map_or("no request".to_owned(), |calls| format!("{calls:.2}"));
                judged(promise, measured, calls.filter(|_| requests >= ENOUGH).map(|calls| calls <= most))
            }
            Self::Degraded { span, most } => {
                let Figures { requests, degraded, .. } = of(span);
                let promise = format!(
                    "{}: at most {} get less than the model they asked for",
                    span.name(),
                    percent(most)
                );
                judged(promise, percent(degraded), (requests >= ENOUGH).then_some(degraded <= most))
            }
            Self::Yield { span, share, of: possible } => {
                let Figures { requests, answers_per_second, .. } = of(span);
                let promise = format!(
                    "{}: at least {} of the {possible:.0} answers/s that can be had",
                    span.name(),
                    percent(share)
                );
                let can_say = requests >= ENOUGH && record.is_punctual();
                let measured =
                    format!("{answers_per_second:.0}/s, {}", percent(answers_per_second / possible));
                judged(promise, measured, can_say.then_some(answers_per_second >= share * possible))
            }
            Self::Known(span) => {
                let (asked, answered) = record.known(times, span);
                let promise = format!("{}: questions that were answered before are answered", span.name());
                judged(promise, format!("{answered} of {asked}"), (asked > 0).then_some(answered == asked))
            }
            Self::Deadline => {
                let longest = record.longest_wait();
                let promise = format!("nobody waits for longer than the deadline, {deadline:?}");
                judged(promise, format!("{} ms", longest.as_millis()), Some(longest <= deadline + GRACE))
            }
            Self::Right => {
                let wrong = record.wrong();
                judged(
                    "no answer belongs to another question".to_owned(),
                    wrong.to_string(),
                    Some(wrong == 0),
                )
            }
        }
    }
}

/// `late_ms` is what the generator added to times, `None` when too much for them to say anything.
fn first_content(span: Span, before: &Figures, now: &Figures, late_ms: Option<f64>) -> Judged {
    let promise = format!(
        "{}: first content's p99 is at most {SLOWER} x that of before, or {NEVER_SLOW_MS} ms",
        span.name()
    );
    let (Some(before), Some(now)) = (before.first_content, now.first_content) else {
        return judged(promise, "no answer".to_owned(), None);
    };
    let most = (before.p99_ms * SLOWER).max(NEVER_SLOW_MS);
    let late_ms = late_ms.filter(|_| before.of >= ENOUGH && now.of >= ENOUGH);
    let measured = format!("{:.0} ms, {:.0} ms before", now.p99_ms, before.p99_ms);
    judged(promise, measured, late_ms.map(|late_ms| now.p99_ms <= most + late_ms))
}

fn judged(promise: String, measured: String, held: Option<bool>) -> Judged {
    let verdict = match held {
        Some(true) => Verdict::Kept,
        Some(false) => Verdict::Broken,
        None => Verdict::Unjudged,
    };
    Judged { promise, measured, verdict }
}

/// To a tenth of a percent, rounded down, so that 100 % means all of them.
pub(super) fn percent(share: f64) -> String {
    // A share such as 0.999 is a little less than that in binary.
    format!("{:.1} %", (share * 1e3 + 1e-6).floor() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::super::figures::{Ending, Sample, Source};
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(1);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn answered(due: u64, total: u64) -> Sample {
        Sample {
            due: ms(due),
            late: Duration::ZERO,
            question: due,
            ending: Ending::Answered,
            first_content: Some(ms(total)),
            total: ms(total),
            source: Source { name: "a".into(), ..Source::default() },
        }
    }

    fn verdict(promise: Promise, samples: Vec<Sample>, calls: u64) -> Verdict {
        let calls = vec![(ms(0), 0), (ms(3_000), calls)];
        let times = Timetable::of(Duration::from_secs(10));
        promise.judge(&Record { samples, calls }, times, DEADLINE).verdict
    }

    fn thousand(failed: u64) -> Vec<Sample> {
        let failed = |due| if due < failed { Ending::Refused(502) } else { Ending::Answered };
        (0..1_000).map(|due| Sample { ending: failed(due), ..answered(due, 10) }).collect()
    }

    #[test]
    fn one_failure_of_a_thousand_is_borne_and_two_are_not() {
        let success = Promise::Success(Span::Before);
        assert_eq!(verdict(success, thousand(1), 0), Verdict::Kept);
        assert_eq!(verdict(success, thousand(2), 0), Verdict::Broken);
        assert_eq!(verdict(success, Vec::new(), 0), Verdict::Unjudged);
        let goodput = Promise::Goodput(Span::Before);
        let slow =
            |slow: u64| (0..100).map(|due| answered(due, if due < slow { 1_001 } else { 10 })).collect();
        assert_eq!(verdict(goodput, slow(1), 0), Verdict::Kept);
        assert_eq!(verdict(goodput, slow(2), 0), Verdict::Broken);
    }

    #[test]
    fn calls_a_request_are_bounded() {
        let attempts = Promise::Attempts { span: Span::Before, most: 1.2 };
        assert_eq!(verdict(attempts, thousand(1_000), 1_200), Verdict::Kept);
        assert_eq!(verdict(attempts, thousand(1_000), 1_201), Verdict::Broken);
        assert_eq!(verdict(attempts, vec![answered(0, 10)], 5), Verdict::Unjudged, "of one request");
    }

    #[test]
    fn first_content_is_judged_by_what_was_normal() {
        let promise = Promise::FirstContent(Span::Settled);
        let with = |requests: u64, before: u64, now: u64| {
            let normal = (0..requests).map(|due| answered(due, before));
            let bad = (0..requests).map(|due| answered(4_000 + due, now));
            verdict(promise, normal.chain(bad).collect(), 0)
        };
        assert_eq!(with(100, 80, 160), Verdict::Kept);
        assert_eq!(with(100, 80, 161), Verdict::Broken);
        assert_eq!(with(100, 10, 100), Verdict::Kept, "nobody waits for that");
        assert_eq!(with(99, 80, 500), Verdict::Unjudged);
    }

    #[test]
    fn a_machine_that_is_late_says_nothing_of_times() {
        let late = |sample| Sample { late: ms(51), ..sample };
        let samples = || (0..300).map(|due| late(answered(due * 9, 500))).collect::<Vec<_>>();
        let promise = Promise::Yield { span: Span::Before, share: 0.8, of: 1_000.0 };
        assert_eq!(verdict(promise, samples(), 0), Verdict::Unjudged);
        assert_eq!(verdict(Promise::FirstContent(Span::Before), samples(), 0), Verdict::Unjudged);
        assert_eq!(verdict(Promise::Success(Span::Before), samples(), 0), Verdict::Kept);
    }

    #[test]
    fn what_can_be_had_is_had() {
        let promise = |of| Promise::Yield { span: Span::Before, share: 0.8, of };
        let samples = || (0..300).map(|due| answered(due * 9, 10)).collect::<Vec<_>>();
        assert_eq!(verdict(promise(125.0), samples(), 0), Verdict::Kept);
        assert_eq!(verdict(promise(126.0), samples(), 0), Verdict::Broken);
    }

    #[test]
    fn a_deadline_is_for_everybody() {
        assert_eq!(verdict(Promise::Deadline, vec![answered(0, 1_250)], 0), Verdict::Kept);
        let waits = Sample { ending: Ending::Refused(504), ..answered(0, 1_251) };
        assert_eq!(verdict(Promise::Deadline, vec![waits], 0), Verdict::Broken);
        let wrong = Sample { ending: Ending::Wrong, ..answered(0, 5) };
        assert_eq!(verdict(Promise::Right, vec![wrong], 0), Verdict::Broken);
    }

    #[test]
    fn a_hundred_percent_means_all() {
        assert_eq!(
            (percent(1.0), percent(0.9999), percent(0.999)),
            ("100.0 %".into(), "99.9 %".into(), "99.9 %".into())
        );
        assert_eq!(
            (percent(0.01), percent(0.0), percent(0.8)),
            ("1.0 %".into(), "0.0 %".into(), "80.0 %".into())
        );
    }
}

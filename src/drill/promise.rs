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
mod tests;

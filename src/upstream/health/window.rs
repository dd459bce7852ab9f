//! What happened in the last minute, the last five minutes and the last hour.
//!
//! Why slots that fall out one by one, and not the timeline of whole minutes that the statistics
//! keep: a window that begins at a whole minute is up to two minutes long, and an alarm over one
//! minute must have risen and fallen by then.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::metrics::Quantiles;

/// A distribution counts in tenths of a millisecond: the pause between two tokens is a few of them.
const TICK: Duration = Duration::from_micros(100);

/// Anything longer counts as this, ten minutes in ticks.
const LONGEST: u64 = 6_000_000;

/// Significant figures: within 1 %.
const FIGURES: u8 = 2;

/// What happened in a span of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    /// Calls sent off.
    pub(super) attempts: u64,
    /// Calls of which it became known whether they work: at first content, at the end of a whole
    /// answer, or at a failure before either.
    pub(super) judged: u64,
    /// Calls answered to the end.
    pub(super) answers: u64,
    /// Calls given up by us.
    pub(super) cancelled: u64,
    pub(super) retries: u64,
    pub(super) hedges_won: u64,
    pub(super) hedges_lost: u64,
    /// Requests that had their answer inside their deadline.
    pub(super) in_time: u64,
    /// Requests that had not.
    pub(super) too_late: u64,
    pub(super) output_tokens: u64,
    pub(super) cost_usd: f64,
    /// Calls that failed and the target is to blame.
    pub(super) failures: u64,
    /// Calls without an answer by label, whoever is to blame.
    pub(super) errors: BTreeMap<&'static str, u64>,
    /// From dispatch, of streams.
    pub(super) first_content: Spread,
    /// Between two tokens, on average over a stream.
    pub(super) inter_token: Spread,
    /// From dispatch, of complete answers.
    pub(super) total: Spread,
    /// Tokens after the first of each stream, and how long writing them took.
    written: u64,
    writing: Duration,
}

impl Slot {
    /// Adds a cost, if it is one.
    pub(super) fn book(&mut self, cost_usd: f64) {
        if cost_usd.is_finite() && cost_usd > 0.0 {
            self.cost_usd += cost_usd;
        }
    }

    /// A stream of `tokens` took `writing` from its first content to its end. Anything above ten
    /// thousand tokens a second is a buffer that was emptied, and says nothing of the model.
    pub(super) fn wrote(&mut self, tokens: u64, writing: Duration) {
        let after_first = tokens.saturating_sub(1);
        let Some(ticks) = ticks(writing).checked_div(after_first).filter(|ticks| *ticks > 0) else { return };
        self.inter_token.record_ticks(ticks);
        self.written += after_first;
        self.writing += writing;
    }

    /// Tokens written a second, over all streams: long ones weigh more. `None` without any.
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
    pub(super) fn tokens_per_second(&self) -> Option<f64> {
        (self.written > 0).then(|| self.written as f64 / self.writing.as_secs_f64())
    }

    /// The share of the judged calls that failed; `None` without such calls. An answer may break
    /// off in another slot than it was judged in, so failures alone are all there is, at most.
    pub(super) fn error_rate(&self) -> Option<f64> {
        share(self.failures, self.judged.max(self.failures))
    }

    /// The share of the requests that had their answer in time; `None` without requests.
    pub(super) fn goodput(&self) -> Option<f64> {
        share(self.in_time, self.in_time + self.too_late)
    }

    fn add(&mut self, more: &Self) {
        self.attempts += more.attempts;
        self.judged += more.judged;
        self.answers += more.answers;
        self.cancelled += more.cancelled;
        self.retries += more.retries;
        self.hedges_won += more.hedges_won;
        self.hedges_lost += more.hedges_lost;
        self.in_time += more.in_time;
        self.too_late += more.too_late;
        self.output_tokens += more.output_tokens;
        self.cost_usd += more.cost_usd;
        self.failures += more.failures;
        for (label, n) in &more.errors {
            *self.errors.entry(label).or_default() += n;
        }
        self.first_content.add(&more.first_content);
        self.inter_token.add(&more.inter_token);
        self.total.add(&more.total);
        self.written += more.written;
        self.writing += more.writing;
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more digits")]
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A distribution of durations, up to ten minutes and within 1 %; it grows with what it holds.
#[derive(Clone, Debug)]
pub(super) struct Spread(Histogram<u32>);

impl Default for Spread {
    fn default() -> Self {
        Self(Histogram::new(FIGURES).expect("the number of figures is one that the library allows"))
    }
}

impl Spread {
    pub(super) fn record(&mut self, duration: Duration) {
        self.record_ticks(ticks(duration));
    }

    fn record_ticks(&mut self, ticks: u64) {
        self.0
            .record(ticks.min(LONGEST))
            .expect("the distribution grows, and ten minutes are no limit to it");
    }

    fn add(&mut self, more: &Self) {
        self.0.add(&more.0).expect("the distribution grows");
    }

    pub(super) fn count(&self) -> u64 {
        self.0.len()
    }

    /// The duration in milliseconds that this share of all stays within; `None` of nothing.
    pub(super) fn at(&self, quantile: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| millis(self.0.value_at_quantile(quantile)))
    }

    pub(super) fn quantiles(&self) -> Quantiles {
        let [p50_ms, p95_ms, p99_ms] = [0.5, 0.95, 0.99].map(|quantile| self.at(quantile));
        Quantiles { count: self.count(), p50_ms, p95_ms, p99_ms }
    }
}

fn ticks(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros() / TICK.as_micros()).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "at most ten minutes")]
fn millis(ticks: u64) -> f64 {
    ticks as f64 / 10.0
}

/// Slots of one width; together they are a window that moves by one slot at a time.
#[derive(Debug)]
struct Ring {
    slot_seconds: u64,
    slots: u64,
    index: u64,
    current: Slot,
    /// Those before, by index, without empty ones.
    ended: VecDeque<(u64, Slot)>,
}

impl Ring {
    fn new(slot_seconds: u64, slots: u64) -> Self {
        Self { slot_seconds, slots, index: 0, current: Slot::default(), ended: VecDeque::new() }
    }

    fn index_at(&self, age: Duration) -> u64 {
        age.as_secs() / self.slot_seconds
    }

    /// Begins the slot that `age` lies in; whether it is another one than before.
    fn turn(&mut self, age: Duration) -> bool {
        let index = self.index_at(age);
        if index <= self.index {
            return false;
        }
        let ended = std::mem::take(&mut self.current);
        self.ended.push_back((std::mem::replace(&mut self.index, index), ended));
        self.ended.retain(|(at, _)| at + self.slots > index);
        true
    }

    fn sum(&self) -> Slot {
        let mut sum = self.current.clone();
        for (_, slot) in &self.ended {
            sum.add(slot);
        }
        sum
    }
}

/// The windows of one target, and its whole life. A window of twelve slots is between eleven and
/// twelve of them long: the current one has only begun.
#[derive(Debug)]
pub(super) struct Windows {
    minute: Ring,
    five_minutes: Ring,
    hour: Ring,
    life: Slot,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            minute: Ring::new(5, 12),
            five_minutes: Ring::new(30, 10),
            hour: Ring::new(300, 12),
            life: Slot::default(),
        }
    }
}

impl Windows {
    /// The five minutes that lie behind a clock at `age` and are still being counted in.
    pub(super) fn ending_block(&self, age: Duration) -> Option<&Slot> {
        (self.hour.index_at(age) > self.hour.index).then_some(&self.hour.current)
    }

    /// Moves on to `age`; whether the minute has moved.
    pub(super) fn turn(&mut self, age: Duration) -> bool {
        self.hour.turn(age);
        self.five_minutes.turn(age);
        self.minute.turn(age)
    }

    /// Counts an event in the current slots. Whoever calls this has moved on to now.
    pub(super) fn record(&mut self, event: impl Fn(&mut Slot)) {
        let Self { minute, five_minutes, hour, life } = self;
        for slot in [&mut minute.current, &mut five_minutes.current, &mut hour.current, life] {
            event(slot);
        }
    }

    /// The last 55 to 60 seconds.
    pub(super) fn minute(&self) -> Slot {
        self.minute.sum()
    }

    /// The last 4 1/2 to 5 minutes.
    pub(super) fn five_minutes(&self) -> Slot {
        self.five_minutes.sum()
    }

    /// The last 55 to 60 minutes.
    pub(super) fn hour(&self) -> Slot {
        self.hour.sum()
    }

    /// Everything since the start.
    pub(super) fn life(&self) -> &Slot {
        &self.life
    }
}

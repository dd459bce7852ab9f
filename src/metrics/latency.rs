//! How long things took: one distribution that is both a Prometheus histogram and asked for quantiles.
//!
//! Why an HDR histogram under a lock and not Prometheus' buckets: quantiles out of 20 buckets are
//! off by up to half, those of the HDR histogram by 1 %, and one record in one short lock serves both.

use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use hdrhistogram::Histogram;
use prometheus_client::encoding::{MetricEncoder, NoLabelSet};
use serde::{Deserialize, Serialize};

use super::lock;
use super::timeline::{Minute, Timeline};

/// Upper bounds of the Prometheus buckets, in seconds: 50 µs (an exact hit) to two minutes.
const BOUNDS: [f64; 20] = [
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 30.0, 60.0, 120.0,
];

/// Anything longer counts as this: ten minutes, in microseconds.
const LONGEST: u64 = 600_000_000;

/// Significant figures of the whole life's distribution: within 1 %, 24 kB.
const LIFE_FIGURES: u8 = 2;
/// Of the past that windows are cut from: within 7 %, 3.5 kB a mark, so 0.7 MB when busy all day.
const PAST_FIGURES: u8 = 1;

/// A distribution of durations. Recording takes one lock for a few nanoseconds.
#[derive(Debug)]
pub(super) struct Latency {
    series: Mutex<Series>,
    timeline: Timeline<Histogram<u64>>,
}

impl Latency {
    /// An empty distribution; its past begins in `minute`.
    pub(super) fn starting_in(minute: Minute) -> Self {
        Self { series: Mutex::new(Series::new()), timeline: Timeline::starting_in(minute) }
    }

    /// Records one duration, that ended in minute `now`.
    pub(super) fn record(&self, now: Minute, duration: Duration) {
        self.timeline.turn(now, || self.read().coarse());
        lock(&self.series).record(micros(duration));
    }

    /// All that was recorded.
    pub(super) fn read(&self) -> Series {
        lock(&self.series).clone()
    }

    /// The quantiles of all that was recorded, or since a minute that must be
    /// answerable in minute `now`.
    pub(super) fn quantiles(&self, since: Option<Minute>, now: Minute) -> Quantiles {
        let life = self.read();
        let Some(since) = since else { return Quantiles::of(&life.histogram) };
        let mut window = life.coarse();
        self.timeline.turn(now, || window.clone());
        if let Some(before) = self.timeline.value_at(since) {
            window.subtract(before).expect("a distribution only grows, so its past is part of it");
        }
        Quantiles::of(&window)
    }
}

/// The whole life's distribution, and its exact sum.
#[derive(Clone, Debug)]
pub(super) struct Series {
    histogram: Histogram<u64>,
    sum_micros: u64,
}

impl Series {
    fn new() -> Self {
        Self { histogram: empty(LIFE_FIGURES), sum_micros: 0 }
    }

    fn record(&mut self, micros: u64) {
        self.histogram.saturating_record(micros);
        self.sum_micros = self.sum_micros.saturating_add(micros);
    }

    /// The same distribution in fewer cells, each the union of some of the finer ones.
    fn coarse(&self) -> Histogram<u64> {
        let mut coarse = empty(PAST_FIGURES);
        coarse.add(&self.histogram).expect("both distributions end at the same duration");
        coarse
    }

    /// Writes the distribution as a Prometheus histogram in seconds. What lies within 1 % above a
    /// bound may count as within it.
    pub(super) fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
        let mut buckets: Vec<(f64, u64)> = bounds.map(|bound| (bound, 0)).collect();
        for cell in self.histogram.iter_recorded() {
            let lowest = seconds(self.histogram.lowest_equivalent(cell.value_iterated_to()));
            let bucket = BOUNDS.partition_point(|bound| *bound < lowest);
            buckets[bucket].1 += cell.count_at_value();
        }
        let sum = seconds(self.sum_micros);
        encoder.encode_histogram::<NoLabelSet>(sum, self.histogram.len(), &buckets, None)
    }
}

/// A count and quantiles in milliseconds; none of nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// How many durations.
    pub count: u64,
    /// Half of them took at most this long.
    pub p50_ms: Option<f64>,
    /// 95 of 100 took at most this long.
    pub p95_ms: Option<f64>,
    /// 99 of 100 took at most this long.
    pub p99_ms: Option<f64>,
}

impl Quantiles {
    fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| (!histogram.is_empty()).then(|| millis(histogram.value_at_quantile(quantile)));
        Self { count: histogram.len(), p50_ms: at(0.5), p95_ms: at(0.95), p99_ms: at(0.99) }
    }
}

fn empty(figures: u8) -> Histogram<u64> {
    Histogram::new_with_max(LONGEST, figures).expect("the bounds are constants that the library allows")
}

/// Whole microseconds; the end of time for what does not fit.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Microseconds in seconds.
#[expect(clippy::cast_precision_loss, reason = "exact up to 285 years")]
pub(super) fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// Microseconds in milliseconds.
#[expect(clippy::cast_precision_loss, reason = "exact up to 285 years")]
fn millis(micros: u64) -> f64 {
    micros as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    fn minute(minute: u64) -> Minute {
        Minute::of(Timestamp(minute * 60_000))
    }

    #[test]
    fn nothing_has_no_quantiles() {
        let latency = Latency::starting_in(minute(0));
        assert_eq!(latency.quantiles(None, minute(0)), Quantiles::default());
        assert_eq!(latency.quantiles(Some(minute(0)), minute(9)), Quantiles::default());
    }

    #[test]
    fn quantiles_are_within_one_percent() {
        let latency = Latency::starting_in(minute(0));
        for millis in 1..=1_000 {
            latency.record(minute(0), Duration::from_millis(millis));
        }
        let quantiles = latency.quantiles(None, minute(0));
        assert_eq!(quantiles.count, 1_000);
        for (found, expected) in
            [(quantiles.p50_ms, 500.0), (quantiles.p95_ms, 950.0), (quantiles.p99_ms, 990.0)]
        {
            let found = found.expect("there are durations");
            assert!((found - expected).abs() / expected < 0.01, "{found} is not {expected}");
        }
    }
    #[test]
    fn a_window_leaves_out_what_came_before() {
        let latency = Latency::starting_in(minute(5));
        latency.record(minute(5), Duration::from_secs(9));
        latency.record(minute(7), Duration::from_millis(20));
        let window = latency.quantiles(Some(minute(6)), minute(7));
        assert_eq!(window.count, 1);
        let p99 = window.p99_ms.expect("there is a duration");
        assert!((20.0..21.4).contains(&p99), "{p99} ms");
        assert_eq!(latency.quantiles(Some(minute(5)), minute(7)).count, 2);
    }

    #[test]
    fn no_duration_is_too_long() {
        let latency = Latency::starting_in(minute(0));
        latency.record(minute(0), Duration::MAX);
        latency.record(minute(0), Duration::ZERO);
        let quantiles = latency.quantiles(None, minute(0));
        assert_eq!(quantiles.count, 2);
        assert!(quantiles.p99_ms.is_some_and(|p99| (600_000.0..606_000.0).contains(&p99)));
    }
}

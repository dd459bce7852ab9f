//! The health of all targets for Prometheus.
//!
//! Rendered from the reports, so that it cannot disagree with `GET /stats/providers`. What grows is
//! a counter since the start, from which Prometheus makes windows of its own. Times are quantiles of
//! the last five minutes, because twenty buckets for each target would be most of a scrape.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeMetric, prometheus_text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::alert::Condition;
use super::report::{HealthReport, WindowReport};
use crate::metrics::Quantiles;

/// The reports in Prometheus' text format, of type [`CONTENT_TYPE`](crate::metrics::CONTENT_TYPE).
/// To be appended to what [`Metrics::encode`](crate::metrics::Metrics::encode) gives, which has no
/// name that begins with `refrain_target_`, as all of these do.
#[expect(clippy::missing_panics_doc, reason = "writing to a string does not fail")]
pub fn prometheus_text(reports: Vec<HealthReport>) -> String {
    let mut registry = Registry::with_prefix("refrain_target");
    registry.register_collector(Box::new(Targets(reports)));
    let mut text = String::new();
    prometheus_text::encode(&mut text, &registry).expect("writing to a string does not fail");
    text
}

#[derive(Debug)]
struct Targets(Vec<HealthReport>);

impl Collector for Targets {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.calls(&mut encoder)?;
        self.times(&mut encoder)?;
        self.state(&mut encoder)
    }
}

impl Targets {
    fn calls(&self, page: &mut DescriptorEncoder<'_>) -> fmt::Result {
        counter(page, "attempts", "Calls sent off.", self.life(|life| life.attempts))?;
        counter(page, "answers", "Calls answered to the end.", self.life(|life| life.answers))?;
        counter(page, "cancelled", "Calls given up by us.", self.life(|life| life.cancelled))?;
        counter(page, "retries", "Attempts made again.", self.life(|life| life.retries))?;
        counter(page, "output_tokens", "Tokens of complete answers.", self.life(|life| life.output_tokens))?;
        let help = "What the calls cost, where the price is known.";
        counter(page, "cost_dollars", help, self.life(|life| life.cost_usd))?;
        let hedges = self.0.iter().flat_map(|report| {
            let life = &report.since_start;
            [("won", life.hedges_won), ("lost", life.hedges_lost)]
                .map(|(result, n)| (labels(report, Some(("result", result))), n))
        });
        counter(page, "hedges", "Second calls, by whether they were first.", hedges)?;
        let errors = self.0.iter().flat_map(|report| {
            let classes = report.since_start.errors.iter();
            classes.map(move |(class, n)| (labels(report, Some(("class", class.as_str()))), *n))
        });
        counter(page, "errors", "Calls without an answer.", errors)
    }

    fn times(&self, page: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "From dispatch to first content, over the last five minutes.";
        self.quantiles(page, "first_content_seconds", help, |window| &window.first_content)?;
        let help = "Between two tokens, over the last five minutes.";
        self.quantiles(page, "inter_token_seconds", help, |window| &window.inter_token)?;
        let help = "From dispatch to the end of the answer, over the last five minutes.";
        self.quantiles(page, "duration_seconds", help, |window| &window.total)
    }

    fn state(&self, page: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let gauge_of = |value: fn(&HealthReport) -> Option<f64>| {
            self.0.iter().filter_map(move |report| value(report).map(|value| (labels(report, None), value)))
        };
        let in_flight = self.0.iter().map(|report| (labels(report, None), report.in_flight));
        gauge(page, "in_flight", "Calls under way.", in_flight)?;
        let help = "Share of failed calls over the last minute.";
        gauge(page, "error_ratio", help, gauge_of(|report| report.last_minute.error_rate))?;
        let help = "Share of requests answered inside their deadline, over the last hour.";
        gauge(page, "goodput_ratio", help, gauge_of(|report| report.last_hour.goodput))?;
        let help = "How fast streams are written, over the last five minutes.";
        let speed = |report: &HealthReport| report.last_five_minutes.output_tokens_per_second;
        gauge(page, "output_tokens_per_second", help, gauge_of(speed))?;
        let help = "How fast streams are usually written.";
        let speed = |report: &HealthReport| report.norms.output_tokens_per_second;
        gauge(page, "usual_output_tokens_per_second", help, gauge_of(speed))?;
        let help = "The usual median time to first content.";
        let usual = |report: &HealthReport| report.norms.first_content_p50_ms.map(seconds);
        gauge(page, "usual_first_content_seconds", help, gauge_of(usual))?;
        let alerts = self.0.iter().flat_map(|report| {
            Condition::ALL.map(|condition| {
                let stands = report.alerts.iter().any(|alert| alert.condition == condition.label());
                (labels(report, Some(("condition", condition.label()))), u64::from(stands))
            })
        });
        gauge(page, "alert", "1 while the alarm stands.", alerts)
    }

    fn life<V>(&self, number: fn(&WindowReport) -> V) -> impl Iterator<Item = (Labels<'_>, V)> {
        self.0.iter().map(move |report| (labels(report, None), number(&report.since_start)))
    }

    fn quantiles(
        &self,
        page: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        of: fn(&WindowReport) -> &Quantiles,
    ) -> fmt::Result {
        let samples = self.0.iter().flat_map(|report| {
            let Quantiles { p50_ms, p95_ms, p99_ms, .. } = *of(&report.last_five_minutes);
            [("0.5", p50_ms), ("0.95", p95_ms), ("0.99", p99_ms)].into_iter().filter_map(|(quantile, ms)| {
                Some((labels(report, Some(("quantile", quantile))), seconds(ms?)))
            })
        });
        gauge(page, name, help, samples)
    }
}

/// The labels of a sample.
type Labels<'a> = Vec<(&'a str, &'a str)>;

fn labels<'a>(report: &'a HealthReport, own: Option<(&'a str, &'a str)>) -> Labels<'a> {
    let target = [("provider", report.provider.as_str()), ("model", report.model.as_str())];
    let region = report.region.as_deref().map(|region| ("region", region));
    target.into_iter().chain(region).chain(own).collect()
}

/// Writes a counter; `_total` is added to its name.
fn counter<'a, V: EncodeCounterValue>(
    page: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    samples: impl IntoIterator<Item = (Labels<'a>, V)>,
) -> fmt::Result {
    let mut metric = page.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in samples {
        ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

/// Writes a gauge.
fn gauge<'a, V: EncodeGaugeValue>(
    page: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    samples: impl IntoIterator<Item = (Labels<'a>, V)>,
) -> fmt::Result {
    let mut metric = page.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in samples {
        ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

fn seconds(millis: f64) -> f64 {
    millis / 1e3
}

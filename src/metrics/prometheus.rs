//! The metrics as `GET /metrics` gives them, in Prometheus' text format 0.0.4.
//!
//! Rendered from what was counted when a scrape asks, so that Prometheus and `/stats` cannot
//! disagree, recording knows nothing of label sets, and the output is in a fixed order.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeCounterValue, EncodeMetric, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::counts::Counts;
use super::latency::{Series, seconds};
use super::provider::ProviderCounts;
use super::stats::{Layers, Load, dollars};
use super::tally::Tally;
use crate::clock::Timestamp;

/// The `Content-Type` of [`Metrics::encode`](super::Metrics::encode).
pub use prometheus_text::CONTENT_TYPE;

/// Everything a scrape shows.
#[derive(Debug)]
pub(super) struct Exposition {
    pub(super) started_at: Timestamp,
    pub(super) namespaces: Vec<(String, Counts)>,
    pub(super) sources: Vec<(&'static str, Series)>,
    pub(super) embed: Series,
    pub(super) search: Series,
    pub(super) providers: Vec<Provider>,
    pub(super) layers: Layers,
    pub(super) load: Load,
}

/// One provider's part of it.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) name: String,
    pub(super) counts: ProviderCounts,
    pub(super) first_content: Series,
    pub(super) total: Series,
}

impl Exposition {
    /// The whole text.
    pub(super) fn render(self) -> String {
        let mut registry = Registry::default();
        register_process(&mut registry, self.started_at);
        let own = registry.sub_registry_with_prefix("refrain");
        own.register("build", "The version that runs", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        own.register_collector(Box::new(self));

        let mut text = String::new();
        prometheus_text::encode(&mut text, &registry).expect("writing to a string does not fail");
        text
    }
}

/// The metrics every process has, under the names all client libraries use.
fn register_process(registry: &mut Registry, started_at: Timestamp) {
    let start = seconds(started_at.0.saturating_mul(1_000));
    let help = "When the process started, since the Unix epoch";
    registry.register_with_unit("process_start_time", help, Unit::Seconds, ConstGauge::new(start));
    if let Some(resident) = resident_bytes() {
        let help = "Memory of the process that is in RAM";
        registry.register_with_unit("process_resident_memory", help, Unit::Bytes, ConstGauge::new(resident));
    }
}

/// The process's memory in RAM; none where there is no procfs. `status` gives it in kilobytes, and
/// `statm` in pages whose size would have to be known.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    kilobytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

impl Collector for Exposition {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        self.requests(&mut page)?;
        self.savings(&mut page)?;
        self.upstream(&mut page)?;
        self.levels(&mut page)
    }
}

impl Exposition {
    fn requests(&self, page: &mut Page<'_>) -> fmt::Result {
        let by_source = self.namespaces.iter().flat_map(|(namespace, counts)| {
            [
                ("exact", counts.exact_hits),
                ("semantic", counts.semantic_hits),
                ("coalesced", counts.coalesced),
                ("miss", counts.misses),
                ("bypass", counts.bypasses.sum()),
                ("degraded", counts.degraded.sum()),
                ("error", counts.errors.sum()),
            ]
            .map(|(source, n)| ([("namespace", namespace.as_str()), ("source", source)], n))
        });
        page.counter("requests", "Requests that have ended, by where the answer came from.", by_source)?;
        let sources = self.sources.iter().map(|(source, series)| ([("source", *source)], series));
        page.histogram("request_duration", "How long whole requests took.", sources)?;

        let help = "Requests that went past the whole cache.";
        self.tally(page, "bypasses", help, "reason", |counts| &counts.bypasses)?;
        let help = "Requests that went past the semantic layer alone.";
        self.tally(page, "semantic_bypasses", help, "reason", |counts| &counts.semantic_bypasses)?;
        let help = "Requests that got something in place of the answer that no provider could give.";
        self.tally(page, "degraded", help, "what", |counts| &counts.degraded)?;
        self.tally(page, "errors", "Requests that ended in an error.", "class", |counts| &counts.errors)?;
        let help = "Semantic candidates that verification refused.";
        self.tally(page, "refusals", help, "reason", |counts| &counts.refusals)?;
        let help = "Hits in other words that were not served, since their namespace only watches.";
        page.counter("shadow_hits", help, self.each(|counts| counts.shadow_hits))?;
        let help = "Hits whose answers were compared with new ones.";
        self.tally(page, "samples", help, "outcome", |counts| &counts.samples)?;
        let help = "What people said of answers.";
        self.tally(page, "verdicts", help, "verdict", |counts| &counts.verdicts)?;
        let help = "Answers that were not written to the cache.";
        self.tally(page, "write_skips", help, "reason", |counts| &counts.write_skips)?;
        self.tally(page, "evictions", "Entries removed on request.", "layer", |counts| &counts.evictions)?;
        page.counter("stored", "Answers written to the cache.", self.each(|counts| counts.stored))?;

        page.histogram("embed_duration", "How long embedding a question took.", [([], &self.embed)])?;
        page.histogram("search_duration", "How long a search in the store took.", [([], &self.search)])
    }

    fn savings(&self, page: &mut Page<'_>) -> fmt::Result {
        let tokens = |prompt: fn(&Counts) -> u64, completion: fn(&Counts) -> u64| {
            self.namespaces.iter().flat_map(move |(namespace, counts)| {
                [("prompt", prompt(counts)), ("completion", completion(counts))]
                    .map(|(kind, n)| ([("namespace", namespace.as_str()), ("kind", kind)], n))
            })
        };
        let saved = tokens(|counts| counts.prompt_tokens_saved, |counts| counts.completion_tokens_saved);
        page.counter("tokens_saved", "Tokens that answers from the cache did not use.", saved)?;
        let estimated = self.each(|counts| counts.estimated_tokens_saved);
        page.counter("estimated_tokens_saved", "Those of the tokens saved that are an estimate.", estimated)?;
        let spent = tokens(|counts| counts.prompt_tokens_spent, |counts| counts.completion_tokens_spent);
        page.counter("tokens_spent", "Tokens used upstream.", spent)?;
        let estimated = self.each(|counts| counts.estimated_tokens_spent);
        page.counter("estimated_tokens_spent", "Those of the tokens spent that are an estimate.", estimated)?;

        let saved = self.each(|counts| dollars(counts.nanodollars_saved));
        page.counter(
            "saved_dollars",
            "What the tokens saved would have cost, where the price is known.",
            saved,
        )?;
        let spent = self.each(|counts| dollars(counts.nanodollars_spent));
        page.counter("spent_dollars", "What the tokens spent cost, where the price is known.", spent)?;
        let saved = self.each(|counts| seconds(counts.micros_saved));
        page.counter("saved_seconds", "How much longer misses would have taken.", saved)
    }

    fn upstream(&self, page: &mut Page<'_>) -> fmt::Result {
        let by = |label: &'static str, tally: fn(&ProviderCounts) -> &Tally| {
            self.providers.iter().flat_map(move |provider| {
                let labels = move |value| [("provider", provider.name.as_str()), (label, value)];
                tally(&provider.counts).iter().map(move |(value, n)| (labels(value), n))
            })
        };
        page.counter(
            "upstream_calls",
            "Calls that a provider answered.",
            by("model", |counts| &counts.calls),
        )?;
        page.counter("upstream_errors", "Calls that failed.", by("class", |counts| &counts.errors))?;

        let of = |series: fn(&Provider) -> &Series| {
            self.providers
                .iter()
                .map(move |provider| ([("provider", provider.name.as_str())], series(provider)))
        };
        let help = "From a call to the end of its answer.";
        page.histogram("upstream_duration", help, of(|provider| &provider.total))?;
        let help = "From a call to its first content.";
        page.histogram("upstream_first_content", help, of(|provider| &provider.first_content))
    }

    fn levels(&self, page: &mut Page<'_>) -> fmt::Result {
        let Layers { exact, semantic, memo } = self.layers;
        page.gauge("exact_entries", "Entries in the exact layer.", Some(exact.entries))?;
        page.gauge("exact_bytes", "Memory of the exact layer.", exact.bytes)?;
        page.gauge("store_entries", "Entries in the vector store.", semantic.map(|layer| layer.entries))?;
        page.gauge("store_bytes", "Size of the vector store.", semantic.and_then(|layer| layer.bytes))?;
        page.gauge("memo_entries", "Embeddings remembered.", Some(memo.entries))?;
        page.gauge("memo_bytes", "Memory of the embeddings remembered.", memo.bytes)?;

        let Load { in_flight_requests, open_connections, write_queue_depth } = self.load;
        page.gauge("in_flight_requests", "Requests under way.", Some(in_flight_requests))?;
        page.gauge("open_connections", "Connections of callers.", Some(open_connections))?;
        page.gauge("write_queue_depth", "Answers waiting to be written.", Some(write_queue_depth))
    }

    /// One number of each namespace.
    fn each<V>(&self, number: fn(&Counts) -> V) -> impl Iterator<Item = ([(&str, &str); 1], V)> {
        self.namespaces.iter().map(move |(name, counts)| ([("namespace", name.as_str())], number(counts)))
    }

    /// One tally of each namespace.
    fn tally(
        &self,
        page: &mut Page<'_>,
        name: &str,
        help: &str,
        label: &str,
        tally: fn(&Counts) -> &Tally,
    ) -> fmt::Result {
        let samples = self.namespaces.iter().flat_map(|(namespace, counts)| {
            let labels = move |value| [("namespace", namespace.as_str()), (label, value)];
            tally(counts).iter().map(move |(value, n)| (labels(value), n))
        });
        page.counter(name, help, samples)
    }
}

/// The page that metrics are written to, one after the other.
struct Page<'a>(DescriptorEncoder<'a>);

/// The labels of a sample.
type Labels<'a, const N: usize> = [(&'a str, &'a str); N];

impl Page<'_> {
    /// Writes a counter; `_total` is added to its name.
    fn counter<'s, const N: usize, V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'s, N>, V)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in samples {
            ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// Writes a histogram in seconds; `_seconds` is added to its name.
    fn histogram<'s, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'s, N>, &'s Series)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        for (labels, series) in samples {
            series.encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// Writes a gauge; nothing when its value is not known.
    fn gauge(&mut self, name: &str, help: &str, value: Option<u64>) -> fmt::Result {
        let Some(value) = value else { return Ok(()) };
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(metric)
    }
}

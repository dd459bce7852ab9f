//! What happens in one namespace, counted where it happens.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::counts::{Cells, Counts};
use super::latency::{Latency, micros};
use super::lock;
use super::price::{PriceTable, Usage};
use super::timeline::{Minute, Timeline};
use crate::clock::Clock;

/// Models without a price that are remembered, so that an operator can add one.
const MAX_UNPRICED: usize = 32;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Answered by the exact layer.
    Exact,
    /// Answered by the semantic layer.
    Semantic,
    /// Followed the answer to another caller's identical request.
    Coalesced,
    /// Went upstream because no layer had an answer.
    Miss,
    /// Went upstream past the whole cache; the reason is from the gateway's closed set.
    Bypass(&'static str),
    /// Got something in place of the answer that no provider could give: what, of a closed set.
    Degraded(&'static str),
    /// Ended in an error; the class is from the edge's closed set.
    Error(&'static str),
}

impl Source {
    /// The label in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Semantic => "semantic",
            Self::Coalesced => "coalesced",
            Self::Miss => "miss",
            Self::Bypass(_) => "bypass",
            Self::Degraded(_) => "degraded",
            Self::Error(_) => "error",
        }
    }
}

/// What all namespaces have in common.
#[derive(Debug)]
pub(super) struct Shared {
    clock: Clock,
    prices: PriceTable,
    unpriced: Mutex<BTreeSet<String>>,
    /// Of requests, by source. Across namespaces: by namespace they would be too many series.
    pub(super) latencies: Latencies,
}

/// Latencies of whole requests by source, and of the steps in between.
#[derive(Debug)]
pub(super) struct Latencies {
    exact: Latency,
    semantic: Latency,
    coalesced: Latency,
    miss: Latency,
    bypass: Latency,
    degraded: Latency,
    error: Latency,
    pub(super) embed: Latency,
    pub(super) search: Latency,
}

impl Latencies {
    fn of(&self, source: Source) -> &Latency {
        match source {
            Source::Exact => &self.exact,
            Source::Semantic => &self.semantic,
            Source::Coalesced => &self.coalesced,
            Source::Miss => &self.miss,
            Source::Bypass(_) => &self.bypass,
            Source::Degraded(_) => &self.degraded,
            Source::Error(_) => &self.error,
        }
    }

    /// Those of whole requests, by the source's label.
    pub(super) fn by_source(&self) -> impl Iterator<Item = (&'static str, &Latency)> {
        [
            Source::Exact,
            Source::Semantic,
            Source::Coalesced,
            Source::Miss,
            Source::Bypass(""),
            Source::Degraded(""),
            Source::Error(""),
        ]
        .into_iter()
        .map(|source| (source.label(), self.of(source)))
    }
}

impl Shared {
    pub(super) fn new(clock: Clock, prices: PriceTable) -> Self {
        let empty = || Latency::starting_in(Minute::of(clock.now()));
        let latencies = Latencies {
            exact: empty(),
            semantic: empty(),
            coalesced: empty(),
            miss: empty(),
            bypass: empty(),
            degraded: empty(),
            error: empty(),
            embed: empty(),
            search: empty(),
        };
        Self { clock, prices, unpriced: Mutex::default(), latencies }
    }

    /// The wall clock that drives all windows.
    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The minute now.
    pub(super) fn minute(&self) -> Minute {
        Minute::of(self.clock.now())
    }

    /// Models that were used and have no price; at most [`MAX_UNPRICED`].
    pub(super) fn unpriced_models(&self) -> Vec<String> {
        lock(&self.unpriced).iter().cloned().collect()
    }

    fn nanodollars(&self, usage: Usage<'_>) -> u64 {
        self.prices.nanodollars(usage).unwrap_or_else(|| {
            let mut unpriced = lock(&self.unpriced);
            if unpriced.len() < MAX_UNPRICED && !unpriced.contains(usage.model) {
                unpriced.insert(usage.model.chars().take(128).collect());
            }
            0
        })
    }
}

/// Counts one namespace's requests. Resolved once with [`Metrics::namespace`](super::Metrics::namespace)
/// and kept; recording takes a few atomic additions and one short lock, and never waits for a reader.
#[derive(Debug)]
pub struct NamespaceMetrics {
    shared: Arc<Shared>,
    cells: Cells,
    timeline: Timeline<Counts>,
}

impl NamespaceMetrics {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let timeline = Timeline::starting_in(shared.minute());
        Self { shared, cells: Cells::default(), timeline }
    }

    /// Counts a request that has ended, `latency` after its head was read. To be called once a request.
    ///
    /// `saved` is what the answer would have cost upstream; for answers that cost nothing. A hit
    /// also saves time: what this namespace's misses took on average so far, less its own latency.
    /// Before the first miss there is nothing to compare with, and no time counts as saved.
    pub fn request(&self, source: Source, latency: Duration, saved: Option<Usage<'_>>) {
        let minute = self.turn();
        match source {
            Source::Exact => self.cells.exact_hits.add(1),
            Source::Semantic => self.cells.semantic_hits.add(1),
            Source::Coalesced => self.cells.coalesced.add(1),
            Source::Miss => {
                self.cells.misses.add(1);
                self.cells.miss_micros.add(micros(latency));
            }
            Source::Bypass(reason) => self.cells.bypasses.add(reason, 1),
            Source::Degraded(what) => self.cells.degraded.add(what, 1),
            Source::Error(class) => self.cells.errors.add(class, 1),
        }
        if matches!(source, Source::Exact | Source::Semantic | Source::Coalesced) {
            let miss = self.cells.miss_micros.get().checked_div(self.cells.misses.get()).unwrap_or(0);
            self.cells.micros_saved.add(miss.saturating_sub(micros(latency)));
        }
        if let Some(usage) = saved {
            self.saved(usage);
        }
        self.shared.latencies.of(source).record(minute, latency);
    }

    /// Counts what a shared stream saved one who followed it: known at its end only, long after the
    /// request was counted.
    pub fn saved(&self, usage: Usage<'_>) {
        self.turn();
        let usage = usage.clamped();
        self.cells.prompt_tokens_saved.add(usage.prompt_tokens);
        self.cells.completion_tokens_saved.add(usage.completion_tokens);
        if usage.estimated {
            self.cells.estimated_tokens_saved.add(usage.prompt_tokens + usage.completion_tokens);
        }
        self.cells.nanodollars_saved.add(self.shared.nanodollars(usage));
    }

    /// Counts what a call upstream cost. To be called once a call that was answered, whoever still
    /// listens: a call shared by several requests is paid once.
    pub fn spent(&self, usage: Usage<'_>) {
        self.turn();
        let usage = usage.clamped();
        self.cells.prompt_tokens_spent.add(usage.prompt_tokens);
        self.cells.completion_tokens_spent.add(usage.completion_tokens);
        if usage.estimated {
            self.cells.estimated_tokens_spent.add(usage.prompt_tokens + usage.completion_tokens);
        }
        self.cells.nanodollars_spent.add(self.shared.nanodollars(usage));
    }

    /// Counts a request that went past the semantic layer alone. It still ends as a miss, coalesced
    /// or an error, and is counted as that by [`request`](Self::request).
    pub fn semantic_bypass(&self, reason: &'static str) {
        self.turn();
        self.cells.semantic_bypasses.add(reason, 1);
    }

    /// Counts a semantic candidate that verification refused.
    pub fn refused(&self, reason: &'static str) {
        self.turn();
        self.cells.refusals.add(reason, 1);
    }

    /// Counts a hit in other words that was not served, because the namespace only watches.
    pub fn shadow_hit(&self) {
        self.turn();
        self.cells.shadow_hits.add(1);
    }

    /// Counts a hit whose answer was compared with a new one.
    pub fn sampled(&self, outcome: &'static str) {
        self.turn();
        self.cells.samples.add(outcome, 1);
    }

    /// Counts what somebody said of an answer.
    pub fn judged(&self, verdict: &'static str) {
        self.turn();
        self.cells.verdicts.add(verdict, 1);
    }

    /// Counts an answer written to the cache.
    pub fn stored(&self) {
        self.turn();
        self.cells.stored.add(1);
    }

    /// Counts an answer that was not written to the cache.
    pub fn write_skip(&self, reason: &'static str) {
        self.turn();
        self.cells.write_skips.add(reason, 1);
    }

    /// Counts `n` entries removed from a layer.
    pub fn evicted(&self, layer: &'static str, n: u64) {
        self.turn();
        self.cells.evictions.add(layer, n);
    }

    /// All that was counted.
    pub(super) fn read(&self) -> Counts {
        self.cells.read()
    }

    /// What was counted since `minute`, which must be answerable.
    pub(super) fn since(&self, minute: Minute) -> Counts {
        self.turn();
        self.read().minus(&self.timeline.value_at(minute).unwrap_or_default())
    }

    fn turn(&self) -> Minute {
        let minute = self.shared.minute();
        self.timeline.turn(minute, || self.read());
        minute
    }
}

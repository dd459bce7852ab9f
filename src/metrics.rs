//! What happened, counted: feeds `GET /stats` (JSON) and `GET /metrics` (Prometheus).
//!
//! Why one struct of typed fields: a metric that does not exist does not compile, and both outputs
//! are views of the same numbers. Why handles: the hot path of an exact hit is a few atomic
//! additions and one short lock; looking its labels up in a map would cost more than that.
//!
//! Nothing here reaches into other modules. What is counted is told by them; what merely is (how
//! many entries, how deep a queue) is passed in as [`Levels`] by whoever asks for the statistics.
//!
//! Memory is bounded: namespaces and providers by 1,000 each, labels by 64 in each tally, the past
//! by about 200 marks a namespace (80 kB when busy all day, next to nothing when idle) and a latency
//! (0.7 MB when busy all day). The past lives in memory alone: it begins anew with the process.

mod counts;
mod interval;
mod latency;
mod namespace;
mod price;
mod prometheus;
mod provider;
mod since;
mod stats;
mod tally;
#[cfg(test)]
mod tests;
mod timeline;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[cfg(test)]
pub(crate) use interval::Z;
pub use interval::{Interval, wilson};
pub use latency::Quantiles;
pub use namespace::{NamespaceMetrics, Source};
pub use price::{PriceTable, Usage};
pub use prometheus::CONTENT_TYPE;
pub use since::{InvalidSince, Since};
pub use stats::{Layer, Layers, Load, ProviderStats, Stats, Summary, Tokens};

use crate::clock::{Clock, Timestamp};
use counts::Counts;
use namespace::Shared;
use prometheus::Exposition;
use provider::ProviderMetrics;
use timeline::Minute;

/// Namespaces and providers are configured, so their number is known; should one come from outside
/// after all, the surplus counts as `other`.
const MAX_NAMES: usize = 1_000;

/// How things stand outside of the counts, as the caller found it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Levels {
    /// What the layers hold.
    pub layers: Layers,
    /// Connections of callers.
    pub open_connections: u64,
    /// Answers waiting to be written.
    pub write_queue_depth: u64,
}

/// Everything that is counted. Shared by all threads; no call waits for more than a short lock.
#[derive(Debug)]
pub struct Metrics {
    started_at: Timestamp,
    shared: Arc<Shared>,
    namespaces: ByName<NamespaceMetrics>,
    providers: ByName<ProviderMetrics>,
    in_flight: AtomicU64,
}

impl Metrics {
    /// Nothing counted yet. Windows follow `clock`.
    pub fn new(clock: Clock, prices: PriceTable) -> Arc<Self> {
        Arc::new(Self {
            started_at: clock.now(),
            shared: Arc::new(Shared::new(clock, prices)),
            namespaces: ByName::default(),
            providers: ByName::default(),
            in_flight: AtomicU64::new(0),
        })
    }

    /// The counts of a namespace: to be asked for once and kept. The same for the same name.
    pub fn namespace(&self, name: &str) -> Arc<NamespaceMetrics> {
        self.namespaces.get_or_insert(name, || NamespaceMetrics::new(Arc::clone(&self.shared)))
    }

    /// Records how long embedding a question took, waiting for a worker included.
    pub fn embed(&self, duration: Duration) {
        self.shared.latencies.embed.record(self.shared.minute(), duration);
    }

    /// Records how long a search in the store took.
    pub fn search(&self, duration: Duration) {
        self.shared.latencies.search.record(self.shared.minute(), duration);
    }

    /// Counts a call that a provider answered to the end. `model` is the provider's name for what it
    /// was asked; `first_content` and `total` run from the call's start.
    pub fn upstream_call(
        &self,
        provider: &str,
        model: &str,
        first_content: Option<Duration>,
        total: Duration,
    ) {
        self.provider(provider).call(self.shared.minute(), model, first_content, total);
    }

    /// Counts a call that failed; the class is the error's label.
    pub fn upstream_error(&self, provider: &str, class: &'static str) {
        self.provider(provider).error(self.shared.minute(), class);
    }

    fn provider(&self, name: &str) -> Arc<ProviderMetrics> {
        self.providers.get_or_insert(name, || ProviderMetrics::starting_in(self.shared.minute()))
    }

    /// Counts a request as under way until the guard is dropped, however it ends.
    pub fn in_flight(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }

    /// The statistics since the start, or since a moment: [`Stats::since`] says how it is rounded.
    pub fn snapshot(&self, since: Option<Since>, levels: Levels) -> Stats {
        let now = self.shared.clock().now();
        let minute = Minute::of(now);
        // A window that begins before the start is the whole life, and that is known exactly.
        let since = since
            .map(|since| Minute::of(since.moment(now)).answerable(minute))
            .filter(|since| since.start() > self.started_at);
        let begin = since.map_or(self.started_at, Minute::start);

        let mut totals = Counts::default();
        let mut namespaces = BTreeMap::new();
        for (name, namespace) in self.namespaces.all() {
            let counts = since.map_or_else(|| namespace.read(), |since| namespace.since(since));
            totals.merge(&counts);
            namespaces.insert(name, Summary::of(&counts));
        }

        let latencies = &self.shared.latencies;
        let steps = [("embed", &latencies.embed), ("search", &latencies.search)];
        let latency = latencies.by_source().chain(steps);
        Stats {
            started_at: self.started_at.to_rfc3339(),
            now: now.to_rfc3339(),
            since: begin.to_rfc3339(),
            window_seconds: now.since(begin).as_secs(),
            totals: Summary::of(&totals),
            namespaces,
            layers: levels.layers,
            load: self.load(levels),
            latency: latency
                .map(|(name, latency)| (name.to_owned(), latency.quantiles(since, minute)))
                .collect(),
            upstream: self.upstream(since, minute),
            unpriced_models: self.shared.unpriced_models(),
        }
    }

    fn upstream(&self, since: Option<Minute>, now: Minute) -> BTreeMap<String, ProviderStats> {
        let stats = |provider: &ProviderMetrics| {
            let counts = since.map_or_else(|| provider.read(), |since| provider.since(since, now));
            ProviderStats {
                calls: counts.calls.sum(),
                models: counts.calls.to_map(),
                errors: counts.errors.to_map(),
                first_content: provider.first_content.quantiles(since, now),
                total: provider.total.quantiles(since, now),
            }
        };
        self.providers.all().into_iter().map(|(name, provider)| (name, stats(&provider))).collect()
    }

    fn load(&self, levels: Levels) -> Load {
        Load {
            in_flight_requests: self.in_flight.load(Ordering::Relaxed),
            open_connections: levels.open_connections,
            write_queue_depth: levels.write_queue_depth,
        }
    }

    /// The metrics in Prometheus' text format, of type [`CONTENT_TYPE`]. Reads the process's memory
    /// from procfs, which takes some microseconds and never blocks on a disk.
    pub fn encode(&self, levels: Levels) -> String {
        let latencies = &self.shared.latencies;
        let provider = |(name, provider): (String, Arc<ProviderMetrics>)| prometheus::Provider {
            name,
            counts: provider.read(),
            first_content: provider.first_content.read(),
            total: provider.total.read(),
        };
        let exposition = Exposition {
            started_at: self.started_at,
            namespaces: self.namespaces.all().into_iter().map(|(name, it)| (name, it.read())).collect(),
            sources: latencies.by_source().map(|(source, latency)| (source, latency.read())).collect(),
            embed: latencies.embed.read(),
            search: latencies.search.read(),
            providers: self.providers.all().into_iter().map(provider).collect(),
            layers: levels.layers,
            load: self.load(levels),
        };
        exposition.render()
    }
}

/// A request under way; dropping it says that it has ended.
#[derive(Debug)]
#[must_use = "the request counts as ended when this is dropped"]
pub struct InFlight(Arc<Metrics>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Things by name, made when first asked for; beyond [`MAX_NAMES`] all share one.
#[derive(Debug)]
struct ByName<T>(Mutex<BTreeMap<String, Arc<T>>>);

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> ByName<T> {
    fn get_or_insert(&self, name: &str, make: impl FnOnce() -> T) -> Arc<T> {
        let mut known = lock(&self.0);
        if let Some(found) = known.get(name) {
            return Arc::clone(found);
        }
        let name = if known.len() < MAX_NAMES { name } else { tally::OTHER };
        Arc::clone(known.entry(name.to_owned()).or_insert_with(|| Arc::new(make())))
    }

    fn all(&self) -> Vec<(String, Arc<T>)> {
        lock(&self.0).iter().map(|(name, it)| (name.clone(), Arc::clone(it))).collect()
    }
}

/// Locks, whatever another thread's panic left behind: every state under these locks is whole
/// between two statements, and counting must not take the service down.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

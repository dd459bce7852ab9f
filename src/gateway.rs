//! The story of one request.
//!
//! A request that may not be answered from the cache goes straight to the provider. Any other
//! is looked up exactly; if that misses it joins the flight that is already fetching the same
//! answer, or starts one. The flight looks into the store, then for the same question in other
//! words, and only then asks the provider; what comes back is written for the next caller.

mod answer;
mod call;
mod count;
mod evict;
mod explain;
mod feedback;
mod fetch;
mod flight;
mod import;
mod keep;
mod namespace;
mod rescue;
mod shadow;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::task::TaskTracker;

use crate::cache::Entry;
use crate::cache::exact::ExactCache;
use crate::cache::key::{ExactKey, Partition, Scope};
use crate::cache::purge::Purges;
use crate::cache::semantic::SemanticCache;
use crate::cache::store::{Selector, Store, StoreError};
use crate::clock::Clock;
use crate::metrics::{Layer, Layers, Levels, Metrics, Source as Counted};
use crate::switches::{Feature, Subject, Switches};
use crate::upstream::{Ask, Upstream, UpstreamError};

use answer::follow;
pub use answer::{Answer, AnswerBody, Source, Substitute};
use call::Route;
pub use call::{Call, Directives};
use count::count;
pub use evict::{EvictError, Evicted, Eviction, Similar};
pub use explain::{Explained, ExplainedCandidate};
pub use feedback::{Consequence, Feedback, FeedbackError, Opinion};
use fetch::last_call;
pub use flight::EventTail;
use flight::{FlightKey, Flights, Notes};
pub use import::{Approved, ImportError, Imported};
use keep::Ticket;
pub use namespace::{InvalidPlacement, Namespace, Namespaces};
use shadow::SIDE_BY_SIDE;

/// How long the store may take to count itself for the statistics, which are wanted most when it
/// is slow.
const COUNTING: Duration = Duration::from_secs(1);

/// Why there is no answer.
#[derive(Clone, Debug, Error)]
pub enum GatewayError {
    /// No provider could answer.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// The caller wanted a kept answer only, and there is none.
    #[error("no kept answer fits, and the request says only-if-cached")]
    NotCached,
    /// An operator lets nothing but kept answers be served, and there is none.
    #[error("no kept answer fits, and no provider is asked while cache_only is switched on")]
    CacheOnly,
    /// A fault of our own.
    #[error("the request's task failed")]
    Internal,
}

impl GatewayError {
    /// A word for metrics and logs.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Upstream(error) => error.label(),
            Self::NotCached => "not_cached",
            Self::CacheOnly => "cache_only",
            Self::Internal => "internal",
        }
    }
}

/// What the gateway is made of.
pub struct Parts {
    /// Wall time.
    pub clock: Clock,
    /// The first layer.
    pub exact: ExactCache,
    /// The second layer.
    pub semantic: SemanticCache,
    /// Where entries outlive the process.
    pub store: Arc<dyn Store>,
    /// Epochs and purges.
    pub purges: Purges,
    /// The way to the providers.
    pub upstream: Upstream,
    /// What an operator has switched.
    pub switches: Arc<Switches>,
    /// How long past its time an entry may be of use, in any namespace.
    pub stale_for: Duration,
    /// The configured namespaces.
    pub namespaces: ArcSwap<Namespaces>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Finish answers that every caller has left.
    pub fill_on_disconnect: bool,
    /// Answers that may wait to be written.
    pub write_queue: usize,
}

/// Cache and upstream, joined.
pub struct Gateway {
    parts: Parts,
    flights: Flights,
    writes: Arc<Semaphore>,
    /// Places for hits that are asked upstream as well.
    samples: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Gateway {
    /// Joins the parts.
    pub fn new(parts: Parts) -> Arc<Self> {
        let writes = Arc::new(Semaphore::new(parts.write_queue));
        let samples = Arc::new(Semaphore::new(SIDE_BY_SIDE));
        Arc::new(Self { parts, flights: Flights::default(), writes, samples, tasks: TaskTracker::new() })
    }

    /// Answers a call, before its deadline. Dropping the future leaves the flight; the last to leave
    /// cancels it.
    pub async fn answer(self: &Arc<Self>, call: Call) -> Result<Answer, GatewayError> {
        let begun = Instant::now();
        let _in_flight = self.parts.metrics.in_flight();
        let namespace = Arc::clone(&call.namespace);
        let deadline = call.deadline;
        let found = timeout_at(deadline, self.find(call)).await;
        let mut result = found.unwrap_or_else(|_| Err(UpstreamError::DeadlineExceeded.into()));
        match &mut result {
            Ok(answer) => count(&namespace, answer, begun.elapsed()),
            Err(error) => namespace.metrics().request(Counted::Error(error.label()), begun.elapsed(), None),
        }
        result
    }

    /// The configured namespaces.
    pub fn namespaces(&self) -> Arc<Namespaces> {
        self.parts.namespaces.load_full()
    }

    /// Other namespaces, or others of their settings, for the requests to come.
    pub fn set_namespaces(&self, namespaces: Namespaces) {
        self.parts.namespaces.store(Arc::new(namespaces));
    }

    /// The way to the providers.
    pub fn upstream(&self) -> &Upstream {
        &self.parts.upstream
    }

    /// The entry with this id, fresh or not, from memory or store.
    pub async fn entry(&self, id: &ExactKey) -> Result<Option<Entry>, StoreError> {
        match self.parts.exact.get(id) {
            Some(entry) => Ok(Some(Entry::clone(&entry))),
            None => self.parts.store.get(id).await,
        }
    }

    /// How full everything is now.
    pub async fn levels(&self) -> Levels {
        let (exact_entries, exact_bytes) = self.parts.exact.size();
        let waiting = self.parts.write_queue - self.writes.available_permits();
        let everything = Selector::default();
        let counted = timeout(COUNTING, self.parts.store.count(&everything)).await;
        let (memo_entries, memo_bytes) = self.parts.semantic.encoders().memo_size();
        let layers = Layers {
            exact: Layer { entries: exact_entries, bytes: Some(exact_bytes) },
            semantic: counted
                .ok()
                .and_then(Result::ok)
                .map(|entries| Layer { entries, bytes: self.parts.store.disk_bytes() }),
            memo: Layer { entries: memo_entries, bytes: Some(memo_bytes) },
        };
        Levels { layers, write_queue_depth: waiting as u64, ..Levels::default() }
    }

    /// Waits until the answers accepted so far are in the store, or failed to get there. New ones
    /// stay in memory only while somebody waits here: for measurements, not for serving.
    pub async fn written(&self) {
        let all = u32::try_from(self.parts.write_queue).unwrap_or(u32::MAX);
        // Never closed, so this only fails to wait if nobody could ever write.
        let _every_place = self.writes.acquire_many(all).await;
    }

    /// Waits for all flights and writes under way.
    pub async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn find(self: &Arc<Self>, call: Call) -> Result<Answer, GatewayError> {
        // The flight may outlive its leader, and the leader may need a second one.
        let call = Arc::new(call);
        let scope = self.scope(&call);
        let key = ExactKey::new(&scope, call.request.question.as_ref());
        let mut route = Route::of(&call, &self.switched());
        if matches!(route, Route::Cache | Route::CacheOnly)
            && let Some(entry) = self.exact(&key, &call)
        {
            return Ok(Answer::kept(key, Source::Exact, entry, Notes::default()));
        }
        // What an operator pinned is not replaced: who will not have it gets another answer, and no more.
        if self.would_replace_pinned(&key, &call, route).await {
            route = Route::Bypass("pinned");
        }
        let (flight, bypass) = match route {
            Route::Nowhere => return Err(not_cached(&call)),
            Route::CacheOnly => {
                let mut notes = Notes::default();
                let mut ticket = self.ticket(key, scope);
                let found = self.find_kept(&call, &mut ticket, &mut notes).await;
                let (source, entry) = found.ok_or_else(|| not_cached(&call))?;
                return Ok(Answer::kept(key, source, entry, notes));
            }
            // An answer begun before the caller asked may be older than it allows.
            Route::Cache if call.directives.max_age.is_none() => (Some(FlightKey::of(key, &call)), None),
            Route::Cache | Route::Refresh => (None, None),
            Route::Bypass(reason) => (None, Some(reason)),
        };
        if let Some(flight) = flight
            && let Some(answer) = self.share(&call, flight, route, key, &scope).await?
        {
            return Ok(answer);
        }
        let (follower, pilot) = Flights::alone(call.deadline);
        let flight = Arc::clone(self).fly(Arc::clone(&call), self.ticket(key, scope), route, pilot);
        self.tasks.spawn(flight);
        follow(follower, key, bypass, false, &call).await?.ok_or_else(|| {
            let provider = self.parts.upstream.route_of(&call.request.model).unwrap_or_default();
            let reason = "it is neither whole nor streamed as it was asked for".into();
            UpstreamError::Broken { provider: provider.into(), reason }.into()
        })
    }

    /// Follows the flight that others follow too. `None` when what it brings cannot be given in this
    /// caller's form.
    async fn share(
        self: &Arc<Self>,
        call: &Arc<Call>,
        flight: FlightKey,
        route: Route,
        key: ExactKey,
        scope: &Scope,
    ) -> Result<Option<Answer>, GatewayError> {
        loop {
            let (follower, pilot) = self.flights.join(flight.clone(), call.deadline);
            if let Some(pilot) = pilot {
                let ticket = self.ticket(key, scope.clone());
                self.tasks.spawn(Arc::clone(self).fly(Arc::clone(call), ticket, route, pilot));
                return follow(follower, key, None, false, call).await;
            }
            // The leader's rescue is everybody's, unless it comes too late for this one.
            let theirs = last_call(follower.deadline());
            let until = if theirs < call.deadline { call.deadline } else { last_call(call.deadline) };
            match timeout_at(until, follow(follower, key, None, true, call)).await {
                // The leader had less time than this caller.
                Ok(Err(GatewayError::Upstream(error))) if error.is_out_of_time() => {}
                Ok(outcome) => return outcome,
                Err(_) => {
                    let ticket = self.ticket(key, scope.clone());
                    return self.rescue_follower(call, &ticket, route).await.map(Some);
                }
            }
        }
    }

    fn scope(&self, call: &Call) -> Scope {
        let namespace = &call.namespace;
        let partition = Partition {
            namespace: Arc::clone(namespace.name()),
            tenant: call.tenant.clone(),
            epoch: self.parts.purges.epoch(namespace.name()),
        };
        let route = self.parts.upstream.route_of(&call.request.model).unwrap_or_default();
        Scope::new(partition, &call.request, &route, namespace.loosening())
    }

    fn ticket(&self, key: ExactKey, scope: Scope) -> Ticket {
        Ticket { key, scope, asked_at: self.parts.clock.now(), embedding: None, shadow: None }
    }

    fn exact(&self, key: &ExactKey, call: &Call) -> Option<Arc<Entry>> {
        self.parts.exact.get(key).filter(|entry| self.serves(entry, call))
    }

    /// Whether an entry of this scope may be served to the caller: in time, not purged, and with
    /// the usage that the caller would get from the provider.
    fn serves(&self, entry: &Entry, call: &Call) -> bool {
        entry.is_fresh(self.parts.clock.now(), call.directives.max_age)
            && has_usage_for(entry, call)
            && !self.parts.purges.has_purged(entry)
    }

    fn is_on(&self, subject: Subject<'_>) -> bool {
        self.parts.switches.is_on(subject, self.parts.clock.now())
    }

    /// How the switches stand.
    fn switched(&self) -> impl Fn(Subject<'_>) -> bool {
        |subject| self.is_on(subject)
    }

    /// What is asked of the providers for a call.
    fn ask<'a>(
        &self,
        call: &'a Call,
        deadline: Instant,
        on_failure: &'a (dyn Fn(&UpstreamError) + Send + Sync),
    ) -> Ask<'a> {
        Ask {
            request: &call.request,
            credential: call.credential.as_ref(),
            tenant: call.tenant.as_str(),
            preferences: &call.preferences,
            priority: call.priority,
            deadline,
            may_hedge: self.is_on(Subject::Feature(Feature::Hedging)),
            on_failure,
        }
    }
}

/// Whether the entry holds the usage that the caller would get from the provider.
fn has_usage_for(entry: &Entry, call: &Call) -> bool {
    let wants_usage = !call.request.stream || call.request.include_usage;
    !(wants_usage && entry.without_usage)
}

fn not_cached(call: &Call) -> GatewayError {
    if call.directives.only_if_cached { GatewayError::NotCached } else { GatewayError::CacheOnly }
}

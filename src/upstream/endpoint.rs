//! A provider with what all calls to it share: its keys, its slots and its rate.

use std::num::NonZeroU32;
use std::sync::Arc;

use tokio::time::Instant;

use super::keys::KeyPool;
use super::limit::shape::Shaper;
use super::limit::{AdaptiveLimit, Limiter, Tenants, Waiting};
use super::provider::Provider;
use crate::config::{self, Provider as ProviderConfig, Secret};

/// Tenants of one provider that have a limit of their own at a time; the others share one.
const MAX_TENANTS: usize = 10_000;

/// A provider that can be called.
pub(super) struct Endpoint {
    pub(super) provider: Arc<dyn Provider>,
    /// Empty for a provider without keys, and where callers bring their own.
    pub(super) keys: KeyPool<Secret>,
    pub(super) limiter: Limiter,
    /// `None` when tenants have no limits of their own.
    pub(super) tenants: Option<Tenants>,
    /// `None` when its rate is not limited.
    pub(super) shaper: Option<Shaper>,
    pub(super) region: Option<Arc<str>>,
    /// Answers from a file: not a model, and no substitute for one that failed.
    pub(super) is_rules: bool,
}

impl Endpoint {
    /// The endpoint of a provider whose own settings are `own`.
    pub(super) fn new(
        provider: Arc<dyn Provider>,
        keys: Vec<Secret>,
        own: Option<&ProviderConfig>,
        limit: &config::Limit,
    ) -> Arc<Self> {
        let Own { region, max_in_flight, requests, tokens } = Own::of(own);
        let max = max_in_flight.unwrap_or(limit.max_in_flight).get();
        let waiting = Waiting { room: limit.queue, longest: limit.queue_timeout };
        let shaped = requests.is_some() || tokens.is_some();
        Arc::new(Self {
            provider,
            keys: KeyPool::new(keys),
            limiter: Limiter::new(AdaptiveLimit::new(limit.min_in_flight.get().min(max), max), waiting),
            tenants: (limit.tenant_in_flight > 0)
                .then(|| Tenants::new(limit.tenant_in_flight, waiting, MAX_TENANTS)),
            shaper: shaped.then(|| Shaper::new(requests, tokens, Instant::now())),
            region,
            is_rules: matches!(own, Some(ProviderConfig::Rules { .. })),
        })
    }

    /// Its name in the config.
    pub(super) fn name(&self) -> &Arc<str> {
        self.provider.name()
    }
}

/// What a provider sets itself.
#[derive(Default)]
struct Own {
    region: Option<Arc<str>>,
    max_in_flight: Option<NonZeroU32>,
    requests: Option<NonZeroU32>,
    tokens: Option<NonZeroU32>,
}

impl Own {
    fn of(settings: Option<&ProviderConfig>) -> Self {
        let Some(remote) = settings.and_then(ProviderConfig::remote) else { return Self::default() };
        Self {
            region: remote.region.as_deref().map(Into::into),
            max_in_flight: remote.max_in_flight,
            requests: remote.requests_per_minute,
            tokens: remote.tokens_per_minute,
        }
    }
}

//! How the providers stand, for operators: JSON with the unit in each name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::Upstream;
use super::breaker::Control;
use super::endpoint::Endpoint;
use super::health::{HealthReport, Labels, prometheus_text};
use super::keys::{KeyState, Standing};
use super::limit::LimiterStats;
use super::target::Target;

/// All providers and targets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProvidersReport {
    /// Each provider: what its targets share.
    pub providers: Vec<ProviderReport>,
    /// Each model at each provider that was asked since the start.
    pub targets: Vec<TargetReport>,
}

/// What all calls to one provider share.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProviderReport {
    /// Its name in the config.
    pub provider: String,
    /// Where it is.
    pub region: Option<String>,
    /// Calls that may run at once, as it stands.
    pub limit: u32,
    /// Calls under way.
    pub in_flight: u32,
    /// Requests that wait for a slot.
    pub queue_depth: usize,
    /// For how long the oldest of them has.
    pub queue_age_ms: Option<u64>,
    /// Its keys, in the order of the config.
    pub keys: Vec<KeyReport>,
    /// Calls under way of each tenant that has any, where tenants have a limit of their own.
    pub tenants: BTreeMap<String, u32>,
}

/// How a key stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyReport {
    /// Its place in the config, as "key 1".
    pub key: String,
    /// `ready`, `cooling` or `quarantined`.
    pub state: String,
    /// Why it is out of use: `auth` or `quota`.
    pub reason: Option<String>,
    /// How long it still is.
    pub for_ms: Option<u64>,
}

/// How a model at a provider stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TargetReport {
    /// Its breaker.
    pub breaker: BreakerReport,
    /// What was measured.
    #[serde(flatten)]
    pub health: HealthReport,
}

/// How a breaker stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BreakerReport {
    /// `closed`, `open`, `half_open`, `ramp`, `forced_open`, `forced_closed` or `isolated`.
    pub state: String,
    /// For how long it has been so.
    pub since_ms: u64,
    /// How long it will be at most.
    pub for_ms: Option<u64>,
    /// Why.
    pub reason: Option<String>,
}

/// There is no such target, or none was asked yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchTarget;

impl Upstream {
    /// How everything stands now.
    pub fn report(&self) -> ProvidersReport {
        let now = Instant::now();
        ProvidersReport {
            providers: self.endpoints.iter().map(|endpoint| ProviderReport::of(endpoint, now)).collect(),
            targets: self.targets.all().iter().map(|target| TargetReport::of(target, now)).collect(),
        }
    }

    /// What was measured of each target, for Prometheus.
    pub fn exposition(&self) -> String {
        prometheus_text(self.targets.board().reports(Instant::now()))
    }

    /// Sets who decides whether a target is asked: its breaker, or an operator. Forgotten at a
    /// restart; a switch is not.
    pub fn control(&self, provider: &str, model: &str, control: Control) -> Result<(), NoSuchTarget> {
        let is_meant = |labels: &Labels| *labels.provider == *provider && *labels.model == *model;
        let target = self.targets.all().into_iter().find(|target| is_meant(target.health.labels()));
        let target = target.ok_or(NoSuchTarget)?;
        target.breaker.set_control(control, Instant::now());
        target.tell_transitions();
        Ok(())
    }
}

impl ProviderReport {
    fn of(endpoint: &Endpoint, now: Instant) -> Self {
        let LimiterStats { limit, in_flight, waiting, oldest } = endpoint.limiter.stats(now);
        Self {
            provider: endpoint.name().to_string(),
            region: endpoint.region.as_deref().map(str::to_owned),
            limit,
            in_flight,
            queue_depth: waiting,
            queue_age_ms: oldest.map(millis),
            keys: endpoint.keys.states(now).iter().map(|key| KeyReport::of(key, now)).collect(),
            tenants: endpoint
                .tenants
                .iter()
                .flat_map(|tenants| tenants.stats(now))
                .map(|(tenant, stats)| (tenant.into(), stats.in_flight))
                .collect(),
        }
    }
}

impl KeyReport {
    fn of(key: &KeyState, now: Instant) -> Self {
        let (reason, until) = match key.standing {
            Standing::Ready => (None, None),
            Standing::Cooling { until } => (None, Some(until)),
            Standing::Quarantined { refusal, until } => (Some(refusal.label().to_owned()), Some(until)),
        };
        Self {
            key: key.name(),
            state: key.standing.label().to_owned(),
            reason,
            for_ms: until.map(|until| millis(until.saturating_duration_since(now))),
        }
    }
}

impl TargetReport {
    fn of(target: &Target, now: Instant) -> Self {
        let state = target.breaker.state(now);
        let breaker = BreakerReport {
            state: state.label.as_str().to_owned(),
            since_ms: millis(now.saturating_duration_since(state.since)),
            for_ms: state.until.map(|until| millis(until.saturating_duration_since(now))),
            reason: state.reason.map(|reason| reason.to_string()),
        };
        Self { breaker, health: target.health.report(now) }
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

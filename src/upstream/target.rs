//! One who can serve a model: a provider, under its own name for the model. How it does is known
//! here, whatever name callers used.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;

use super::breaker::{self, Breaker, Permit, Refused};
use super::endpoint::Endpoint;
use super::health::{Board, Health, Labels};

/// Targets with a breaker of their own at most. The names of models may be the callers' own (the
/// `"*"` route), so beyond it those of a provider share one.
const MAX_TARGETS: usize = 256;

/// How long a target counts as troubled after a failure.
const TROUBLED: Duration = Duration::from_secs(30);

/// A provider and a model.
pub(super) struct Target {
    pub(super) breaker: Breaker,
    pub(super) health: Arc<Health>,
    failed_at: Mutex<Option<Instant>>,
}

impl Target {
    /// Lets a call pass, or not; `anyway` when there is nobody else.
    pub(super) fn admit(&self, anyway: bool, now: Instant) -> Result<Permit, Refused> {
        let permit =
            if anyway { self.breaker.try_acquire_anyway(now) } else { self.breaker.try_acquire(now) };
        self.tell_transitions();
        permit
    }

    /// Notes that a call failed.
    pub(super) fn note_failure(&self, now: Instant) {
        *self.failed_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Whether something went wrong lately, or is going slowly: others are asked before it.
    pub(super) fn is_troubled(&self, now: Instant) -> bool {
        let failed_at = *self.failed_at.lock().unwrap_or_else(PoisonError::into_inner);
        let failed_lately = failed_at.is_some_and(|at| now.saturating_duration_since(at) < TROUBLED);
        failed_lately || self.breaker.state(now).slow_since.is_some()
    }

    /// Logs what became of the breaker, outside of its lock.
    pub(super) fn tell_transitions(&self) {
        for change in self.breaker.take_transitions() {
            let Labels { provider, model, .. } = self.health.labels();
            let reason = change.reason.map(|reason| reason.to_string());
            let (from, to) = (change.from.as_str(), change.to.as_str());
            tracing::warn!(%provider, %model, from, to, reason, "a breaker changed");
        }
    }
}

/// A provider's name, and its name for the model.
type Name = (Arc<str>, Arc<str>);

/// All targets.
pub(super) struct Targets {
    settings: breaker::Settings,
    board: Board,
    known: RwLock<HashMap<Name, Arc<Target>>>,
}

impl Targets {
    pub(super) fn new(settings: breaker::Settings) -> Self {
        Self { settings, board: Board::default(), known: RwLock::default() }
    }

    /// How each target does.
    pub(super) fn board(&self) -> &Board {
        &self.board
    }

    /// The target for a model at a provider; the same for the same names.
    pub(super) fn of(&self, endpoint: &Arc<Endpoint>, model: &Arc<str>, now: Instant) -> Arc<Target> {
        let name = (Arc::clone(endpoint.name()), Arc::clone(model));
        if let Some(target) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&name) {
            return Arc::clone(target);
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let name = if known.len() < MAX_TARGETS { name } else { (name.0, "other".into()) };
        let target = known.entry(name).or_insert_with_key(|(provider, model)| {
            let labels = Labels {
                provider: Arc::clone(provider),
                model: Arc::clone(model),
                region: endpoint.region.clone(),
            };
            Arc::new(Target {
                breaker: Breaker::new(self.settings, rand::random::<f64>, now),
                health: self.board.of(&labels, now),
                failed_at: Mutex::default(),
            })
        });
        Arc::clone(target)
    }

    /// Every target, by provider and model.
    pub(super) fn all(&self) -> Vec<Arc<Target>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = known.values().map(Arc::clone).collect();
        all.sort_by(|a, b| a.health.labels().cmp(b.health.labels()));
        all
    }
}

//! One who can serve a model: a provider, under its own name for the model. How it does is known
//! here, whatever name callers used.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;

use super::breaker::baseline::Baseline;
use super::breaker::{self, Breaker, Label, Permit, Refused};
use super::endpoint::Endpoint;
use super::health::{Board, Health, Labels};

/// Targets with a breaker of their own at most. The names of models may be the callers' own (the
/// `"*"` route), so beyond it those of a provider share one.
const MAX_TARGETS: usize = 256;

/// How long a target counts as troubled after a failure, and a slow one until it is tried again.
const TROUBLED: Duration = Duration::from_secs(30);

/// Silence that is shorter proves nothing against a target of which nothing is known.
const SILENCE: Duration = Duration::from_secs(5);

/// Below this nobody is late, however fast the target is.
const NEVER_LATE: Duration = Duration::from_millis(100);

/// A provider and a model.
pub(super) struct Target {
    pub(super) breaker: Breaker,
    pub(super) health: Arc<Health>,
    /// How long answers take to their end; the breaker knows when streams begin.
    totals: Mutex<Baseline>,
    /// So many times as long as usual is far too long.
    slow_factor: f64,
    trouble: Mutex<Trouble>,
}

/// What a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The first content of a stream.
    Begin,
    /// The end of an answer. A whole one has its first content with it.
    End,
}

impl Wait {
    /// For the first content.
    pub(super) fn of(is_stream: bool) -> Self {
        if is_stream { Self::Begin } else { Self::End }
    }
}

#[derive(Default)]
struct Trouble {
    failed_at: Option<Instant>,
    /// While it is slow: when one request was sent to find out whether it still is.
    tried_at: Option<Instant>,
}

impl Target {
    /// Lets a call pass, or not; `anyway` when there is nobody else.
    pub(super) fn admit(&self, anyway: bool, now: Instant) -> Result<Permit, Refused> {
        let permit =
            if anyway { self.breaker.try_acquire_anyway(now) } else { self.breaker.try_acquire(now) };
        self.tell_transitions();
        permit
    }

    /// Whether its breaker lets all or many calls pass.
    pub(super) fn lets_in(&self, now: Instant) -> bool {
        matches!(self.breaker.state(now).label, Label::Closed | Label::Ramp | Label::ForcedClosed)
    }

    /// Whether its breaker lets any call pass.
    pub(super) fn is_standing(&self, now: Instant) -> bool {
        self.lets_in(now) || self.breaker.state(now).label == Label::HalfOpen
    }

    /// Notes that a call failed.
    pub(super) fn note_failure(&self, now: Instant) {
        self.trouble().failed_at = Some(now);
    }

    /// Whether a call failed within the last half minute.
    pub(super) fn has_failed_lately(&self, now: Instant) -> bool {
        self.failed_at().is_some_and(|at| now.saturating_duration_since(at) < TROUBLED)
    }

    /// When a call last failed.
    pub(super) fn failed_at(&self) -> Option<Instant> {
        self.trouble().failed_at
    }

    /// Whether others are asked before it, since something went wrong lately or it is slow. A slow
    /// one is nobody's first choice, and so nobody would notice that it is well again: once in a
    /// while this says no to one request, which finds out.
    pub(super) fn goes_behind(&self, now: Instant) -> bool {
        let slow_since = self.breaker.state(now).slow_since;
        if self.has_failed_lately(now) {
            return true;
        }
        let Some(since) = slow_since else { return false };
        let is_recent = |at: Instant| now.saturating_duration_since(at) < TROUBLED;
        let mut trouble = self.trouble();
        let tried_at = trouble.tried_at.map_or(since, |at| at.max(since));
        if !is_recent(tried_at) {
            trouble.tried_at = Some(now);
        }
        is_recent(tried_at)
    }

    /// 95 of 100 streams have begun within this time, or 95 of 100 answers are complete; `None` while
    /// too few did.
    pub(super) fn usual(&self, what: Wait, now: Instant) -> Option<Duration> {
        match what {
            Wait::Begin => self.breaker.first_content_p95(now),
            Wait::End => self.totals().p95(now),
        }
    }

    /// Notes how long an answer took to its end. What takes far too long is not learned: a bad day
    /// must not become what is usual.
    pub(super) fn note_total(&self, after: Duration, now: Instant) {
        let mut totals = self.totals();
        let far_too_long = |usual: Duration| after.as_secs_f64() > usual.as_secs_f64() * self.slow_factor;
        if !totals.p95(now).is_some_and(far_too_long) {
            totals.learn(after, now);
        }
    }

    /// Whether so long a wait is longer than 95 of 100 are. So of those who wait that long for a
    /// healthy target five in a hundred find it late, and for one that hangs all.
    pub(super) fn is_late(&self, what: Wait, after: Duration, now: Instant) -> bool {
        self.usual(what, now).map_or(after >= SILENCE, |usual| after > usual.max(NEVER_LATE))
    }

    fn totals(&self) -> MutexGuard<'_, Baseline> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trouble(&self) -> MutexGuard<'_, Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
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
                totals: Mutex::new(Baseline::new(now)),
                slow_factor: self.settings.slow_factor,
                trouble: Mutex::default(),
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

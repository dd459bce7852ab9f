//! One request's way from target to target.
//!
//! The way is planned before the first call and shortened by what happens: a target that failed is
//! left for the next one, or tried again when that may help more. So what may happen next is
//! decided here and nowhere else.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::UpstreamError;
use super::ask::Ask;
use super::breaker::Permit;
use super::fault::{Class, Reaction};
use super::keys::Picked;
use super::limit::{Limiter, Shed, Slot};
use super::policy::Policy;
use super::route::Candidate;
use crate::config::Secret;

/// A wait for a key or for the rate is worth it up to this long, when it fits the deadline.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A target on the way.
struct Leg {
    candidate: Candidate,
    /// Calls made to it.
    tries: u32,
    keys_tried: Vec<usize>,
    /// Nothing more is asked of it.
    is_over: bool,
}

/// The way of one request.
pub(super) struct Journey<'a> {
    policy: &'a Policy,
    ask: Ask<'a>,
    legs: Vec<Leg>,
    /// The same target is to be tried again, then.
    again: Option<(usize, Instant)>,
    attempts: u32,
    failures: Vec<UpstreamError>,
}

/// All that a call needs to be made.
pub(super) struct Admission {
    /// Which target, for [`Journey::leave`].
    pub(super) leg: usize,
    pub(super) candidate: Candidate,
    pub(super) permit: Permit,
    /// Held until the answer's last byte: the provider's, and the tenant's where it has one.
    pub(super) slot: Slot,
    pub(super) tenant_slot: Option<Slot>,
    pub(super) key: Picked<Secret>,
    /// How many calls were made for the request, this one included.
    pub(super) attempt: u32,
    /// Others could still be asked in time, so this call may not use up all of it.
    pub(super) is_last: bool,
}

/// Why a target does not let a call in now.
enum Turned {
    /// Its breaker is open.
    Shut,
    /// No slot is free.
    Full,
    /// No key is free, or the rate is used up, for so long.
    Resting(Option<Duration>),
    /// There is no slot, after a wait for one.
    Shed(Shed),
}

impl<'a> Journey<'a> {
    /// A way past these targets, in their order.
    pub(super) fn new(policy: &'a Policy, ask: Ask<'a>, candidates: Vec<Candidate>) -> Self {
        let leg = |candidate| Leg { candidate, tries: 0, keys_tried: Vec::new(), is_over: false };
        let legs = candidates.into_iter().map(leg).collect();
        Self { policy, ask, legs, again: None, attempts: 0, failures: Vec::new() }
    }

    /// The next target that lets a call in, or why there is none: the request's end.
    ///
    /// The first one free takes it, past those that are full or shut. When none is, it waits in
    /// the line of the first that has one. When all are shut, the first is asked all the same: a
    /// request never fails unasked while there is anybody.
    pub(super) async fn enter(&mut self) -> Result<Admission, UpstreamError> {
        if self.attempts >= self.policy.attempts {
            return Err(self.verdict());
        }
        if let Some((leg, at)) = self.again.take() {
            sleep_until(at).await;
            if let Ok(admission) = self.admit_at_once(leg, false) {
                return Ok(admission);
            }
        }
        let mut turned = Vec::new();
        for leg in self.open_legs() {
            match self.admit_at_once(leg, false) {
                Ok(admission) => return Ok(admission),
                Err(why) => turned.push((leg, why)),
            }
        }
        for (leg, why) in &mut turned {
            if let Some(waited) = self.admit_in_time(*leg, why).await {
                match waited {
                    Ok(admission) => return Ok(admission),
                    Err(other) => *why = other,
                }
            }
        }
        if self.attempts == 0 {
            for (leg, why) in &mut turned {
                if !matches!(why, Turned::Shut) {
                    continue;
                }
                match self.admit_at_once(*leg, true) {
                    Ok(admission) => return Ok(admission),
                    Err(other) => *why = other,
                }
            }
        }
        Err(self.unasked(&turned))
    }

    /// Another target beside the one being asked, if one lets a call in at once.
    pub(super) fn enter_beside(&mut self, leg: usize) -> Option<Admission> {
        if self.attempts >= self.policy.attempts {
            return None;
        }
        let mut others = self.open_legs().into_iter().filter(|other| *other != leg);
        others.find_map(|other| self.admit_at_once(other, false).ok())
    }

    /// What a failed call means for the rest of the way: `Err` when nothing else may help.
    pub(super) fn leave(
        &mut self,
        leg: usize,
        error: UpstreamError,
        jitter: f64,
    ) -> Result<(), UpstreamError> {
        let now = Instant::now();
        let reaction = error.fault().reaction();
        if reaction.fails_at_once() || now >= self.ask.deadline {
            self.failures.push(error);
            return Err(self.verdict());
        }
        if !self.tries_again(leg, reaction, &error, jitter, now) {
            self.legs[leg].is_over = true;
            self.narrow(leg, error.fault().class, reaction);
        }
        self.failures.push(error);
        Ok(())
    }

    /// Whether the same target is tried again: at once with another key, or after a wait when no
    /// other serves the same model now.
    fn tries_again(
        &mut self,
        leg: usize,
        reaction: Reaction,
        error: &UpstreamError,
        jitter: f64,
        now: Instant,
    ) -> bool {
        let target = &self.legs[leg];
        let keys = &target.candidate.choice.endpoint.keys;
        if reaction.next_key && self.ask.credential.is_none() && keys.next_free(now).is_none() {
            let untried = keys.states(now).len() > target.keys_tried.len();
            if untried && keys.pick(now, &target.keys_tried).is_some() {
                return true;
            }
        }
        if !reaction.retry_here || target.tries >= self.policy.per_target {
            return false;
        }
        let first_retry = target.tries == 1;
        if reaction.at_once && !first_retry || !reaction.at_once && self.has_alternative(leg) {
            return false;
        }
        let left = self.ask.deadline.saturating_duration_since(now);
        let delay = if reaction.at_once {
            Some(Duration::ZERO)
        } else {
            self.policy.backoff.next(target.tries - 1, error.fault().wait, jitter, left)
        };
        let Some(delay) = delay.filter(|_| self.policy.retries.try_withdraw(now)) else { return false };
        target.candidate.target.health.retried(now);
        self.again = Some((leg, now + delay));
        true
    }

    /// Whether another target of the same tier is left.
    fn has_alternative(&self, leg: usize) -> bool {
        let is_fallback = self.legs[leg].candidate.is_fallback;
        let mut others = self.legs.iter().enumerate().filter(|(other, _)| *other != leg);
        others.any(|(_, other)| !other.is_over && other.candidate.is_fallback == is_fallback)
    }

    /// Takes those off the way that would fail likewise.
    fn narrow(&mut self, leg: usize, class: Class, reaction: Reaction) {
        let tier = self.legs[leg].candidate.choice.tier;
        let reads = self.legs[leg].candidate.choice.context_window;
        for other in self.legs.iter_mut().filter(|other| !other.is_over) {
            let choice = &other.candidate.choice;
            let same_model = choice.tier == tier;
            other.is_over = match class {
                // Only one that is known to read more.
                Class::ContextLength => match (choice.context_window, reads) {
                    (Some(other), Some(this)) => other <= this,
                    _ => true,
                },
                _ => same_model && !reaction.next_provider || !same_model && !reaction.next_model,
            };
        }
    }

    fn open_legs(&self) -> Vec<usize> {
        (0..self.legs.len()).filter(|leg| !self.legs[*leg].is_over).collect()
    }

    fn admit_at_once(&mut self, leg: usize, anyway: bool) -> Result<Admission, Turned> {
        let now = Instant::now();
        let candidate = &self.legs[leg].candidate;
        let endpoint = &candidate.choice.endpoint;
        let permit = candidate.target.admit(anyway, now).map_err(|_| Turned::Shut)?;
        let slot = endpoint.limiter.try_acquire().ok_or(Turned::Full)?;
        let tenant_slot = match self.tenant_limiter(leg) {
            Some(limiter) => Some(limiter.try_acquire().ok_or(Turned::Full)?),
            None => None,
        };
        self.with_key(leg, permit, slot, tenant_slot)
    }

    /// Waits for a slot or a key where that may help; `None` where it cannot.
    async fn admit_in_time(&mut self, leg: usize, why: &Turned) -> Option<Result<Admission, Turned>> {
        match why {
            Turned::Shut | Turned::Shed(_) | Turned::Resting(None) => None,
            Turned::Resting(Some(wait)) => {
                let at = Instant::now() + *wait;
                if *wait > LONGEST_WAIT || at >= self.ask.deadline {
                    return None;
                }
                sleep_until(at).await;
                Some(self.admit_at_once(leg, false))
            }
            Turned::Full => Some(self.line_up(leg).await),
        }
    }

    async fn line_up(&mut self, leg: usize) -> Result<Admission, Turned> {
        let Ask { priority, deadline, .. } = self.ask;
        let tenant_slot = match self.tenant_limiter(leg) {
            Some(limiter) => Some(limiter.acquire(priority, deadline).await.map_err(Turned::Shed)?),
            None => None,
        };
        let limiter = self.legs[leg].candidate.choice.endpoint.limiter.clone();
        let slot = limiter.acquire(priority, deadline).await.map_err(Turned::Shed)?;
        // It may have been shut meanwhile.
        let permit =
            self.legs[leg].candidate.target.admit(false, Instant::now()).map_err(|_| Turned::Shut)?;
        self.with_key(leg, permit, slot, tenant_slot)
    }

    fn tenant_limiter(&self, leg: usize) -> Option<Limiter> {
        let tenants = self.legs[leg].candidate.choice.endpoint.tenants.as_ref()?;
        Some(tenants.limiter(self.ask.tenant))
    }

    fn with_key(
        &mut self,
        leg: usize,
        permit: Permit,
        slot: Slot,
        tenant_slot: Option<Slot>,
    ) -> Result<Admission, Turned> {
        let now = Instant::now();
        let is_last = !self.legs.iter().enumerate().any(|(other, legs)| other != leg && !legs.is_over);
        let target = &mut self.legs[leg];
        let endpoint = &target.candidate.choice.endpoint;
        // A key that was limited may be picked again for a retry, one that is in use may not.
        let tried: &[usize] =
            if self.ask.credential.is_some() || target.tries == 0 { &[] } else { &target.keys_tried };
        let key = endpoint.keys.pick(now, tried).or_else(|| endpoint.keys.pick(now, &[]));
        let Some(key) = key else {
            let free = endpoint.keys.next_free(now);
            return Err(Turned::Resting(free.map(|at| at.saturating_duration_since(now))));
        };
        if let Some(shaper) = &endpoint.shaper {
            shaper.check(self.ask.tokens(), now).map_err(|wait| Turned::Resting(Some(wait)))?;
        }
        if key.key().is_some() {
            target.keys_tried.push(key.index());
        }
        target.tries += 1;
        self.attempts += 1;
        let candidate = target.candidate.clone();
        Ok(Admission { leg, candidate, permit, slot, tenant_slot, key, attempt: self.attempts, is_last })
    }

    /// Nobody lets the request in: what to tell, if nothing failed before.
    fn unasked(&mut self, turned: &[(usize, Turned)]) -> UpstreamError {
        if !self.failures.is_empty() {
            return self.verdict();
        }
        let provider = |leg: usize| self.legs[leg].candidate.provider().clone();
        let shed = turned.iter().filter_map(|(leg, why)| match why {
            Turned::Shed(shed) => Some((*leg, *shed)),
            _ => None,
        });
        if let Some((leg, shed)) = shed.min_by_key(|(_, shed)| shed.retry_after()) {
            if Instant::now() >= self.ask.deadline {
                return UpstreamError::DeadlineExceeded;
            }
            return UpstreamError::Overloaded { provider: provider(leg), shed };
        }
        let resting = turned.iter().filter_map(|(leg, why)| match why {
            Turned::Resting(wait) => Some((*leg, wait.unwrap_or(LONGEST_WAIT))),
            _ => None,
        });
        match resting.min_by_key(|(_, wait)| *wait) {
            Some((leg, retry_after)) => UpstreamError::Throttled { provider: provider(leg), retry_after },
            None => UpstreamError::SwitchedOff { model: self.ask.request.model.clone() },
        }
    }

    /// The error that tells the caller most of what happened: the request's own fault, else that
    /// all were limited or full and when to come again, else the last one.
    fn verdict(&mut self) -> UpstreamError {
        if Instant::now() >= self.ask.deadline {
            return UpstreamError::DeadlineExceeded;
        }
        let all = |class: Class| self.failures.iter().all(|error| error.fault().class == class);
        let alike = all(Class::RateLimit) || all(Class::Capacity);
        let failures = std::mem::take(&mut self.failures);
        let chosen = if alike {
            let wait = |error: &UpstreamError| error.fault().wait.unwrap_or(Duration::MAX);
            failures.into_iter().min_by_key(wait)
        } else {
            let own = failures.iter().rposition(|error| error.fault().reaction().fails_at_once());
            let place = own.or(failures.len().checked_sub(1));
            place.and_then(|place| failures.into_iter().nth(place))
        };
        chosen.unwrap_or(UpstreamError::DeadlineExceeded)
    }
}

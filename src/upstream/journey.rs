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
use super::keys::{KeyState, Picked, Refusal, Standing};
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
    /// The key of the latest, by its place.
    key: Option<usize>,
    /// Those that it refused: no call of this request goes out with them again at once.
    keys_refused: Vec<usize>,
    /// It limited the request, until then.
    limited_until: Option<Instant>,
    /// There was no room in its line, or waiting in it came to nothing.
    shed: Option<Shed>,
    /// It has a slot and turned the request away all the same. So nobody lines up for it again and
    /// again, to be turned away again and again.
    resting: Option<Turned>,
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
    failures: Vec<(usize, UpstreamError)>,
}

/// All that a call needs to be made.
pub(super) struct Admission {
    /// Which target, for [`Journey::leave`].
    pub(super) leg: usize,
    pub(super) candidate: Candidate,
    pub(super) permit: Permit,
    /// Held until the answer's last byte: the provider's, and the tenant's where it has one.
    pub(super) slots: Slots,
    pub(super) key: Picked<Secret>,
    /// How many calls were made for the request, this one included.
    pub(super) attempt: u32,
    /// Nobody else could be asked after it, so this call may use up all of the time.
    pub(super) is_last: bool,
}

/// The provider's slot, and the tenant's where tenants have their own.
pub(super) type Slots = (Slot, Option<Slot>);

/// How targets are entered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Door {
    /// As their breakers let calls in.
    Front,
    /// Also where only some are let in, since the target is just coming back.
    Ramp,
    /// Past open breakers too.
    Side,
}

/// Why a target does not let a call in now.
#[derive(Clone, Copy)]
enum Turned {
    /// Its breaker is open.
    Shut,
    /// No slot is free.
    Full,
    /// The provider limits or refuses all that could be asked with, until then; `None` when nobody
    /// can say.
    Limited(Class, Option<Instant>),
    /// The rate that the operator allows is used up, until then.
    Paced(Instant),
}

impl Turned {
    /// Whether time will change it, and has not yet.
    fn rests(self, now: Instant) -> bool {
        match self {
            Self::Shut | Self::Full => false,
            Self::Limited(_, until) => until.is_none_or(|until| now < until),
            Self::Paced(until) => now < until,
        }
    }
}

/// What a wait came to.
enum Waited {
    /// A call is let in.
    In(Box<Admission>),
    /// Something has changed.
    LookAgain,
    /// There was nothing to wait for.
    InVain,
}

impl<'a> Journey<'a> {
    /// A way past these targets, in their order.
    pub(super) fn new(policy: &'a Policy, ask: Ask<'a>, candidates: Vec<Candidate>) -> Self {
        let leg = |candidate| Leg {
            candidate,
            tries: 0,
            key: None,
            keys_refused: Vec::new(),
            limited_until: None,
            shed: None,
            resting: None,
            is_over: false,
        };
        let legs = candidates.into_iter().map(leg).collect();
        Self { policy, ask, legs, again: None, attempts: 0, failures: Vec::new() }
    }

    /// The next target that lets a call in, or why there is none: the request's end.
    ///
    /// The first one free takes it, past those that are full or shut. When none is, it waits in the
    /// line of the first that has one, or for the end of the shortest rest. When all are shut, one
    /// that is just coming back is asked, else any that has not failed for a while: a request never
    /// fails unasked while there is anybody.
    pub(super) async fn enter(&mut self) -> Result<Admission, UpstreamError> {
        if self.attempts >= self.policy.attempts {
            return Err(self.verdict());
        }
        let patience = Instant::now() + LONGEST_WAIT;
        let mut door = Door::Front;
        loop {
            if let Some((leg, at)) = self.again.take() {
                sleep_until(at).await;
                if let Ok(admission) = self.admit(leg, door) {
                    return Ok(admission);
                }
            }
            let turned = match self.first_free(door) {
                Ok(admission) => return Ok(admission),
                Err(turned) => turned,
            };
            match self.wait(&turned, door, patience).await {
                Waited::In(admission) => return Ok(*admission),
                Waited::LookAgain => {}
                Waited::InVain => match Self::next_door(door, &turned) {
                    Some(next) => door = next,
                    None if self.goes_back() => {}
                    None => return Err(self.unasked(&turned)),
                },
            }
        }
    }

    /// Another target beside the one being asked, if one lets a call in at once.
    pub(super) fn enter_beside(&mut self, leg: usize) -> Option<Admission> {
        if self.attempts >= self.policy.attempts {
            return None;
        }
        let mut others = self.open_legs(Door::Front).into_iter().filter(|other| *other != leg);
        others.find_map(|other| self.admit(other, Door::Front).ok())
    }

    /// What a failed call means for the rest of the way: `Err` when nothing else may help.
    pub(super) fn leave(&mut self, leg: usize, error: UpstreamError) -> Result<(), UpstreamError> {
        let now = Instant::now();
        let reaction = error.fault().reaction();
        if reaction.fails_at_once() || now >= self.ask.deadline {
            self.failures.push((leg, error));
            return Err(self.verdict());
        }
        if reaction.next_key {
            let target = &mut self.legs[leg];
            target.keys_refused.extend(target.key);
        }
        if reaction.cool_key && error.fault().may_retry != Some(false) {
            self.legs[leg].limited_until = self.end_of_limit(leg, error.fault().wait, now);
        }
        if !self.tries_again(leg, reaction, &error, now) {
            self.legs[leg].is_over = true;
            self.narrow(leg, error.fault().class, reaction);
        }
        self.failures.push((leg, error));
        Ok(())
    }

    /// Whether the same target is tried again: at once with another key, or after a wait when no
    /// other serves the same model now.
    fn tries_again(&mut self, leg: usize, reaction: Reaction, error: &UpstreamError, now: Instant) -> bool {
        if reaction.next_key && self.has_another_key(leg, now) {
            return true;
        }
        let target = &self.legs[leg];
        let tried_enough = target.tries >= self.policy.per_target || reaction.at_once && target.tries > 1;
        if !reaction.retry_here || tried_enough || !target.candidate.target.is_standing(now) {
            return false;
        }
        if !reaction.at_once && self.has_alternative(leg, now) {
            return false;
        }
        let delay = if reaction.at_once {
            Some(Duration::ZERO)
        } else {
            // Another model now is better than this one after a long wait.
            let most = if self.is_last(leg, now) { Duration::MAX } else { self.policy.backoff.cap };
            self.delay(target.tries - 1, error.fault().wait, now).filter(|delay| *delay <= most)
        };
        self.schedule(leg, delay, now)
    }

    /// Nobody else is left: whoever limited the request is asked once more when that is over, if it
    /// is soon.
    fn goes_back(&mut self) -> bool {
        let now = Instant::now();
        let limited = self.legs.iter().enumerate().filter(|(_, leg)| leg.tries < self.policy.per_target);
        let limited = limited.filter_map(|(place, leg)| Some((leg.limited_until?, place)));
        let Some((until, leg)) = limited.min().filter(|(until, _)| *until <= now + LONGEST_WAIT) else {
            return false;
        };
        self.legs[leg].limited_until = None;
        let wait = until.saturating_duration_since(now);
        let delay = self.delay(self.legs[leg].tries - 1, Some(wait), now);
        self.legs[leg].is_over = !self.schedule(leg, delay, now);
        !self.legs[leg].is_over
    }

    /// How long a retry waits, if it fits the deadline.
    fn delay(&self, retry: u32, wait: Option<Duration>, now: Instant) -> Option<Duration> {
        let left = self.ask.deadline.saturating_duration_since(now);
        self.policy.backoff.next(retry, wait, (self.policy.jitter)(), left)
    }

    /// Has the target tried again after `delay`, when the budget allows it.
    fn schedule(&mut self, leg: usize, delay: Option<Duration>, now: Instant) -> bool {
        let Some(delay) = delay.filter(|_| self.policy.retries.try_withdraw(now)) else { return false };
        self.legs[leg].candidate.target.health.retried(now);
        self.again = Some((leg, now + delay));
        true
    }

    /// Whether a key is free that the target has not refused, and a call is left for it: keys that
    /// are limited together must not use up those of the other targets.
    fn has_another_key(&self, leg: usize, now: Instant) -> bool {
        let target = &self.legs[leg];
        let others = self.others(leg).count();
        let left = usize::try_from(self.policy.attempts.saturating_sub(self.attempts)).unwrap_or(usize::MAX);
        let keys = target.candidate.choice.endpoint.keys.states(now);
        let mut ready = keys.iter().filter(|key| key.standing == Standing::Ready);
        self.ask.credential.is_none()
            && left > others
            && ready.any(|key| !target.keys_refused.contains(&key.index))
    }

    /// When a target that limited the request may be asked again: when the next key is free, else
    /// as it said itself.
    fn end_of_limit(&self, leg: usize, wait: Option<Duration>, now: Instant) -> Option<Instant> {
        let keys = &self.legs[leg].candidate.choice.endpoint.keys;
        keys.next_free(now).or_else(|| wait.map(|wait| now + wait))
    }

    /// Those that may still be asked beside this one.
    fn others(&self, leg: usize) -> impl Iterator<Item = &Leg> {
        let others = self.legs.iter().enumerate().filter(move |(other, _)| *other != leg);
        others.map(|(_, other)| other).filter(|other| !other.is_over)
    }

    /// Whether nobody else could be asked any more.
    fn is_last(&self, leg: usize, now: Instant) -> bool {
        !self.others(leg).any(|other| other.candidate.target.is_standing(now))
    }

    /// Whether another target serves the same model, and could be asked now.
    fn has_alternative(&self, leg: usize, now: Instant) -> bool {
        let this = &self.legs[leg].candidate;
        self.others(leg).any(|other| other.candidate.is_same_model_as(this) && other.candidate.is_free(now))
    }

    /// Takes those off the way that would fail likewise.
    fn narrow(&mut self, leg: usize, class: Class, reaction: Reaction) {
        let this = self.legs[leg].candidate.clone();
        for other in self.legs.iter_mut().filter(|other| !other.is_over) {
            let same_model = other.candidate.is_same_model_as(&this);
            other.is_over = match class {
                // Only one that is known to read more.
                Class::ContextLength => {
                    match (other.candidate.choice.context_window, this.choice.context_window) {
                        (Some(other), Some(this)) => other <= this,
                        _ => true,
                    }
                }
                _ => same_model && !reaction.next_provider || !same_model && !reaction.next_model,
            };
        }
    }

    /// Those that may still be asked, in the order to ask them in. Where all are shut, the one that
    /// has not failed for the longest time has the best prospects.
    fn open_legs(&self, door: Door) -> Vec<usize> {
        let mut open: Vec<_> = (0..self.legs.len()).filter(|leg| !self.legs[*leg].is_over).collect();
        if door == Door::Side {
            open.sort_by_key(|leg| self.legs[*leg].candidate.target.failed_at());
        }
        open
    }

    fn first_free(&mut self, door: Door) -> Result<Admission, Vec<(usize, Turned)>> {
        let mut turned = Vec::new();
        for leg in self.open_legs(door) {
            match self.admit(leg, door) {
                Ok(admission) => return Ok(admission),
                Err(why) => turned.push((leg, why)),
            }
            // Rather wait for the best than ask one that is known to fail.
            if door == Door::Side && matches!(turned.last(), Some((_, Turned::Full))) {
                break;
            }
        }
        Err(turned)
    }

    /// The next door to try where nobody is let in at this one. One that is only full still stands.
    fn next_door(door: Door, turned: &[(usize, Turned)]) -> Option<Door> {
        match door {
            _ if turned.iter().any(|(_, why)| matches!(why, Turned::Full)) => None,
            Door::Front => Some(Door::Ramp),
            Door::Ramp => Some(Door::Side),
            Door::Side => None,
        }
    }

    fn admit(&mut self, leg: usize, door: Door) -> Result<Admission, Turned> {
        if let Some(why) = self.legs[leg].resting.filter(|why| why.rests(Instant::now())) {
            return Err(why);
        }
        let permit = self.permit(leg, door)?;
        let slots = self.free_slots(leg).ok_or(Turned::Full)?;
        self.dispatch(leg, permit, slots)
    }

    fn permit(&self, leg: usize, door: Door) -> Result<Permit, Turned> {
        let (target, now) = (&self.legs[leg].candidate.target, Instant::now());
        let anyway = match door {
            Door::Front => false,
            Door::Ramp => target.lets_in(now),
            // With everybody down a request makes one call, and not one to each.
            Door::Side => self.attempts == 0 || !target.has_failed_lately(now),
        };
        target.admit(anyway, now).map_err(|_| Turned::Shut)
    }

    fn free_slots(&self, leg: usize) -> Option<Slots> {
        let slot = self.legs[leg].candidate.choice.endpoint.limiter.try_acquire()?;
        match self.tenant_limiter(leg) {
            Some(limiter) => Some((slot, Some(limiter.try_acquire()?))),
            None => Some((slot, None)),
        }
    }

    /// Waits for a slot in the line of the first that is full, and for the end of the shortest rest:
    /// for what comes first.
    async fn wait(&mut self, turned: &[(usize, Turned)], door: Door, patience: Instant) -> Waited {
        let full = turned.iter().filter(|(_, why)| matches!(why, Turned::Full)).map(|(leg, _)| *leg);
        let line = full.into_iter().find(|leg| self.legs[*leg].shed.is_none());
        let rested = turned.iter().filter_map(|(_, why)| self.end_of_rest(*why, patience)).min();
        tokio::select! {
            biased;
            slots = self.line_up(line.unwrap_or_default()), if line.is_some() => {
                let leg = line.unwrap_or_default();
                match slots {
                    Ok(slots) => {
                        // It may have been shut meanwhile.
                        let admitted = self.permit(leg, door).and_then(|permit| self.dispatch(leg, permit, slots));
                        admitted.map_or(Waited::LookAgain, |admission| Waited::In(Box::new(admission)))
                    }
                    Err(shed) => {
                        self.legs[leg].shed = Some(shed);
                        Waited::LookAgain
                    }
                }
            }
            () = sleep_until(rested.unwrap_or(patience)), if rested.is_some() => Waited::LookAgain,
            else => Waited::InVain,
        }
    }

    /// When it is worth looking again, if waiting for that is.
    fn end_of_rest(&self, why: Turned, patience: Instant) -> Option<Instant> {
        let now = Instant::now();
        match why {
            // With some jitter: all who wait for a key are told the same moment.
            Turned::Limited(_, Some(until)) if until <= patience => {
                let wait = until.saturating_duration_since(now);
                self.delay(0, Some(wait), now).map(|delay| now + delay)
            }
            Turned::Paced(until) if until <= patience => {
                (until + self.policy.backoff.reserve <= self.ask.deadline).then_some(until)
            }
            Turned::Shut | Turned::Full | Turned::Limited(..) | Turned::Paced(_) => None,
        }
    }

    async fn line_up(&self, leg: usize) -> Result<Slots, Shed> {
        let Ask { priority, deadline, .. } = self.ask;
        let tenant_slot = match self.tenant_limiter(leg) {
            Some(limiter) => Some(limiter.acquire(priority, deadline).await?),
            None => None,
        };
        let limiter = &self.legs[leg].candidate.choice.endpoint.limiter;
        Ok((limiter.acquire(priority, deadline).await?, tenant_slot))
    }

    fn tenant_limiter(&self, leg: usize) -> Option<Limiter> {
        let tenants = self.legs[leg].candidate.choice.endpoint.tenants.as_ref()?;
        Some(tenants.limiter(self.ask.tenant))
    }

    /// The last that may turn a call away: its key and its rate.
    fn dispatch(&mut self, leg: usize, permit: Permit, slots: Slots) -> Result<Admission, Turned> {
        let dispatched = self.with_key(leg, permit, slots);
        self.legs[leg].resting = dispatched.as_ref().err().copied();
        dispatched
    }

    fn with_key(&mut self, leg: usize, permit: Permit, slots: Slots) -> Result<Admission, Turned> {
        let now = Instant::now();
        let is_last = self.is_last(leg, now);
        let target = &mut self.legs[leg];
        let endpoint = &target.candidate.choice.endpoint;
        // One that was refused may be picked again once it has rested, before that it is not free.
        let key = endpoint.keys.pick(now, &target.keys_refused).or_else(|| endpoint.keys.pick(now, &[]));
        let Some(key) = key else {
            return Err(Turned::Limited(
                limited_by(&endpoint.keys.states(now)),
                endpoint.keys.next_free(now),
            ));
        };
        if let Some(shaper) = &endpoint.shaper {
            shaper.check(self.ask.tokens(), now).map_err(|wait| Turned::Paced(now + wait))?;
        }
        target.key = key.key().is_some().then(|| key.index());
        target.tries += 1;
        self.attempts += 1;
        let candidate = target.candidate.clone();
        Ok(Admission { leg, candidate, permit, slots, key, attempt: self.attempts, is_last })
    }

    /// Nobody lets the request in: what to tell, if nothing failed before.
    fn unasked(&mut self, turned: &[(usize, Turned)]) -> UpstreamError {
        let now = Instant::now();
        if !self.failures.is_empty() || now >= self.ask.deadline {
            return self.verdict();
        }
        let provider = |leg: &Leg| leg.candidate.provider().clone();
        let shed = self.legs.iter().filter_map(|leg| Some((leg, leg.shed?)));
        if let Some((leg, shed)) = shed.min_by_key(|(_, shed)| shed.retry_after()) {
            return UpstreamError::Overloaded { provider: provider(leg), shed };
        }
        let limited = turned.iter().filter_map(|(leg, why)| match why {
            Turned::Limited(class, until) => Some((*until, *class, *leg)),
            Turned::Paced(until) => Some((Some(*until), Class::RateLimit, *leg)),
            Turned::Shut | Turned::Full => None,
        });
        let wait =
            |until: Option<Instant>| until.map_or(LONGEST_WAIT, |until| until.saturating_duration_since(now));
        match limited.min_by_key(|(until, ..)| wait(*until)) {
            Some((until, class, leg)) => UpstreamError::Throttled {
                provider: provider(&self.legs[leg]),
                class,
                retry_after: wait(until),
            },
            None => UpstreamError::SwitchedOff { model: self.ask.request.model.clone() },
        }
    }

    /// The error that tells the caller most of what happened: the request's own fault, else when to
    /// come again, else what may soon be over, else what an operator has to mend.
    fn verdict(&mut self) -> UpstreamError {
        let now = Instant::now();
        let failures = std::mem::take(&mut self.failures);
        if let Some((leg, error)) = failures.last()
            && !error.fault().reaction().fails_at_once()
        {
            self.legs[*leg].candidate.target.health.in_time(false, now);
        }
        if now >= self.ask.deadline {
            return UpstreamError::DeadlineExceeded;
        }
        let tells = |error: &UpstreamError| {
            let fault = error.fault();
            let rank = match fault.class {
                Class::InvalidRequest | Class::ContentFilter => 0,
                Class::RateLimit | Class::Capacity => 1,
                Class::Timeout | Class::Connect | Class::ServerError => 2,
                Class::ContextLength => 3,
                Class::Quota | Class::Auth => 4,
                Class::NotServed => 5,
            };
            (rank, fault.wait.unwrap_or(Duration::MAX))
        };
        // Of equals the latest.
        let told = failures.into_iter().rev().map(|(_, error)| error).min_by_key(tells);
        told.unwrap_or(UpstreamError::DeadlineExceeded)
    }
}

/// What the provider has against the keys, the one of the key that is free first.
fn limited_by(keys: &[KeyState]) -> Class {
    let until = |key: &KeyState| match key.standing {
        Standing::Ready => (None, Class::RateLimit),
        Standing::Cooling { until } => (Some(until), Class::RateLimit),
        Standing::Quarantined { refusal: Refusal::Auth, until } => (Some(until), Class::Auth),
        Standing::Quarantined { refusal: Refusal::Quota, until } => (Some(until), Class::Quota),
    };
    let (_, class) =
        keys.iter().map(until).min_by_key(|(until, _)| *until).unwrap_or((None, Class::RateLimit));
    class
}

//! How many calls run at once, and who waits for how long when more want to.
//!
//! Why: past what a provider takes, more calls at once make each of them late and none of them
//! sooner, until callers give up on answers that are still being paid for. So only as many run as
//! it takes; some wait, not many and not for long; the others hear at once when to come again.

mod adaptive;
mod queue;
pub mod shape;
mod tenants;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

pub use adaptive::AdaptiveLimit;
pub use queue::Priority;
use queue::{Place, Queue, Ticket};
pub use tenants::Tenants;

/// Far enough in the future, and small enough that adding it to now cannot overflow.
const FOREVER: Duration = Duration::from_hours(365 * 24);

/// How many may wait for a slot, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// At most so many at once; with 0 nobody waits.
    pub room: usize,
    /// At most so long, even when the deadline would allow more.
    pub longest: Duration,
}

/// Why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Shed {
    /// There was no room to wait, or it was needed for someone else.
    #[error("too many requests are waiting already")]
    Dropped {
        /// About how long until there would be a slot; between a second and a minute.
        retry_after: Duration,
    },
    /// None came free within the deadline, or within the longest wait allowed.
    #[error("no slot came free in time")]
    TimedOut {
        /// As above.
        retry_after: Duration,
    },
}

impl Shed {
    /// A word for metrics and logs.
    pub fn label(self) -> &'static str {
        match self {
            Self::Dropped { .. } => "queue_full",
            Self::TimedOut { .. } => "queue_timeout",
        }
    }

    /// About how long until there would be a slot: an estimate from how long slots were held
    /// lately and how many wait; between a second and a minute.
    pub fn retry_after(self) -> Duration {
        match self {
            Self::Dropped { retry_after } | Self::TimedOut { retry_after } => retry_after,
        }
    }
}

/// What a limiter does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimiterStats {
    /// Slots that exist.
    pub limit: u32,
    /// Slots taken; more than `limit` for a while after it went down.
    pub in_flight: u32,
    /// How many wait.
    pub waiting: usize,
    /// For how long the oldest of them has.
    pub oldest: Option<Duration>,
}

/// Slots for calls, and a bounded line in front of them. Clones share the slots.
#[derive(Clone, Debug)]
pub struct Limiter(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    longest: Duration,
}

#[derive(Debug)]
struct State {
    queue: Queue<Wake>,
    adaptive: AdaptiveLimit,
}

/// How a waiter hears what became of it. The slot itself travels: one that a waiter does not take
/// is dropped with the channel, and so passed on.
type Wake = oneshot::Sender<Result<Slot, Shed>>;

impl Limiter {
    /// A limiter with every slot free.
    pub fn new(limit: AdaptiveLimit, waiting: Waiting) -> Self {
        let queue = Queue::new(limit.current(), waiting.room);
        let state = Mutex::new(State { queue, adaptive: limit });
        Self(Arc::new(Shared { state, longest: waiting.longest.min(FOREVER) }))
    }

    /// A slot, if one is free: without waiting, and past nobody who waits.
    pub fn try_acquire(&self) -> Option<Slot> {
        let mut state = self.0.state();
        let constrained = state.queue.enter().then(|| state.queue.is_full())?;
        drop(state);
        Some(Slot { limiter: self.0.clone(), since: Instant::now(), constrained })
    }

    /// Waits for a slot until `deadline`, if there is room to wait. Interactive requests come
    /// before batch ones, then the oldest comes first. When there is no room, the oldest batch
    /// request is dropped, or without one the oldest of all; the error comes at once. After
    /// `deadline` there is no slot, even if one is free.
    ///
    /// Dropping the future gives up the place in line, and a slot that was given meanwhile.
    pub async fn acquire(&self, priority: Priority, deadline: Instant) -> Result<Slot, Shed> {
        let now = Instant::now();
        let mut place = match self.0.arrive(priority, deadline, now)? {
            Arrival::In(slot) => return Ok(slot),
            Arrival::Waiting(place) => place,
        };
        match timeout_at(deadline.min(now + self.0.longest), &mut place.answer).await {
            Ok(Ok(answer)) => answer,
            // Nobody drops the other end without an answer.
            Ok(Err(_)) => Err(Shed::Dropped { retry_after: self.0.retry_after() }),
            Err(_) => Err(Shed::TimedOut { retry_after: self.0.retry_after() }),
        }
    }

    /// What it does at the moment.
    pub fn stats(&self, now: Instant) -> LimiterStats {
        let State { queue, adaptive } = &*self.0.state();
        LimiterStats {
            limit: adaptive.current(),
            in_flight: queue.in_flight(),
            waiting: queue.waiting(),
            oldest: queue.oldest(now),
        }
    }

    /// Whether this is the only handle, and no slot is out.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

enum Arrival {
    In(Slot),
    Waiting(InLine),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn retry_after(&self) -> Duration {
        self.state().queue.retry_after()
    }

    fn arrive(
        self: &Arc<Self>,
        priority: Priority,
        deadline: Instant,
        now: Instant,
    ) -> Result<Arrival, Shed> {
        let mut state = self.state();
        let retry_after = state.queue.retry_after();
        if deadline <= now {
            return Err(Shed::TimedOut { retry_after });
        }
        if state.queue.enter() {
            let constrained = state.queue.is_full();
            return Ok(Arrival::In(Slot { limiter: self.clone(), since: now, constrained }));
        }
        let (wake, answer) = oneshot::channel();
        let Place::Waiting { ticket, dropped } = state.queue.line_up(priority, wake, now) else {
            return Err(Shed::Dropped { retry_after });
        };
        drop(state);
        if let Some(dropped) = dropped {
            // It may have gone meanwhile.
            let _ = dropped.send(Err(Shed::Dropped { retry_after }));
        }
        Ok(Arrival::Waiting(InLine { limiter: self.clone(), ticket, answer }))
    }

    fn release(self: &Arc<Self>, held: Duration) {
        let next = self.state().queue.release(held);
        self.admit(next);
    }

    fn adapt(self: &Arc<Self>, change: impl FnOnce(&mut AdaptiveLimit)) {
        let mut state = self.state();
        change(&mut state.adaptive);
        let limit = state.adaptive.current();
        let admitted = state.queue.set_limit(limit);
        drop(state);
        self.admit(admitted);
    }

    /// Hands each its slot, which the queue has counted already. The lock must be free: a slot
    /// whose waiter has gone meanwhile comes back through it, for the next one.
    fn admit(self: &Arc<Self>, waiters: impl IntoIterator<Item = Wake>) {
        for wake in waiters {
            let slot = Slot { limiter: self.clone(), since: Instant::now(), constrained: true };
            drop(wake.send(Ok(slot)));
        }
    }
}

/// Someone who waits; dropping it leaves the line.
struct InLine {
    limiter: Arc<Shared>,
    ticket: Ticket,
    answer: oneshot::Receiver<Result<Slot, Shed>>,
}

impl Drop for InLine {
    fn drop(&mut self) {
        // A slot that came already is in `answer`, which is dropped next, without the lock.
        self.limiter.state().queue.leave(self.ticket);
    }
}

/// The right to one call; dropping it frees the slot for the next waiter. Held until the answer's
/// last byte, since a provider is busy until then.
#[derive(Debug)]
#[must_use = "dropping it frees the slot"]
pub struct Slot {
    limiter: Arc<Shared>,
    since: Instant,
    /// The limit was reached when the slot was given.
    constrained: bool,
}

impl Slot {
    /// The provider took the call (its first content came). Said at most once; it may raise an
    /// adaptive limit.
    pub fn succeed(&self) {
        self.limiter.adapt(|limit| limit.succeed(self.since, self.constrained));
    }

    /// The provider had no room for the call, and said so. It may lower an adaptive limit.
    pub fn refused(&self) {
        let now = Instant::now();
        self.limiter.adapt(|limit| limit.refused(self.since, now));
    }

    /// The provider was too late with the call. It may lower an adaptive limit.
    pub fn timed_out(&self) {
        let now = Instant::now();
        self.limiter.adapt(|limit| limit.timed_out(self.since, now));
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.limiter.release(self.since.elapsed());
    }
}

#[cfg(test)]
mod tests;

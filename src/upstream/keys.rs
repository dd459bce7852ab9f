//! The keys of one provider: whose turn it is, who rests, who is out and when it is tried again.
//!
//! Why a pool: a rate limit, a quota and a refusal are a key's, not the provider's. With several
//! keys a call goes on with the next one; with one key the pool still says that asking is useless
//! until a certain time. No key is out for ever: after a while one call tries it, so whoever tops
//! up an account or renews a key need not tell anyone.

mod standing;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use standing::{Access, Key};
pub use standing::{Refusal, Standing};

/// The keys of one provider, of whatever type a key has.
///
/// A pool of no keys is for providers that need none, and for callers who bring their own: every
/// call gets a [`Picked`] without a key once, and nothing it reports is remembered, since one
/// caller's bad key must not stop the others.
///
/// Shared by all calls; every method takes one short lock and never waits for a call.
pub struct KeyPool<K>(Arc<Pool<K>>);

struct Pool<K> {
    keys: Vec<K>,
    state: Mutex<State>,
}

struct State {
    /// One for each key, in the same order.
    keys: Vec<Key>,
    picks: u64,
}

impl<K> Pool<K> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with one key's state; `None` when the pool has no keys.
    fn with<T>(&self, index: usize, change: impl FnOnce(&mut Key) -> T) -> Option<T> {
        self.state().keys.get_mut(index).map(change)
    }
}

impl<K> KeyPool<K> {
    /// A pool of these keys, all of them ready.
    pub fn new(keys: Vec<K>) -> Self {
        let state = State { keys: keys.iter().map(|_| Key::new()).collect(), picks: 0 };
        Self(Arc::new(Pool { keys, state: Mutex::new(state) }))
    }

    /// The key whose turn it is, out of those that can be used now and are not in `tried` (the
    /// indexes that this request has used already); `None` when there is none left.
    ///
    /// A ready key that was not limited within the last minute comes before one that was, the one
    /// limited longest ago before the others, then the one used longest ago. A key in quarantine
    /// whose time has come goes to one call at a time, before all others: if it went after them, it
    /// would never be tried while they are well. It goes last to a request that has
    /// already failed with another key.
    pub fn pick(&self, now: Instant, tried: &[usize]) -> Option<Picked<K>> {
        let pool = &self.0;
        if pool.keys.is_empty() {
            return tried.is_empty().then(|| Picked { pool: pool.clone(), index: 0, era: 0 });
        }
        let mut state = pool.state();
        let rank = |key: &Key| match key.access(now) {
            Access::Probe if tried.is_empty() => Some(0),
            Access::Ready => Some(1),
            Access::Probe => Some(2),
            Access::From(_) | Access::Probing => None,
        };
        let keys = state.keys.iter().enumerate().filter(|(index, _)| !tried.contains(index));
        let usable = keys.filter_map(|(index, key)| Some(((rank(key)?, key.turn(now)), index)));
        let (_, index) = usable.min()?;
        state.picks += 1;
        let pick = state.picks;
        let era = state.keys[index].take(pick);
        drop(state);
        Some(Picked { pool: pool.clone(), index, era })
    }

    /// When the next key can be picked. `None` when one can be now, or when nobody can say,
    /// because every key that does not rest is being tried.
    pub fn next_free(&self, now: Instant) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        for key in &self.0.state().keys {
            match key.access(now) {
                Access::Ready | Access::Probe => return None,
                Access::From(from) => next = Some(next.map_or(from, |next| next.min(from))),
                Access::Probing => {}
            }
        }
        next
    }

    /// The keys themselves, in their order, for who asks without a policy.
    pub fn all(&self) -> &[K] {
        &self.0.keys
    }

    /// How each key stands, in the order of the config; empty for a pool of no keys.
    pub fn states(&self, now: Instant) -> Vec<KeyState> {
        let state = self.0.state();
        let keys = state.keys.iter().enumerate();
        keys.map(|(index, key)| KeyState {
            index,
            standing: key.standing(now),
            last_limited: key.last_limited(),
        })
        .collect()
    }
}

/// Shows where the keys stand, and nothing of the keys.
impl<K> fmt::Debug for KeyPool<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyPool").field(&self.0.state().keys).finish()
    }
}

/// How one key stands, for stats and logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyState {
    /// Its place in the config, from 0.
    pub index: usize,
    /// What can be done with it, until when, and why.
    pub standing: Standing,
    /// When the provider last limited it.
    pub last_limited: Option<Instant>,
}

impl KeyState {
    /// What to call the key where people read it.
    pub fn name(&self) -> String {
        name(self.index)
    }
}

/// "key 2" for the second key.
fn name(index: usize) -> String {
    format!("key {}", index + 1)
}

/// A key lent to one call. What the call learned about it is said once, by the method that takes
/// the guard; dropping the guard says nothing, and gives a probe to the next call.
#[must_use = "dropping it says that nothing was learned about the key"]
pub struct Picked<K> {
    pool: Arc<Pool<K>>,
    index: usize,
    era: u64,
}

impl<K> Picked<K> {
    /// The key's place in the config, from 0: what goes into `tried`.
    pub fn index(&self) -> usize {
        self.index
    }

    /// What to call the key where people read it.
    pub fn name(&self) -> String {
        if self.pool.keys.is_empty() { "no key".to_owned() } else { name(self.index) }
    }

    /// The key; `None` out of a pool of no keys.
    pub fn key(&self) -> Option<&K> {
        self.pool.keys.get(self.index)
    }

    /// The provider accepted the key and does not limit it: whatever it was out for is over.
    pub fn succeed(self) {
        self.pool.with(self.index, |key| key.succeed(self.era));
    }

    /// The provider limits the key, until the time it named if it did, else for a second, and
    /// twice as long each time in a row up to a minute. Never makes an earlier rest shorter; no
    /// rest is longer than an hour. Gives its end; `None` out of a pool of no keys.
    pub fn cool(self, until: Option<Instant>, now: Instant) -> Option<Instant> {
        self.pool.with(self.index, |key| key.cool(self.era, until, now))
    }

    /// The provider does not accept the key. It is tried again after 10 minutes (`Auth`) or
    /// 15 (`Quota`), and twice as long each time in a row up to an hour. Gives that time; `None` out
    /// of a pool of no keys.
    pub fn quarantine(self, refusal: Refusal, now: Instant) -> Option<Instant> {
        self.pool.with(self.index, |key| key.quarantine(self.era, refusal, now))
    }
}

impl<K> Drop for Picked<K> {
    fn drop(&mut self) {
        self.pool.with(self.index, |key| key.give_back(self.era));
    }
}

/// Shows the key's name and nothing of the key.
impl<K> fmt::Debug for Picked<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Picked").field(&self.name()).finish()
    }
}

#[cfg(test)]
mod tests;

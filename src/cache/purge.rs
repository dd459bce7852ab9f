//! Purges that hold: an answer that was on its way when it was purged never comes back.
//!
//! A purge of a whole namespace begins a new epoch: the epoch is part of every key, so the next
//! request sees nothing of the old one, whatever its size. Any purge leaves a mark; an answer
//! asked for before a mark that names it is not written any more. Marks are published in the
//! store, where other instances find them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use tokio::sync::RwLock as AsyncRwLock;

use super::Entry;
use super::exact::ExactCache;
use super::store::{Mark, Selector, Store, StoreError};
use crate::clock::{Clock, Timestamp};

/// The epochs of all namespaces and the purges of late.
pub struct Purges {
    store: Arc<dyn Store>,
    clock: Clock,
    /// How long a mark is remembered after the store was last asked for marks.
    remembered: Duration,
    seen: RwLock<Seen>,
    /// What is still to be deleted from the store: a purge holds before its deletion is done.
    undone: Mutex<Vec<Selector>>,
    /// Held for reading while an answer is checked and written, and taken for writing between
    /// a purge's mark and its deletion: so no write slips in between its check and its deletion.
    writes: AsyncRwLock<()>,
}

#[derive(Default)]
struct Seen {
    epochs: HashMap<String, u64>,
    /// Stands for every epoch while the store has not said what they are.
    provisional: Option<u64>,
    recent: Vec<Mark>,
    /// When the store last said what was purged.
    learned_at: Timestamp,
}

/// Leave to write an entry; a purge waits until it is dropped.
pub struct WriteLeave<'a>(
    #[expect(dead_code, reason = "held, not read")] tokio::sync::RwLockReadGuard<'a, ()>,
);

impl Purges {
    /// Reads the marks that the store holds. While it cannot be reached, all namespaces are in an
    /// epoch of their own, so that nothing purged is served. `remembered` is how long marks are
    /// kept here: longer than any answer is on its way.
    pub async fn load(store: Arc<dyn Store>, clock: Clock, remembered: Duration) -> Result<Self, StoreError> {
        let marks = store.marks().await;
        let mut seen = Seen { learned_at: clock.now(), ..Seen::default() };
        let mut undone = Vec::new();
        match marks {
            Ok(marks) => {
                for mark in marks {
                    // The process may have ended between a mark and its deletion.
                    undone.push(mark.gone());
                    seen.add(mark);
                }
            }
            Err(error @ StoreError::Unusable(_)) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "purges are not known: nothing stored before is served until they are");
                seen.provisional = Some(clock.now().0);
            }
        }
        let (seen, undone) = (RwLock::new(seen), Mutex::new(undone));
        Ok(Self { store, clock, remembered, seen, undone, writes: AsyncRwLock::default() })
    }

    /// The namespace's epoch; 0 before its first purge.
    pub fn epoch(&self, namespace: &str) -> u64 {
        self.seen().epoch(namespace)
    }

    /// Begins a purge, at once: from now on nothing that `selector` names, and that was asked for
    /// until now, is served or written.
    pub fn begin(&self, selector: &Selector) -> Mark {
        let mut seen = self.seen_mut();
        let at = self.clock.now();
        // Wall time, so that epochs of several instances order themselves.
        let epoch = whole_namespace(selector).map(|namespace| at.0.max(seen.epoch(namespace) + 1));
        let mark = Mark { selector: selector.clone(), at, epoch };
        seen.add(mark.clone());
        mark
    }

    /// Publishes a purge that has begun and waits for writes under way, so that the caller may
    /// delete. If this fails, other instances may not have heard of it.
    pub async fn publish(&self, mark: &Mark) -> Result<(), StoreError> {
        self.store.publish(mark).await?;
        drop(self.writes.write().await);
        Ok(())
    }

    /// Deletes what a purge names from the store, now or with the next [`Purges::learn`].
    pub async fn delete(&self, mark: &Mark) -> Result<u64, StoreError> {
        let gone = mark.gone();
        self.store.delete(&gone).await.inspect_err(|_| self.undone().push(gone.clone()))
    }

    /// Whether `entry` has been purged since it was asked for. Never waits.
    pub fn has_purged(&self, entry: &Entry) -> bool {
        self.seen().purged(entry)
    }

    /// Leave to write `entry` to the store, unless it has been purged since it was asked for. May
    /// wait for a purge, so this is not for the path of a request.
    pub async fn leave_to_write(&self, entry: &Entry) -> Option<WriteLeave<'_>> {
        let leave = self.writes.read().await;
        (!self.has_purged(entry)).then_some(WriteLeave(leave))
    }

    /// Learns of purges by other instances: drops from memory what they name, and then from the
    /// store, because this instance may have written some of it since. Deletions that failed
    /// before are tried again. Returns how many marks were new.
    pub async fn learn(&self, exact: &ExactCache) -> Result<usize, StoreError> {
        let marks = self.store.marks().await?;
        let new: Vec<Mark> = {
            let mut seen = self.seen_mut();
            // Between two looks anything may have been purged; only what is older is known.
            let oldest = seen.learned_at.before(self.remembered);
            seen.forget_before(oldest);
            seen.learned_at = self.clock.now();
            seen.provisional = None;
            let lasting = |mark: &Mark| mark.epoch.is_some() || mark.at >= oldest;
            let new: Vec<_> = marks.into_iter().filter(|mark| lasting(mark) && !seen.knows(mark)).collect();
            for mark in &new {
                seen.add(mark.clone());
            }
            new
        };
        for mark in &new {
            exact.remove(&mark.gone());
        }
        self.undone().extend(new.iter().map(Mark::gone));
        self.finish().await?;
        Ok(new.len())
    }

    /// Does the deletions that are still to be done. The first one that fails stops it.
    pub async fn finish(&self) -> Result<(), StoreError> {
        loop {
            let Some(gone) = self.undone().last().cloned() else { return Ok(()) };
            drop(self.writes.write().await);
            self.store.delete(&gone).await?;
            self.undone().retain(|selector| *selector != gone);
        }
    }

    fn seen(&self) -> RwLockReadGuard<'_, Seen> {
        self.seen.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen_mut(&self) -> RwLockWriteGuard<'_, Seen> {
        self.seen.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn undone(&self) -> MutexGuard<'_, Vec<Selector>> {
        self.undone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mark {
    /// What is to be deleted. All of it that lies there: clocks of instances may differ, and an
    /// entry too many that goes is a miss, one too few is a wrong answer.
    pub fn gone(&self) -> Selector {
        Selector { epoch_before: self.epoch, ..self.selector.clone() }
    }

    /// Whether an entry that is being served or written was purged by this mark. One that was
    /// asked for after the mark is another answer.
    fn covers(&self, entry: &Entry) -> bool {
        entry.written_at <= self.at
            && self.epoch.is_none_or(|epoch| entry.scope.partition.epoch < epoch)
            && self.selector.matches(entry)
    }
}

impl Seen {
    fn add(&mut self, mark: Mark) {
        if let (Some(namespace), Some(epoch)) = (&mark.selector.namespace, mark.epoch) {
            let known = self.epochs.entry(namespace.clone()).or_default();
            *known = epoch.max(*known);
        } else {
            self.recent.push(mark);
        }
    }

    fn epoch(&self, namespace: &str) -> u64 {
        self.epochs.get(namespace).copied().or(self.provisional).unwrap_or(0)
    }

    fn knows(&self, mark: &Mark) -> bool {
        match (&mark.selector.namespace, mark.epoch) {
            (Some(namespace), Some(epoch)) => self.epochs.get(namespace).is_some_and(|known| *known >= epoch),
            _ => self.recent.contains(mark),
        }
    }

    fn forget_before(&mut self, time: Timestamp) {
        self.recent.retain(|mark| mark.at >= time);
    }

    fn purged(&self, entry: &Entry) -> bool {
        let partition = &entry.scope.partition;
        partition.epoch < self.epoch(&partition.namespace)
            || self.recent.iter().any(|mark| mark.covers(entry))
    }
}

/// The namespace, when the selector names all of it and nothing narrower.
fn whole_namespace(selector: &Selector) -> Option<&str> {
    let namespace = selector.namespace.as_deref()?;
    let all = Selector { namespace: Some(namespace.to_owned()), ..Selector::default() };
    (*selector == all).then_some(namespace)
}

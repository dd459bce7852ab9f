//! The first layer: answers in memory, found by their exact key.
//!
//! moka decides what to drop when memory runs short and frees what has expired. Whether an
//! entry may be served is judged by the caller on [`Clock`] time, because moka's own clock
//! cannot be driven from outside.

use std::sync::Arc;
use std::time::Duration;

use moka::Expiry;
use moka::sync::Cache;

use super::Entry;
use super::key::ExactKey;
use super::store::Selector;
use crate::clock::Clock;

/// Entries in memory, weighed in bytes.
pub struct ExactCache {
    entries: Cache<ExactKey, Arc<Entry>>,
}

impl ExactCache {
    /// A cache that holds about `max_bytes`, and keeps entries for `stale` past their time: some may
    /// be served then when there is nothing else.
    pub fn new(max_bytes: u64, stale: Duration, clock: Clock) -> Self {
        let entries = Cache::builder()
            .max_capacity(max_bytes)
            .weigher(|_, entry: &Arc<Entry>| u32::try_from(entry.weight()).unwrap_or(u32::MAX))
            .expire_after(UntilUseless { clock, stale })
            .build();
        Self { entries }
    }

    /// The entry with this key. It may have expired: the caller judges that.
    pub fn get(&self, key: &ExactKey) -> Option<Arc<Entry>> {
        self.entries.get(key)
    }

    /// Keeps an entry, replacing one of the same key.
    pub fn insert(&self, entry: Arc<Entry>) {
        self.entries.insert(entry.key, entry);
    }

    /// Drops what `selector` names; returns how many entries went. Walks all entries, and does
    /// not block readers meanwhile.
    pub fn remove(&self, selector: &Selector) -> u64 {
        if let Some(id) = selector.id {
            let named = self.entries.get(&id).is_some_and(|entry| selector.matches(&entry));
            return u64::from(named && self.entries.remove(&id).is_some());
        }
        let named = self.entries.iter().filter(|(_, entry)| selector.matches(entry));
        named.filter(|(key, _)| self.entries.remove(&**key).is_some()).count() as u64
    }

    /// How many entries `selector` names.
    pub fn count(&self, selector: &Selector) -> u64 {
        self.entries.iter().filter(|(_, entry)| selector.matches(entry)).count() as u64
    }

    /// Entries and bytes held now; settles what moka has put off.
    pub fn size(&self) -> (u64, u64) {
        self.entries.run_pending_tasks();
        (self.entries.entry_count(), self.entries.weighted_size())
    }
}

/// Lets moka free an entry's memory once it is of no use any more.
struct UntilUseless {
    clock: Clock,
    stale: Duration,
}

impl Expiry<ExactKey, Arc<Entry>> for UntilUseless {
    #[expect(clippy::disallowed_types, reason = "moka's interface")]
    fn expire_after_create(
        &self,
        _key: &ExactKey,
        entry: &Arc<Entry>,
        _now: std::time::Instant,
    ) -> Option<Duration> {
        Some(entry.time_to_live(self.clock.now()) + self.stale)
    }

    #[expect(clippy::disallowed_types, reason = "moka's interface")]
    fn expire_after_update(
        &self,
        key: &ExactKey,
        entry: &Arc<Entry>,
        now: std::time::Instant,
        _left: Option<Duration>,
    ) -> Option<Duration> {
        self.expire_after_create(key, entry, now)
    }
}

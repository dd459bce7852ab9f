//! A store in memory that can be held, broken, and shared by two services.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use refrain::cache::Entry;
use refrain::cache::embedder::{EmbedderId, Embedding};
use refrain::cache::key::{ExactKey, Scope};
use refrain::cache::store::{
    Candidate, Cursor, Inventory, Journal, Mark, Page, Selector, Store, StoreError, VectorStore,
};
use tokio::sync::watch;

/// Entries, vectors and marks.
pub(crate) struct MemoryStore {
    entries: Mutex<HashMap<ExactKey, (Entry, Option<Embedding>)>>,
    marks: Mutex<Vec<Mark>>,
    failure: Mutex<Option<StoreError>>,
    writes_held: watch::Sender<bool>,
    writes_failing: AtomicBool,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self {
            entries: Mutex::default(),
            marks: Mutex::default(),
            failure: Mutex::default(),
            writes_held: watch::Sender::new(false),
            writes_failing: AtomicBool::new(false),
        }
    }
}

impl MemoryStore {
    /// Every call fails from now on, or works again.
    pub(crate) fn fail(&self, failure: Option<StoreError>) {
        *self.failure.lock().unwrap() = failure;
    }

    /// Writes and deletions fail, or work again.
    pub(crate) fn fail_writes(&self, failing: bool) {
        self.writes_failing.store(failing, Ordering::SeqCst);
    }

    fn check_write(&self) -> Result<(), StoreError> {
        self.check()?;
        if self.writes_failing.load(Ordering::SeqCst) { Err(StoreError::TimedOut) } else { Ok(()) }
    }

    /// Writes wait, or go on.
    pub(crate) fn hold_writes(&self, held: bool) {
        self.writes_held.send_replace(held);
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().values().map(|(entry, _)| entry.clone()).collect()
    }

    fn check(&self) -> Result<(), StoreError> {
        self.failure.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    fn near(
        &self,
        embedding: &Embedding,
        limit: usize,
        wanted: impl Fn(&Entry) -> bool,
    ) -> Result<Vec<Candidate>, StoreError> {
        self.check()?;
        let entries = self.entries.lock().unwrap();
        let mut found: Vec<Candidate> = entries
            .values()
            .filter(|(entry, _)| wanted(entry))
            .filter_map(|(entry, stored)| {
                let stored = stored.as_ref().filter(|stored| stored.embedder == embedding.embedder)?;
                let similarity = stored.vector.iter().zip(&*embedding.vector).map(|(a, b)| a * b).sum();
                Some(Candidate { entry: entry.clone(), similarity, tokens: stored.tokens.clone() })
            })
            .collect();
        found.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
        found.truncate(limit);
        Ok(found)
    }
}

#[async_trait]
impl VectorStore for MemoryStore {
    async fn search(
        &self,
        scope: &Scope,
        embedding: &Embedding,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        self.near(embedding, limit, |entry| entry.scope == *scope)
    }

    async fn get(&self, key: &ExactKey) -> Result<Option<Entry>, StoreError> {
        self.check()?;
        Ok(self.entries.lock().unwrap().get(key).map(|(entry, _)| entry.clone()))
    }

    async fn upsert(&self, entry: &Entry, embedding: Option<&Embedding>) -> Result<(), StoreError> {
        let mut held = self.writes_held.subscribe();
        let _ = held.wait_for(|held| !held).await;
        self.check_write()?;
        self.entries.lock().unwrap().insert(entry.key, (entry.clone(), embedding.cloned()));
        Ok(())
    }
}

#[async_trait]
impl Inventory for MemoryStore {
    async fn delete(&self, selector: &Selector) -> Result<u64, StoreError> {
        self.check_write()?;
        let mut entries = self.entries.lock().unwrap();
        let before = entries.len();
        entries.retain(|_, (entry, _)| !selector.matches(entry));
        Ok((before - entries.len()) as u64)
    }

    async fn count(&self, selector: &Selector) -> Result<u64, StoreError> {
        self.check()?;
        Ok(self.entries.lock().unwrap().values().filter(|(entry, _)| selector.matches(entry)).count() as u64)
    }

    async fn list(
        &self,
        selector: &Selector,
        cursor: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.check()?;
        let mut entries: Vec<Entry> =
            self.entries().into_iter().filter(|entry| selector.matches(entry)).collect();
        entries.sort_by_key(|entry| entry.key);
        entries.retain(|entry| cursor.is_none_or(|cursor| entry.key.to_string() > cursor.0));
        let more = entries.len() > limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| more).map(|entry| Cursor(entry.key.to_string()));
        Ok(Page { entries, next })
    }

    async fn similar(
        &self,
        selector: &Selector,
        embedding: &Embedding,
        min_similarity: f32,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        let mut found = self.near(embedding, limit, |entry| selector.matches(entry))?;
        found.retain(|candidate| candidate.similarity >= min_similarity);
        Ok(found)
    }
}

#[async_trait]
impl Journal for MemoryStore {
    async fn publish(&self, mark: &Mark) -> Result<(), StoreError> {
        self.check()?;
        self.marks.lock().unwrap().push(mark.clone());
        Ok(())
    }

    async fn marks(&self) -> Result<Vec<Mark>, StoreError> {
        self.check()?;
        Ok(self.marks.lock().unwrap().clone())
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn prepare(&self, _embedder: &EmbedderId, _dimensions: usize) -> Result<(), StoreError> {
        self.check()
    }

    async fn check(&self) -> Result<(), StoreError> {
        Self::check(self)
    }

    fn disk_bytes(&self) -> Option<u64> {
        None
    }

    async fn close(&self) {}
}

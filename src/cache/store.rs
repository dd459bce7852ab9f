//! The port to Qdrant: three small traits, each for one kind of caller.
//!
//! Every call takes a [`Scope`], a key or a [`Selector`], so that the tenant filter cannot be
//! forgotten. Two adapters keep the same contract (`tests/it/store`): [`edge`] holds everything
//! in the process, [`qdrant`] speaks to a server or a cluster.

pub mod edge;
mod marks;
pub mod qdrant;
mod record;

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Entry;
use super::embedder::{EmbedderId, Embedding, Tokens};
use super::key::{ExactKey, Scope};
use crate::clock::Timestamp;

/// A stored entry beside its similarity to what was looked for.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The entry as stored; its freshness is for the caller to judge.
    pub entry: Entry,
    /// Cosine similarity, −1 to 1.
    pub similarity: f32,
    /// What the embedder's head compares; `None` when it was stored without.
    pub tokens: Option<Arc<Tokens>>,
}

/// What the path of a request needs.
#[async_trait]
pub trait VectorStore: Send + Sync {
    /// The entries of exactly this scope nearest to `embedding` (in its embedder's collection),
    /// nearest first, at most `limit`. Expired entries may be among them.
    async fn search(
        &self,
        scope: &Scope,
        embedding: &Embedding,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError>;

    /// The entry with this key, whatever collection it lies in.
    async fn get(&self, key: &ExactKey) -> Result<Option<Entry>, StoreError>;

    /// Writes the entry, replacing one of the same key. Once this returns, the entry survives
    /// the process (kill -9 included). `None`: the entry can be found by its key only.
    async fn upsert(&self, entry: &Entry, embedding: Option<&Embedding>) -> Result<(), StoreError>;
}

/// What the operator's side needs. All of it has the timeout of a write: nobody's answer waits
/// for it, and it may have to look at everything.
#[async_trait]
pub trait Inventory: Send + Sync {
    /// Removes what `selector` names; returns how many entries went.
    async fn delete(&self, selector: &Selector) -> Result<u64, StoreError>;

    /// How many entries `selector` names.
    async fn count(&self, selector: &Selector) -> Result<u64, StoreError>;

    /// One page of what `selector` names, in a stable order, starting after `cursor`.
    async fn list(
        &self,
        selector: &Selector,
        cursor: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError>;

    /// What `selector` names and is at least `min_similarity` to `embedding`, nearest first,
    /// at most `limit`.
    async fn similar(
        &self,
        selector: &Selector,
        embedding: &Embedding,
        min_similarity: f32,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError>;
}

/// Purges that every instance must hear of, kept where the entries are.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Records the mark durably. A later mark of the same namespace replaces an earlier one;
    /// an earlier one never replaces a later one.
    async fn publish(&self, mark: &Mark) -> Result<(), StoreError>;

    /// All marks there are.
    async fn marks(&self) -> Result<Vec<Mark>, StoreError>;
}

/// A store that does all of it, and can say whether it is there.
#[async_trait]
pub trait Store: VectorStore + Inventory + Journal {
    /// Makes ready for vectors of this embedder; for the start, so that the first write finds its
    /// place. Fails with [`StoreError::Unusable`] when vectors of it are stored already and have
    /// another length.
    async fn prepare(&self, embedder: &EmbedderId, dimensions: usize) -> Result<(), StoreError>;

    /// Fails when the store cannot be reached; for `/readyz`.
    async fn check(&self) -> Result<(), StoreError>;

    /// Bytes on disk, where the adapter can tell.
    fn disk_bytes(&self) -> Option<u64>;

    /// Writes out what is buffered and releases the store. Later calls fail.
    async fn close(&self);
}

/// Names entries by what they have in common. Fields narrow each other; an empty selector
/// names everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selector {
    /// Entries of this namespace.
    pub namespace: Option<String>,
    /// Entries with this freshness tag.
    pub tag: Option<String>,
    /// The entry with this id.
    pub id: Option<ExactKey>,
    /// Entries that were asked of this model.
    pub model: Option<String>,
    /// Entries written before this time.
    pub written_before: Option<Timestamp>,
    /// Entries that expire at or before this time.
    pub expires_before: Option<Timestamp>,
    /// Entries of an epoch before this one.
    pub epoch_before: Option<u64>,
}

impl Selector {
    /// Whether the selector names this entry.
    pub fn matches(&self, entry: &Entry) -> bool {
        let partition = &entry.scope.partition;
        self.namespace.as_deref().is_none_or(|namespace| namespace == &*partition.namespace)
            && self.tag.as_ref().is_none_or(|tag| entry.tags.contains(tag))
            && self.id.as_ref().is_none_or(|id| *id == entry.key)
            && self.model.as_ref().is_none_or(|model| *model == entry.model)
            && self.written_before.is_none_or(|time| entry.written_at < time)
            && self.expires_before.is_none_or(|time| entry.expires_at <= time)
            && self.epoch_before.is_none_or(|epoch| partition.epoch < epoch)
    }
}

/// Where a page ended: opaque to the caller, whole to the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(pub String);

/// A page of entries.
#[derive(Clone, Debug)]
pub struct Page {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<Cursor>,
}

/// A purge: entries that `selector` names and that were asked for until `at` are gone.
///
/// A purge of a whole namespace carries the namespace's new epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// What was purged.
    pub selector: Selector,
    /// When.
    pub at: Timestamp,
    /// The epoch that begins, for a whole namespace.
    pub epoch: Option<u64>,
}

/// Why the store did not do it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// It did not answer in time.
    #[error("the store did not answer within its timeout")]
    TimedOut,
    /// It cannot be reached, or is closed.
    #[error("the store is not available: {0}")]
    Unavailable(Arc<str>),
    /// It answered with an error.
    #[error("the store failed: {0}")]
    Failed(Arc<str>),
    /// What lies in it is not what belongs there.
    #[error("{0}")]
    Unusable(Arc<str>),
}

impl StoreError {
    /// A word for metrics and logs.
    pub fn label(&self) -> &'static str {
        match self {
            Self::TimedOut => "timeout",
            Self::Unavailable(_) => "unavailable",
            Self::Failed(_) => "failed",
            Self::Unusable(_) => "unusable",
        }
    }
}

//! Qdrant Edge: the store inside the process, on disk under `store.path`.
//!
//! One shard for each embedder holds its vectors and entries, one more the entries that have
//! no vector. Changes go through one writer thread; reads run on tokio's blocking pool, a few
//! at a time, never on the threads that serve connections.

mod filter;
mod folder;
mod group;
mod journal;
mod shard;
mod shards;
#[cfg(test)]
mod tests;
mod writer;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use qdrant_edge::external::ordered_float::OrderedFloat;
use qdrant_edge::{
    CountRequest, NamedQuery, Payload, PointId, PointStructPersisted, QueryEnum, QueryRequest, ScoredPoint,
    ScoringQuery, ScrollRequest, VectorStructPersisted,
};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::timeout;
use tracing::warn;

use self::folder::Folder;
use self::group::Change;
use self::journal::JournalFile;
use self::shard::{Shard, message};
use self::shards::{KEYED, Shards};
use self::writer::{FreeSpace, Writer};
use super::record::{self, Condition};
use super::{Candidate, Cursor, Inventory, Journal, Mark, Page, Selector, Store, StoreError, VectorStore};
use crate::cache::Entry;
use crate::cache::embedder::{EmbedderId, Embedding};
use crate::cache::key::{ExactKey, Scope};

/// The adapter. Closing it, or dropping it, finishes what is queued; both block.
#[derive(Debug)]
pub struct EdgeStore {
    shards: Arc<Shards>,
    writer: Arc<Writer>,
    journal: Arc<JournalFile>,
    readers: Arc<Semaphore>,
    read_timeout: Duration,
    write_timeout: Duration,
    // Last: the folder is given back when everything in it is closed.
    folder: Mutex<Option<Folder>>,
}

impl EdgeStore {
    /// Opens the store in the folder `path`, which is created when missing. Blocks.
    ///
    /// # Errors
    /// [`StoreError::Unusable`], one sentence with what to do: the folder is in use by another
    /// process, cannot be written to, or holds what this version cannot read.
    pub fn open(path: &Path, read_timeout: Duration, write_timeout: Duration) -> Result<Self, StoreError> {
        let folder = path.to_owned();
        let free_space: FreeSpace = Box::new(move || fs4::available_space(&folder));
        Self::open_on(path, read_timeout, write_timeout, free_space)
    }

    fn open_on(
        path: &Path,
        read_timeout: Duration,
        write_timeout: Duration,
        free_space: FreeSpace,
    ) -> Result<Self, StoreError> {
        let folder = Folder::open(path)?;
        let journal = JournalFile::open(folder.journal())?;
        let shards = Arc::new(Shards::open(folder.shards())?);
        let writer = Writer::start(Arc::clone(&shards), folder.path().to_owned(), free_space)?;
        // A read is work for a core, not waiting: more at a time would only make each slower.
        let readers = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
        Ok(Self {
            shards,
            writer: Arc::new(writer),
            journal: Arc::new(journal),
            readers: Arc::new(Semaphore::new(readers)),
            read_timeout,
            write_timeout,
            folder: Mutex::new(Some(folder)),
        })
    }

    /// Runs `work` on the blocking pool within `limit`. Work that takes longer runs
    /// on, and keeps its place among the readers until it ends: a slow disk cannot pile it up.
    async fn read<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce(&Shards) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let shards = Arc::clone(&self.shards);
        let readers = Arc::clone(&self.readers);
        let read = async move {
            let place = readers.acquire_owned().await.map_err(|_| closed())?;
            spawn_blocking(move || {
                let _place = place;
                work(&shards)
            })
            .await
            .map_err(panicked)?
        };
        timeout(limit, read).await.map_err(|_| StoreError::TimedOut)?
    }

    async fn write(&self, change: Change, bytes: usize) -> Result<u64, StoreError> {
        timeout(self.write_timeout, self.writer.write(change, bytes))
            .await
            .map_err(|_| StoreError::TimedOut)?
    }
}

impl Drop for EdgeStore {
    fn drop(&mut self) {
        self.writer.close();
    }
}

#[async_trait]
impl VectorStore for EdgeStore {
    async fn search(
        &self,
        scope: &Scope,
        embedding: &Embedding,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        let (scope, embedding) = (scope.clone(), embedding.clone());
        self.read(self.read_timeout, move |shards| {
            let mut found = nearest(shards, &[record::in_scope(&scope)], &embedding, None, limit)?;
            found.retain(|candidate| record::belongs(&candidate.entry, &scope));
            Ok(found)
        })
        .await
    }

    async fn get(&self, key: &ExactKey) -> Result<Option<Entry>, StoreError> {
        let id = PointId::Uuid(key.as_uuid());
        self.read(self.read_timeout, move |shards| {
            let mut newest: Option<Entry> = None;
            for (_, shard) in shards.all() {
                let records = shard.with(|edge| edge.retrieve(&[id], Some(true.into()), None))?;
                let entries =
                    records.into_iter().filter_map(|record| entry_of(record.id, record.payload.as_ref()));
                newest = newest.into_iter().chain(entries).max_by_key(|entry| entry.written_at);
            }
            Ok(newest)
        })
        .await
    }

    async fn upsert(&self, entry: &Entry, embedding: Option<&Embedding>) -> Result<(), StoreError> {
        let payload = record::payload(entry, embedding)
            .map_err(|error| StoreError::Failed(error.to_string().into()))?;
        let (shard, dimensions, vector) = match embedding {
            Some(embedding) => {
                check_dimensions(&self.shards, &embedding.embedder, embedding.vector.len())?;
                if embedding.vector.iter().any(|value| !value.is_finite()) {
                    return Err(StoreError::Failed("the vector holds what is not a number".into()));
                }
                let vector = VectorStructPersisted::Single(embedding.vector.to_vec());
                (shards::name(&embedding.embedder), Some(embedding.vector.len()), vector)
            }
            None => (KEYED.to_owned(), None, VectorStructPersisted::Named(std::collections::HashMap::new())),
        };
        let id = PointId::Uuid(entry.key.as_uuid());
        let point = Box::new(PointStructPersisted { id, vector, payload: Some(Payload(payload)) });
        let bytes = entry.weight() * 2 + dimensions.unwrap_or(0) * size_of::<f32>();
        self.write(Change::Upsert { shard, dimensions, point }, bytes).await.map(drop)
    }
}

#[async_trait]
impl Inventory for EdgeStore {
    async fn delete(&self, selector: &Selector) -> Result<u64, StoreError> {
        self.write(Change::Delete(selector.clone()), 1).await
    }

    async fn count(&self, selector: &Selector) -> Result<u64, StoreError> {
        let conditions = record::conditions(selector);
        self.read(self.write_timeout, move |shards| {
            let mut count = 0;
            for (_, shard) in shards.all() {
                let request = CountRequest { filter: filter::all_of(&conditions), exact: true };
                count += shard.with(|edge| edge.count(request))? as u64;
            }
            Ok(count)
        })
        .await
    }

    async fn list(
        &self,
        selector: &Selector,
        cursor: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let conditions = record::conditions(selector);
        let place = cursor.map(record::Place::read).transpose()?;
        self.read(self.write_timeout, move |shards| {
            let mut place = place;
            let mut entries = Vec::new();
            for (name, shard) in shards.all() {
                let offset = match &place {
                    Some(place) if name < place.collection => continue,
                    Some(place) if name == place.collection => Some(PointId::Uuid(place.point)),
                    _ => None,
                };
                let missing = limit.max(1) - entries.len();
                if missing == 0 {
                    // The page is full and this shard not begun.
                    return Ok(Page { entries, next: Some(record::Place::start_of(name).write()) });
                }
                let (found, next) = scroll(&shard, &conditions, offset, missing)?;
                entries.extend(found);
                if let Some(point) = next {
                    return Ok(Page {
                        entries,
                        next: Some(record::Place { collection: name, point }.write()),
                    });
                }
                place = None;
            }
            Ok(Page { entries, next: None })
        })
        .await
    }

    async fn similar(
        &self,
        selector: &Selector,
        embedding: &Embedding,
        min_similarity: f32,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        let (conditions, embedding) = (record::conditions(selector), embedding.clone());
        self.read(self.write_timeout, move |shards| {
            nearest(shards, &conditions, &embedding, Some(min_similarity), limit)
        })
        .await
    }
}

#[async_trait]
impl Journal for EdgeStore {
    async fn publish(&self, mark: &Mark) -> Result<(), StoreError> {
        let (journal, mark) = (Arc::clone(&self.journal), mark.clone());
        let publish = spawn_blocking(move || journal.publish(&mark));
        timeout(self.write_timeout, publish).await.map_err(|_| StoreError::TimedOut)?.map_err(panicked)?
    }

    async fn marks(&self) -> Result<Vec<Mark>, StoreError> {
        Ok(self.journal.marks())
    }
}

#[async_trait]
impl Store for EdgeStore {
    async fn prepare(&self, embedder: &EmbedderId, dimensions: usize) -> Result<(), StoreError> {
        check_dimensions(&self.shards, embedder, dimensions)?;
        self.write(Change::Create { shard: shards::name(embedder), dimensions }, 1).await.map(drop)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.read(self.read_timeout, |shards| {
            shards.all().iter().try_for_each(|(_, shard)| shard.with(|_| Ok(())))
        })
        .await
    }

    fn disk_bytes(&self) -> Option<u64> {
        Some(self.writer.disk_bytes())
    }

    async fn close(&self) {
        self.readers.close();
        let (writer, shards) = (Arc::clone(&self.writer), Arc::clone(&self.shards));
        let close = spawn_blocking(move || {
            writer.close();
            for (_, shard) in shards.all() {
                shard.close();
            }
        });
        if let Err(error) = close.await {
            warn!(%error, "closing the store panicked");
        }
        drop(self.folder.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// The nearest points of an embedder's shard that fulfil the conditions.
fn nearest(
    shards: &Shards,
    conditions: &[Condition],
    embedding: &Embedding,
    min_similarity: Option<f32>,
    limit: usize,
) -> Result<Vec<Candidate>, StoreError> {
    let Some(shard) = shards.get(&shards::name(&embedding.embedder)) else { return Ok(Vec::new()) };
    check_dimensions(shards, &embedding.embedder, embedding.vector.len())?;
    let query = QueryRequest {
        prefetches: Vec::new(),
        query: Some(ScoringQuery::Vector(QueryEnum::Nearest(NamedQuery::default_dense(
            embedding.vector.to_vec(),
        )))),
        filter: filter::all_of(conditions),
        // Its threshold must be exceeded; ours only has to be reached.
        score_threshold: min_similarity.map(|least| OrderedFloat(least.next_down())),
        limit,
        offset: 0,
        params: None,
        with_vector: false.into(),
        with_payload: true.into(),
    };
    let candidate = |point: ScoredPoint| {
        let entry = entry_of(point.id, point.payload.as_ref())?;
        let tokens = point.payload.as_ref().and_then(|Payload(fields)| fields.get(record::TOKENS)?.as_str());
        Some(Candidate { entry, similarity: point.score, tokens: record::tokens(tokens) })
    };
    let points = shard.with(|edge| edge.query(query))?;
    Ok(points.into_iter().filter_map(candidate).collect())
}

/// Up to `limit` entries from `offset` on, by id, and the id after them.
fn scroll(
    shard: &Shard,
    conditions: &[Condition],
    offset: Option<PointId>,
    limit: usize,
) -> Result<(Vec<Entry>, Option<uuid::Uuid>), StoreError> {
    let request = ScrollRequest {
        offset,
        limit: Some(limit),
        filter: filter::all_of(conditions),
        with_payload: Some(true.into()),
        with_vector: false.into(),
        order_by: None,
    };
    let (records, next) = shard.with(|edge| edge.scroll(request))?;
    let entries = records.into_iter().filter_map(|record| entry_of(record.id, record.payload.as_ref()));
    let next = match next {
        Some(PointId::Uuid(id)) => Some(id),
        Some(PointId::NumId(_)) | None => None,
    };
    Ok((entries.collect(), next))
}

fn entry_of(id: PointId, payload: Option<&Payload>) -> Option<Entry> {
    let json = payload.and_then(|payload| payload.0.get(record::ENTRY)).and_then(serde_json::Value::as_str);
    record::entry(id, json)
}

fn check_dimensions(shards: &Shards, embedder: &EmbedderId, dimensions: usize) -> Result<(), StoreError> {
    match shards.get(&shards::name(embedder)).and_then(|shard| shard.dimensions()) {
        Some(stored) if stored != dimensions => Err(record::wrong_dimensions(embedder, stored, dimensions)),
        _ => Ok(()),
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("it is closed".into())
}

fn panicked(error: JoinError) -> StoreError {
    let reason =
        error.try_into_panic().map_or_else(|_| "its task was stopped".to_owned(), |panic| message(&*panic));
    StoreError::Failed(reason.into())
}

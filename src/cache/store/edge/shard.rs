//! One Edge shard on disk: the points of one embedder, or those without a vector.
//!
//! What Edge 0.7 leaves to its caller, all of it seen in its source:
//! - `update` reaches the disk with `flush` only: the write-ahead log is never replayed.
//! - `flush` panics on any failure, a full disk included, and so does dropping a shard.
//! - The log is never shortened either. It is of no use but for its numbering, which must go on,
//!   so whole files of it can go while the shard is closed.
//!
//! Reads share the lock, and so does the one writer; only opening anew excludes them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::thread::available_parallelism;

use qdrant_edge::{
    CreateIndex, DEFAULT_VECTOR_NAME, Distance, EdgeConfig, EdgeOptimizersConfig, EdgeShard,
    EdgeVectorParams, FieldIndexOperations, HnswIndexConfig, OperationResult, UpdateOperation, WalOptions,
};
use tracing::warn;

use super::filter;
use super::shards::UNFINISHED;
use crate::cache::store::{StoreError, record};
use crate::durable::sync_parent;

/// A segment gets a graph beyond this many kilobytes of vectors: 20,000 of 384 dimensions.
///
/// Below, the vectors of a scope are compared one by one, at well under a microsecond each: 5 to
/// 10 ms where one scope holds them all, which is what embedding the question takes, and far
/// less in the usual case of many scopes. Building the graph takes 10 seconds or more, in which
/// no write is taken, so it should not be smaller either.
const GRAPH_FROM_KB: usize = 30_000;

/// So many segments live side by side before any are merged: until 320,000 entries a step of the
/// optimizer handles what was written since the last one, not all there is.
const SEGMENTS: usize = 16;

/// One file of the log, in bytes. Edge allocates it in full.
const LOG_FILE: usize = 8 << 20;

/// Closed files of the log that may pile up before the shard is opened anew without them.
const LOG_FILES: usize = 8;

/// An open shard, or one that failed to open and will be tried again.
#[derive(Debug)]
pub(super) struct Shard {
    path: PathBuf,
    dimensions: Option<usize>,
    edge: RwLock<Option<EdgeShard>>,
}

impl Shard {
    /// Creates an empty shard for vectors of this length, or for points without one.
    ///
    /// It is made under another name and moved: a crash leaves no half of a shard.
    pub(super) fn create(path: &Path, dimensions: Option<usize>) -> Result<Self, StoreError> {
        let failed = |error: String| failure(&format!("creating {}", path.display()), &error);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let unfinished = path.with_file_name(format!("{UNFINISHED}{name}"));
        if unfinished.exists() {
            std::fs::remove_dir_all(&unfinished).map_err(|error| failed(error.to_string()))?;
        }
        std::fs::create_dir_all(&unfinished).map_err(|error| failed(error.to_string()))?;
        guard(|| {
            let edge = EdgeShard::new(&unfinished, config(dimensions))?;
            index_fields(&edge)?;
            edge.flush();
            Ok(())
        })?;
        std::fs::rename(&unfinished, path)
            .and_then(|()| sync_parent(path))
            .map_err(|error| failed(error.to_string()))?;
        Self::open(path)
    }

    /// Opens what [`Self::create`] made.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let unusable = |reason: &str| {
            StoreError::Unusable(
                format!(
                    "the stored entries in {} cannot be opened ({reason}): move that folder away to begin an \
                     empty one",
                    path.display()
                )
                .into(),
            )
        };
        let stored = match EdgeConfig::load(path) {
            Some(Ok(stored)) => stored,
            Some(Err(error)) => return Err(unusable(&error.to_string())),
            None => return Err(unusable("edge_config.json is missing")),
        };
        let dimensions = stored.vectors.get(DEFAULT_VECTOR_NAME).map(|vector| vector.size);
        drop_log_files(&path.join("wal"));
        // What an optimizer left that was killed.
        drop(std::fs::remove_dir_all(path.join("temp_segments")));
        let edge = load(path, dimensions).map_err(|error| unusable(&error.to_string()))?;
        Ok(Self { path: path.to_owned(), dimensions, edge: RwLock::new(Some(edge)) })
    }

    /// The length of the vectors; `None` when points have none.
    pub(super) fn dimensions(&self) -> Option<usize> {
        self.dimensions
    }

    /// Runs `work` on the open shard. Blocks; a panic of Edge is an error.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&EdgeShard) -> OperationResult<T>,
    ) -> Result<T, StoreError> {
        let edge = self.edge.read().unwrap_or_else(PoisonError::into_inner);
        let Some(edge) = edge.as_ref() else {
            return Err(StoreError::Unavailable(format!("{} is not open", self.path.display()).into()));
        };
        guard(|| work(edge))
    }

    /// Makes all updates durable.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        self.with(|edge| {
            edge.flush();
            Ok(())
        })
    }

    /// Builds graphs for large segments and gives back the room of what was deleted; whether
    /// there was anything to do. Takes seconds to minutes; reads go on, writes must not.
    pub(super) fn optimize(&self) -> Result<bool, StoreError> {
        self.with(|edge| {
            let optimized = edge.optimize()?;
            if optimized {
                edge.flush();
            }
            Ok(optimized)
        })
    }

    /// Closes the shard and opens it anew, with what is on disk and without old files of the
    /// log. Reads wait meanwhile. When opening fails, the shard stays closed.
    pub(super) fn reopen(&self) -> Result<(), StoreError> {
        let mut edge = self.edge.write().unwrap_or_else(PoisonError::into_inner);
        close(edge.take());
        drop_log_files(&self.path.join("wal"));
        *edge = Some(load(&self.path, self.dimensions)?);
        Ok(())
    }

    /// Whether the log has grown so much that opening anew is worth it.
    pub(super) fn has_long_log(&self) -> bool {
        closed_log_files(&self.path.join("wal")).len() > LOG_FILES
    }

    /// Flushes and closes; later calls fail.
    pub(super) fn close(&self) {
        close(self.edge.write().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        self.close();
    }
}

fn close(edge: Option<EdgeShard>) {
    // Dropping a shard flushes it, and that may panic.
    let drop_it = || {
        drop(edge);
        Ok(())
    };
    if let Err(error) = guard(drop_it) {
        warn!(%error, "closing a shard failed; what was not flushed is gone");
    }
}

fn load(path: &Path, dimensions: Option<usize>) -> Result<EdgeShard, StoreError> {
    guard(|| {
        let edge = EdgeShard::load(path, Some(config(dimensions)))?;
        index_fields(&edge)?;
        Ok(edge)
    })
}

fn config(dimensions: Option<usize>) -> EdgeConfig {
    let config = EdgeConfig::builder()
        .on_disk_payload(true)
        .hnsw_config(HnswIndexConfig {
            // The other half of the cores answers requests.
            max_indexing_threads: available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1)),
            ..HnswIndexConfig::default()
        })
        .optimizers(EdgeOptimizersConfig {
            indexing_threshold: Some(GRAPH_FROM_KB),
            default_segment_number: Some(SEGMENTS),
            ..EdgeOptimizersConfig::default()
        })
        .wal_options(WalOptions { segment_capacity: LOG_FILE, ..WalOptions::default() });
    let config = match dimensions {
        // Memory-mapped: what is not asked for need not stay in memory.
        Some(size) => config.vector(
            DEFAULT_VECTOR_NAME,
            EdgeVectorParams::builder(size, Distance::Cosine).on_disk(true).build(),
        ),
        None => config,
    };
    config.build()
}

/// Indexes every filtered field that has no index yet.
fn index_fields(edge: &EdgeShard) -> OperationResult<()> {
    let known = edge.info().payload_schema;
    for (field, index) in record::INDEXES {
        let field_name = filter::path(field);
        if !known.contains_key(&field_name) {
            let create = CreateIndex { field_name, field_schema: Some(filter::schema(index)) };
            edge.update(UpdateOperation::FieldIndexOperation(FieldIndexOperations::CreateIndex(create)))?;
        }
    }
    Ok(())
}

/// Removes closed files of the log but the last, from which Edge learns where to count on.
fn drop_log_files(wal: &Path) {
    let mut files = closed_log_files(wal);
    files.pop();
    for (_, file) in files {
        if let Err(error) = std::fs::remove_file(&file) {
            warn!(file = %file.display(), %error, "an old file of the log cannot be removed");
            // The log must stay without a gap.
            return;
        }
    }
}

/// The closed files of the log by what they start with, oldest first.
fn closed_log_files(wal: &Path) -> Vec<(u64, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(wal) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let start = entry.file_name().to_str()?.strip_prefix("closed-")?.parse().ok()?;
            Some((start, entry.path()))
        })
        .collect();
    files.sort_unstable();
    files
}

/// Runs a call of Edge; its errors and its panics become ours.
fn guard<T>(call: impl FnOnce() -> OperationResult<T>) -> Result<T, StoreError> {
    // Edge's locks do not poison, and the writer opens a shard anew after a failure.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(StoreError::Failed(error.to_string().into())),
        Err(panic) => Err(StoreError::Failed(message(&*panic).into())),
    }
}

/// What a panic said.
pub(super) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_owned()
}

fn failure(doing: &str, reason: &str) -> StoreError {
    StoreError::Failed(format!("{doing}: {reason}").into())
}

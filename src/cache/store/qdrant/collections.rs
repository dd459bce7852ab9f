//! The collections on the server: their names, how they are made, which there are.
//!
//! A name carries the version of what lies in it, so a later format begins collections of its
//! own beside those of an older Refrain.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use qdrant_client::Qdrant;
use qdrant_client::qdrant::vectors_config::Config;
use qdrant_client::qdrant::{
    CollectionInfo, CreateCollectionBuilder, CreateFieldIndexCollectionBuilder, Distance,
    GetCollectionInfoResponse, HnswConfigDiffBuilder, VectorParamsBuilder,
};
use tokio::time::{Instant, sleep};

use super::filter;
use super::link::{Fault, Link};
use crate::cache::embedder::EmbedderId;
use crate::cache::store::{StoreError, record};

/// How long the list of collections is believed: another instance with another embedder may
/// have begun one meanwhile, and until it is seen its entries are misses here.
const BELIEVED: Duration = Duration::from_secs(5);

/// Pauses in milliseconds while a collection that another instance is making becomes active: the
/// server lists it a moment before, and fails until then.
const PAUSES: [u64; 7] = [10, 20, 40, 80, 160, 320, 640];

/// The collections that begin with the configured prefix.
#[derive(Debug)]
pub(super) struct Collections {
    prefix: String,
    /// Nodes of a cluster that hold each collection; the server's own setting when `None`.
    replicas: Option<NonZeroU32>,
    /// Those made or checked by this instance, with all indexes.
    ready: Mutex<BTreeSet<String>>,
    /// Held while one is made: a burst of first writes would make every index once for each.
    making: tokio::sync::Mutex<()>,
    listed: Mutex<Option<(Instant, Vec<String>)>>,
}

impl Collections {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: format!("{prefix}-v1-"),
            replicas: None,
            ready: Mutex::default(),
            making: tokio::sync::Mutex::default(),
            listed: Mutex::default(),
        }
    }

    /// Collections made from now on have so many replicas.
    pub(super) fn replicate(&mut self, factor: Option<NonZeroU32>) {
        self.replicas = factor;
    }

    /// The collection of an embedder's vectors.
    pub(super) fn vectors(&self, embedder: &EmbedderId) -> String {
        format!("{}vectors-{embedder}", self.prefix)
    }

    /// The collection of entries without a vector.
    pub(super) fn keyed(&self) -> String {
        format!("{}keyed", self.prefix)
    }

    /// The collection of purge marks.
    pub(super) fn journal(&self) -> String {
        format!("{}journal", self.prefix)
    }

    /// Every collection that holds entries, by name. `fresh` asks the server in any case.
    pub(super) async fn all(&self, link: &Link, fresh: bool) -> Result<Vec<String>, StoreError> {
        if !fresh && let Some(names) = self.believed() {
            return Ok(names);
        }
        let list = link.call(|client| async move { client.list_collections().await }).await?;
        let holds_entries = |name: &String| {
            *name == self.keyed()
                || name.strip_prefix(&self.prefix).is_some_and(|rest| rest.starts_with("vectors-"))
        };
        let mut names: Vec<_> =
            list.collections.into_iter().map(|collection| collection.name).filter(holds_entries).collect();
        names.sort_unstable();
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), names.clone()));
        Ok(names)
    }

    fn believed(&self) -> Option<Vec<String>> {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, names) = listed.as_ref()?;
        (at.elapsed() < BELIEVED).then(|| names.clone())
    }

    /// Makes sure that a collection is there, with vectors of this length and all indexes.
    /// Two instances may do this at the same moment.
    pub(super) async fn prepare(
        &self,
        link: &Link,
        name: &str,
        embedder: Option<(&EmbedderId, usize)>,
        indexed: bool,
    ) -> Result<(), StoreError> {
        if self.is_ready(name) {
            return Ok(());
        }
        let _making = self.making.lock().await;
        if self.is_ready(name) {
            return Ok(());
        }
        if self.is_missing(link, name, embedder).await? {
            let created = link.call(|client| self.create(client, name, embedder)).await;
            // Whatever went wrong, the collection being there now is what counts: the other
            // instance was faster, or the answer was lost.
            if let Err(fault) = created
                && self.is_missing(link, name, embedder).await?
            {
                return Err(fault.into());
            }
        }
        if indexed {
            link.call(|client| async move { index(client, name).await }).await?;
        }
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    fn is_ready(&self, name: &str) -> bool {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// A collection that vanished is made again at the next write.
    pub(super) fn forget(&self, name: &str) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Fails when the collection is there and its vectors have another length.
    pub(super) async fn check(
        &self,
        link: &Link,
        name: &str,
        embedder: &EmbedderId,
        dimensions: usize,
    ) -> Result<(), StoreError> {
        self.is_missing(link, name, Some((embedder, dimensions))).await.map(drop)
    }

    async fn create(
        &self,
        client: Qdrant,
        name: &str,
        embedder: Option<(&EmbedderId, usize)>,
    ) -> Result<(), qdrant_client::QdrantError> {
        let mut collection = CreateCollectionBuilder::new(name).on_disk_payload(true);
        if let Some((_, dimensions)) = embedder {
            // A graph for each scope and none over all of them: every search stays in its scope.
            collection = collection
                .vectors_config(VectorParamsBuilder::new(dimensions as u64, Distance::Cosine).on_disk(true))
                .hnsw_config(HnswConfigDiffBuilder::default().m(0).payload_m(16));
        }
        if let Some(replicas) = self.replicas {
            collection = collection.replication_factor(replicas.get());
        }
        client.create_collection(collection).await.map(drop)
    }

    async fn is_missing(
        &self,
        link: &Link,
        name: &str,
        embedder: Option<(&EmbedderId, usize)>,
    ) -> Result<bool, StoreError> {
        let Some(found) = find(link, name).await? else { return Ok(true) };
        let Some((embedder, dimensions)) = embedder else { return Ok(false) };
        match found.result.as_ref().and_then(vectors) {
            Some((size, Distance::Cosine)) if size == dimensions as u64 => Ok(false),
            Some((size, Distance::Cosine)) => {
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                Err(record::wrong_dimensions(embedder, size, dimensions))
            }
            _ => Err(StoreError::Unusable(
                format!(
                    "the collection {name} on the Qdrant server is none of Refrain's: set \
                     store.collection_prefix to one that is free"
                )
                .into(),
            )),
        }
    }
}

/// What the server knows of a collection; `None` when it is not there.
async fn find(link: &Link, name: &str) -> Result<Option<GetCollectionInfoResponse>, StoreError> {
    let mut pauses = PAUSES.into_iter().map(Duration::from_millis);
    loop {
        let outcome = link.call(|client| async move { client.collection_info(name).await }).await;
        match (outcome, pauses.next()) {
            (Ok(found), _) => return Ok(Some(found)),
            (Err(Fault::NoCollection), _) => return Ok(None),
            (Err(Fault::Internal(_)), Some(pause)) => sleep(pause).await,
            (Err(fault), _) => return Err(fault.into()),
        }
    }
}

fn vectors(info: &CollectionInfo) -> Option<(u64, Distance)> {
    let vectors = info.config.as_ref()?.params.as_ref()?.vectors_config.as_ref()?;
    match vectors.config.as_ref()? {
        Config::Params(vectors) => Some((vectors.size, vectors.distance())),
        Config::ParamsMap(_) => None,
    }
}

/// Creating an index that is there already changes nothing.
async fn index(client: Qdrant, name: &str) -> Result<(), qdrant_client::QdrantError> {
    for (field, index) in record::INDEXES {
        let (kind, params) = filter::schema(index);
        let request =
            CreateFieldIndexCollectionBuilder::new(name, field, kind).field_index_params(params).wait(true);
        client.create_field_index(request).await?;
    }
    Ok(())
}

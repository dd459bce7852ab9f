//! Taking answers back, by what they have in common.
//!
//! A whole namespace goes by a new epoch: the next request sees nothing of it, and its entries
//! are deleted in the background. Anything narrower is deleted before the call returns.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Gateway;
use crate::cache::embedder::EmbedError;
use crate::cache::store::{Selector, StoreError};
use crate::config::Similarity;

/// Entries that one call for similar ones takes at most; the answer says when there may be more.
const SIMILAR_LIMIT: usize = 1000;

/// Of them, so many at once.
const SIDE_BY_SIDE: usize = 64;

/// What shall go.
#[derive(Clone, Debug, Default)]
pub struct Eviction {
    /// What the entries have in common.
    pub selector: Selector,
    /// Only entries whose question is similar to this one.
    pub similar: Option<Similar>,
    /// Count only.
    pub dry_run: bool,
}

/// Questions near to one.
#[derive(Clone, Debug)]
pub struct Similar {
    /// The question.
    pub question: String,
    /// The least cosine similarity.
    pub min_similarity: Similarity,
}

/// How many entries went, or would go, from each layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evicted {
    /// From memory.
    pub exact: u64,
    /// From the store.
    pub store: u64,
    /// There may be more: similar ones are taken a thousand at a time.
    #[serde(default)]
    pub more: bool,
    /// Nothing went: it was asked what would.
    pub dry_run: bool,
}

/// Why nothing, or not all, was evicted.
#[derive(Clone, Debug, Error)]
pub enum EvictError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The question that entries shall be similar to has no vector.
    #[error("the question cannot be compared: {0}")]
    Embed(#[from] EmbedError),
}

impl Gateway {
    /// Takes entries back. Answers on their way that were asked for before are not written.
    pub async fn evict(self: &Arc<Self>, eviction: &Eviction) -> Result<Evicted, EvictError> {
        let evicted = match &eviction.similar {
            Some(similar) => self.evict_similar(&eviction.selector, similar, eviction.dry_run).await?,
            None => self.evict_selected(&eviction.selector, eviction.dry_run).await?,
        };
        tracing::info!(
            selector = ?eviction.selector,
            similar = eviction.similar.is_some(),
            evicted.exact,
            evicted.store,
            evicted.dry_run,
            "evicted"
        );
        let namespace = eviction.selector.namespace.as_deref().unwrap_or("default");
        if let Some(namespace) = self.namespaces().get(namespace).filter(|_| !eviction.dry_run) {
            namespace.metrics().evicted("exact", evicted.exact);
            namespace.metrics().evicted("semantic", evicted.store);
        }
        Ok(evicted)
    }

    async fn evict_selected(
        self: &Arc<Self>,
        selector: &Selector,
        dry_run: bool,
    ) -> Result<Evicted, StoreError> {
        if dry_run {
            let store = self.parts.store.count(selector).await?;
            let exact = self.parts.exact.count(selector);
            return Ok(Evicted { exact, store, dry_run, ..Evicted::default() });
        }
        let evicted = Evicted { exact: self.parts.exact.count(selector), ..Evicted::default() };
        // In force from here on, whatever becomes of the store: nobody is served what was named,
        // nor joins a flight that may bring it.
        let mark = self.parts.purges.begin(selector);
        self.flights.close_boarding();
        if mark.epoch.is_none() {
            self.parts.exact.remove(selector);
            self.parts.purges.publish(&mark).await?;
            return Ok(Evicted { store: self.parts.purges.delete(&mark).await?, ..evicted });
        }
        self.parts.purges.publish(&mark).await?;
        let store = self.parts.store.count(&mark.gone()).await;
        // The new epoch has made the entries unreachable: they are deleted in the background.
        let gateway = Arc::clone(self);
        self.tasks.spawn(async move {
            gateway.parts.exact.remove(&mark.gone());
            if let Err(error) = gateway.parts.purges.delete(&mark).await {
                tracing::warn!(%error, "purged entries are still in the store; they are deleted later");
            }
        });
        Ok(Evicted { store: store?, ..evicted })
    }

    async fn evict_similar(
        self: &Arc<Self>,
        selector: &Selector,
        similar: &Similar,
        dry_run: bool,
    ) -> Result<Evicted, EvictError> {
        let embedding = self.parts.semantic.encoders().embed(&similar.question).await?;
        let floor = similar.min_similarity.get();
        let near = self.parts.store.similar(selector, &embedding, floor, SIMILAR_LIMIT).await?;
        let more = near.len() == SIMILAR_LIMIT;
        let each = near.into_iter().map(|candidate| {
            let id = Selector { id: Some(candidate.entry.key), ..Selector::default() };
            let gateway = Arc::clone(self);
            async move { gateway.evict_selected(&id, dry_run).await }
        });
        // Side by side, so that deletions share their flushes.
        let each: Vec<Evicted> = stream::iter(each).buffer_unordered(SIDE_BY_SIDE).try_collect().await?;
        Ok(Evicted {
            exact: each.iter().map(|one| one.exact).sum(),
            store: each.iter().map(|one| one.store).sum(),
            more,
            dry_run,
        })
    }

    /// Removes entries from the store that are not even of use as stale ones. Returns how many.
    pub async fn sweep(&self) -> Result<u64, StoreError> {
        let useless = self.parts.clock.now().before(self.parts.stale_for);
        let expired = Selector { expires_before: Some(useless), ..Selector::default() };
        self.parts.store.delete(&expired).await
    }

    /// Learns of purges by other instances, and makes up for deletions that failed. Returns how
    /// many purges were new.
    pub async fn learn_purges(&self) -> Result<usize, StoreError> {
        let new = self.parts.purges.learn(&self.parts.exact).await?;
        if new > 0 {
            self.flights.close_boarding();
        }
        Ok(new)
    }
}

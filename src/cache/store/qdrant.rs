//! A Qdrant server or cluster: the store that several instances share.
//!
//! One collection for each embedder, one for entries without a vector, one for purge marks.
//! Nothing is sent before the first call, and every call stands for itself: a server that was
//! away is simply there again.

mod collections;
mod filter;
mod journal;
mod link;

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use qdrant_client::Payload;
use qdrant_client::qdrant::points_selector::PointsSelectorOneOf;
use qdrant_client::qdrant::{
    CountPointsBuilder, DeletePointsBuilder, GetPointsBuilder, NamedVectors, PayloadIncludeSelector, PointId,
    PointStruct, PointsIdsList, QueryPointsBuilder, ScrollPointsBuilder, UpsertPointsBuilder, Value, Vectors,
    WriteOrdering, WriteOrderingType,
};

use self::collections::Collections;
use self::link::{Fault, Limit, Link};
use super::record::{self, Condition, Place};
use super::{Candidate, Cursor, Inventory, Journal, Mark, Page, Selector, Store, StoreError, VectorStore};
use crate::cache::Entry;
use crate::cache::embedder::{EmbedderId, Embedding};
use crate::cache::key::{ExactKey, Scope};
use crate::config::Secret;

/// Two instances may write the same entry, or one delete what the other writes, through different
/// nodes of a cluster at once. One node puts them in order, so that the replicas agree.
const ORDER: WriteOrdering = WriteOrdering { r#type: WriteOrderingType::Medium as i32 };

/// The adapter. Dropping a call's future leaves nothing running here; the server may still
/// finish it.
#[derive(Debug)]
pub struct QdrantStore {
    link: Link,
    collections: Collections,
}

impl QdrantStore {
    /// A store on the server at `url`, the address of its gRPC port. Every collection's name
    /// begins with `prefix`. Nothing is sent yet, so the server need not be there.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] when `url` is no URL.
    pub fn connect(
        url: &str,
        prefix: &str,
        api_key: Option<Secret>,
        read_timeout: Duration,
        write_timeout: Duration,
    ) -> Result<Self, StoreError> {
        let link = Link::new(url, api_key, read_timeout, write_timeout)?;
        Ok(Self { link, collections: Collections::new(prefix) })
    }

    /// The same store, whose collections are made with so many replicas: for a cluster, where a
    /// collection with one is gone with its node. Without, the server's own setting counts.
    pub fn replicated(mut self, factor: Option<NonZeroU32>) -> Self {
        self.collections.replicate(factor);
        self
    }

    /// Makes the collection and tries again when it is not there (any longer).
    async fn write_point(
        &self,
        name: &str,
        embedder: Option<(&EmbedderId, usize)>,
        point: PointStruct,
    ) -> Result<(), StoreError> {
        self.collections.prepare(&self.link, name, embedder, true).await?;
        match self.upsert_point(name, point.clone()).await {
            Err(Fault::NoCollection) => {
                self.collections.forget(name);
                self.collections.prepare(&self.link, name, embedder, true).await?;
                Ok(self.upsert_point(name, point).await?)
            }
            outcome => Ok(outcome?),
        }
    }

    async fn upsert_point(&self, name: &str, point: PointStruct) -> Result<(), Fault> {
        let upsert = UpsertPointsBuilder::new(name, vec![point]).wait(true).ordering(ORDER);
        self.link.call(|client| async move { client.upsert_points(upsert).await }).await.map(drop)
    }

    /// What an upsert replaces may lie in another collection: the embedder was changed, or the
    /// question had no vector then.
    async fn remove_elsewhere(&self, name: &str, id: &PointId) -> Result<(), StoreError> {
        let others = self.collections.all(&self.link, false).await?;
        let removals = others.iter().filter(|other| *other != name).map(async |other| {
            // Looked for first: reading is cheap, a deletion of nothing is written to a log.
            let get = GetPointsBuilder::new(other, vec![id.clone()]).with_payload(false).with_vectors(false);
            let outcome = self.link.call(|client| async move { client.get_points(get).await }).await;
            if unless_missing(outcome)?.is_some_and(|answer| !answer.result.is_empty()) {
                let ids = PointsSelectorOneOf::Points(PointsIdsList { ids: vec![id.clone()] });
                self.remove(other, ids).await?;
            }
            Ok::<_, StoreError>(())
        });
        try_join_all(removals).await.map(drop)
    }

    async fn remove(&self, name: &str, points: PointsSelectorOneOf) -> Result<(), StoreError> {
        let delete = DeletePointsBuilder::new(name).points(points).wait(true).ordering(ORDER);
        let outcome = self.link.call(|client| async move { client.delete_points(delete).await }).await;
        unless_missing(outcome).map(drop)
    }

    async fn count_in(&self, name: &str, conditions: &[Condition]) -> Result<u64, StoreError> {
        let count = CountPointsBuilder::new(name).filter(filter::all_of(conditions)).exact(true);
        let outcome = self.link.call(|client| async move { client.count(count).await }).await;
        Ok(unless_missing(outcome)?.and_then(|answer| answer.result).map_or(0, |result| result.count))
    }

    async fn get_from(&self, name: &str, id: PointId) -> Result<Option<Entry>, StoreError> {
        let get = GetPointsBuilder::new(name, vec![id]).with_payload(only_entry()).with_vectors(false);
        let outcome = self.link.call(|client| async move { client.get_points(get).await }).await;
        let points = unless_missing(outcome)?.map(|answer| answer.result).unwrap_or_default();
        Ok(points.into_iter().find_map(|point| entry_of(point.id.as_ref(), &point.payload)))
    }

    async fn nearest(
        &self,
        conditions: &[Condition],
        embedding: &Embedding,
        min_similarity: Option<f32>,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        if limit == 0 {
            // An error to the server.
            return Ok(Vec::new());
        }
        let mut query = QueryPointsBuilder::new(self.collections.vectors(&embedding.embedder))
            .query(embedding.vector.to_vec())
            .filter(filter::all_of(conditions))
            .limit(limit as u64)
            .with_payload(only(&[record::ENTRY, record::TOKENS]))
            .with_vectors(false);
        if let Some(min_similarity) = min_similarity {
            // The server's threshold must be exceeded; ours only has to be reached.
            query = query.score_threshold(min_similarity.next_down());
        }
        let outcome = self.link.call(|client| async move { client.query(query).await }).await;
        let points = unless_missing(outcome)?.map(|answer| answer.result).unwrap_or_default();
        let candidates = points.into_iter().filter_map(|point| {
            let entry = entry_of(point.id.as_ref(), &point.payload)?;
            let tokens = point.payload.get(record::TOKENS).and_then(filter::text);
            Some(Candidate { entry, similarity: point.score, tokens: record::tokens(tokens) })
        });
        Ok(candidates.collect())
    }

    /// Up to `limit` entries from `start` on, by id, and where the next ones are.
    async fn scroll(
        &self,
        name: &str,
        conditions: &[Condition],
        start: Option<PointId>,
        limit: usize,
    ) -> Result<(Vec<Entry>, Option<Place>), StoreError> {
        let mut scroll = ScrollPointsBuilder::new(name)
            .filter(filter::all_of(conditions))
            .limit(u32::try_from(limit).unwrap_or(u32::MAX))
            .with_payload(only_entry())
            .with_vectors(false);
        if let Some(start) = start {
            scroll = scroll.offset(start);
        }
        let outcome = self.link.call(|client| async move { client.scroll(scroll).await }).await;
        let Some(page) = unless_missing(outcome)? else { return Ok((Vec::new(), None)) };
        let next = filter::uuid(page.next_page_offset.as_ref());
        let next = next.map(|point| Place { collection: name.to_owned(), point });
        let entries = page.result.iter().filter_map(|point| entry_of(point.id.as_ref(), &point.payload));
        Ok((entries.collect(), next))
    }
}

#[async_trait]
impl VectorStore for QdrantStore {
    async fn search(
        &self,
        scope: &Scope,
        embedding: &Embedding,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        let operation = async {
            let mut found = self.nearest(&[record::in_scope(scope)], embedding, None, limit).await?;
            found.retain(|candidate| record::belongs(&candidate.entry, scope));
            Ok(found)
        };
        self.link.within(Limit::Read, operation).await
    }

    async fn get(&self, key: &ExactKey) -> Result<Option<Entry>, StoreError> {
        let operation = async {
            let names = self.collections.all(&self.link, false).await?;
            let id = filter::point(key.as_uuid());
            let found = try_join_all(names.iter().map(|name| self.get_from(name, id.clone()))).await?;
            Ok(found.into_iter().flatten().max_by_key(|entry| entry.written_at))
        };
        self.link.within(Limit::Read, operation).await
    }

    async fn upsert(&self, entry: &Entry, embedding: Option<&Embedding>) -> Result<(), StoreError> {
        let operation = async {
            let payload = record::payload(entry, embedding)
                .map_err(|error| StoreError::Failed(error.to_string().into()))?;
            let payload: HashMap<String, Value> =
                payload.into_iter().map(|(field, value)| (field, value.into())).collect();
            let id = filter::point(entry.key.as_uuid());
            let (name, embedder, vectors) = match embedding {
                Some(embedding) => (
                    self.collections.vectors(&embedding.embedder),
                    Some((&embedding.embedder, embedding.vector.len())),
                    Vectors::from(embedding.vector.to_vec()),
                ),
                // Leaving them out is an error to the server, even where there are none.
                None => (self.collections.keyed(), None, NamedVectors { vectors: HashMap::new() }.into()),
            };
            let point = PointStruct::new(id.clone(), vectors, Payload::from(payload));
            self.write_point(&name, embedder, point).await?;
            self.remove_elsewhere(&name, &id).await
        };
        self.link.within(Limit::Write, operation).await
    }
}

#[async_trait]
impl Inventory for QdrantStore {
    async fn delete(&self, selector: &Selector) -> Result<u64, StoreError> {
        let operation = async {
            let conditions = record::conditions(selector);
            let mut deleted = 0;
            for name in self.collections.all(&self.link, true).await? {
                // The server does not tell how many it deleted.
                deleted += self.count_in(&name, &conditions).await?;
                self.remove(&name, PointsSelectorOneOf::Filter(filter::all_of(&conditions))).await?;
            }
            Ok(deleted)
        };
        self.link.within(Limit::Write, operation).await
    }

    async fn count(&self, selector: &Selector) -> Result<u64, StoreError> {
        let operation = async {
            let conditions = record::conditions(selector);
            let names = self.collections.all(&self.link, true).await?;
            let counts = try_join_all(names.iter().map(|name| self.count_in(name, &conditions))).await?;
            Ok(counts.into_iter().sum())
        };
        self.link.within(Limit::Write, operation).await
    }

    async fn list(
        &self,
        selector: &Selector,
        cursor: Option<&Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let operation = async {
            let conditions = record::conditions(selector);
            let mut place = cursor.map(Place::read).transpose()?;
            let mut entries = Vec::new();
            for name in self.collections.all(&self.link, true).await? {
                let start = match &place {
                    Some(place) if name < place.collection => continue,
                    Some(place) if name == place.collection => Some(filter::point(place.point)),
                    _ => None,
                };
                let missing = limit.max(1) - entries.len();
                if missing == 0 {
                    // The page is full and this collection not begun.
                    return Ok(Page { entries, next: Some(Place::start_of(name).write()) });
                }
                let (found, next) = self.scroll(&name, &conditions, start, missing).await?;
                entries.extend(found);
                if let Some(next) = next {
                    return Ok(Page { entries, next: Some(next.write()) });
                }
                place = None;
            }
            Ok(Page { entries, next: None })
        };
        self.link.within(Limit::Write, operation).await
    }

    async fn similar(
        &self,
        selector: &Selector,
        embedding: &Embedding,
        min_similarity: f32,
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        let operation = async {
            self.nearest(&record::conditions(selector), embedding, Some(min_similarity), limit).await
        };
        self.link.within(Limit::Write, operation).await
    }
}

#[async_trait]
impl Journal for QdrantStore {
    async fn publish(&self, mark: &Mark) -> Result<(), StoreError> {
        self.link.within(Limit::Write, journal::publish(&self.link, &self.collections, mark)).await
    }

    async fn marks(&self) -> Result<Vec<Mark>, StoreError> {
        self.link.within(Limit::Read, journal::marks(&self.link, &self.collections)).await
    }
}

#[async_trait]
impl Store for QdrantStore {
    async fn prepare(&self, embedder: &EmbedderId, dimensions: usize) -> Result<(), StoreError> {
        let name = self.collections.vectors(embedder);
        let check = self.collections.check(&self.link, &name, embedder, dimensions);
        self.link.within(Limit::Write, check).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        // Unlike the health check, listing needs the API key to be right.
        self.link.within(Limit::Read, self.collections.all(&self.link, true)).await.map(drop)
    }

    fn disk_bytes(&self) -> Option<u64> {
        None
    }

    async fn close(&self) {
        self.link.close();
    }
}

/// A collection that is not there holds nothing.
fn unless_missing<T>(outcome: Result<T, Fault>) -> Result<Option<T>, StoreError> {
    match outcome {
        Ok(answer) => Ok(Some(answer)),
        Err(Fault::NoCollection) => Ok(None),
        Err(fault) => Err(fault.into()),
    }
}

fn only_entry() -> PayloadIncludeSelector {
    only(&[record::ENTRY])
}

fn only(fields: &[&str]) -> PayloadIncludeSelector {
    PayloadIncludeSelector { fields: fields.iter().map(|&field| field.to_owned()).collect() }
}

fn entry_of(id: Option<&PointId>, payload: &HashMap<String, Value>) -> Option<Entry> {
    let id = filter::uuid(id)?;
    record::entry(id, payload.get(record::ENTRY).and_then(filter::text))
}

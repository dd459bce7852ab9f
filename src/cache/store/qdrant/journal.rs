//! Purge marks on the server.
//!
//! Every mark is a point of its own, its id made from its content: publishing only ever adds,
//! so instances cannot overwrite each other's marks, and publishing twice is publishing once.
//! Readers take the maximum. Points that say nothing new any longer are removed on the way.

use std::collections::HashMap;

use qdrant_client::Payload;
use qdrant_client::qdrant::point_id::PointIdOptions;
use qdrant_client::qdrant::points_selector::PointsSelectorOneOf;
use qdrant_client::qdrant::{
    DeletePointsBuilder, NamedVectors, PointId, PointStruct, PointsIdsList, ScrollPointsBuilder,
    UpsertPointsBuilder,
};
use tracing::warn;
use uuid::Uuid;

use super::collections::Collections;
use super::filter;
use super::link::{Fault, Link};
use crate::cache::store::{Mark, StoreError, marks};

const MARK: &str = "mark";

/// Points read at a time.
const PAGE: u32 = 256;

/// Adds a mark and trims what it covers.
pub(super) async fn publish(link: &Link, collections: &Collections, mark: &Mark) -> Result<(), StoreError> {
    let name = collections.journal();
    let json = serde_json::to_string(mark).map_err(|error| StoreError::Failed(error.to_string().into()))?;
    let id = filter::point(Uuid::new_v5(&Uuid::NAMESPACE_OID, json.as_bytes()));
    let mut payload = Payload::new();
    payload.insert(MARK, json);
    let point = PointStruct::new(id.clone(), NamedVectors { vectors: HashMap::new() }, payload);
    let upsert = UpsertPointsBuilder::new(&name, vec![point]).wait(true).build();
    for is_last in [false, true] {
        collections.prepare(link, &name, None, false).await?;
        let request = upsert.clone();
        match link.call(|client| async move { client.upsert_points(request).await }).await {
            Err(Fault::NoCollection) if !is_last => collections.forget(&name),
            outcome => {
                outcome?;
                break;
            }
        }
    }
    if let Err(error) = trim(link, &name, &id, mark).await {
        warn!(%error, "outdated purge marks could not be removed; the next purge tries again");
    }
    Ok(())
}

/// All marks, merged.
pub(super) async fn marks(link: &Link, collections: &Collections) -> Result<Vec<Mark>, StoreError> {
    let points = points(link, &collections.journal()).await?;
    Ok(marks::latest(points.into_iter().map(|(_, mark)| mark)))
}

async fn trim(link: &Link, name: &str, own: &PointId, mark: &Mark) -> Result<(), StoreError> {
    let points = points(link, name).await?;
    let covered = |(id, old): &(PointId, Mark)| id != own && marks::is_covered(old, mark);
    let ids: Vec<_> = points.into_iter().filter(covered).map(|(id, _)| id).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let ids = PointsSelectorOneOf::Points(PointsIdsList { ids });
    let delete = DeletePointsBuilder::new(name).points(ids).wait(true);
    link.call(|client| async move { client.delete_points(delete).await }).await?;
    Ok(())
}

async fn points(link: &Link, name: &str) -> Result<Vec<(PointId, Mark)>, StoreError> {
    let mut found = Vec::new();
    let mut offset: Option<PointIdOptions> = None;
    loop {
        let mut scroll = ScrollPointsBuilder::new(name).limit(PAGE).with_payload(true);
        if let Some(offset) = offset {
            scroll = scroll.offset(offset);
        }
        let page = match link.call(|client| async move { client.scroll(scroll).await }).await {
            Ok(page) => page,
            Err(Fault::NoCollection) => return Ok(found),
            Err(fault) => return Err(fault.into()),
        };
        for point in page.result {
            let json = point.payload.get(MARK).and_then(filter::text);
            let mark = json.and_then(|json| serde_json::from_str(json).ok());
            match (point.id, mark) {
                (Some(id), Some(mark)) => found.push((id, mark)),
                // Passing over it could bring purged answers back.
                _ => {
                    return Err(StoreError::Unusable(
                        format!(
                            "the collection {name} holds a purge mark that this version cannot read: set \
                             store.collection_prefix to one that is free"
                        )
                        .into(),
                    ));
                }
            }
        }
        match page.next_page_offset.and_then(|id| id.point_id_options) {
            Some(next) => offset = Some(next),
            None => return Ok(found),
        }
    }
}

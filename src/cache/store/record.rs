//! How an entry lies in a store, and how a selector finds it: one form for both adapters.
//!
//! What is filtered stands in top-level fields that have an index. The entry itself is one
//! string of JSON, because a payload's numbers are 64-bit floats or signed integers to Qdrant:
//! a nested object would not come back as it went in.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};
use tracing::warn;
use uuid::Uuid;

use super::{Cursor, Selector, StoreError};
use crate::cache::Entry;
use crate::cache::embedder::{EmbedderId, Embedding, Tokens};
use crate::cache::key::Scope;

/// The field that holds the whole entry.
pub(super) const ENTRY: &str = "entry";

/// The field that holds what the embedder's head compares.
pub(super) const TOKENS: &str = "tokens";

const SCOPE: &str = "scope";
const NAMESPACE: &str = "namespace";
const TENANT: &str = "tenant";
const EPOCH: &str = "epoch";
const TAGS: &str = "tags";
const MODEL: &str = "model";
const WRITTEN_AT: &str = "written_at";
const EXPIRES_AT: &str = "expires_at";

/// What kind of index a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Index {
    /// A keyword that nearly every query filters by; points are laid out by it.
    Tenant,
    /// A keyword, or a list of them.
    Keyword,
    /// A signed integer, for ranges.
    Integer,
}

/// Every field that is filtered, so that no filter ever scans.
/// The tenant is not among them: it is part of the scope, and no selector names it.
pub(super) const INDEXES: [(&str, Index); 7] = [
    (SCOPE, Index::Tenant),
    (NAMESPACE, Index::Keyword),
    (TAGS, Index::Keyword),
    (MODEL, Index::Keyword),
    (EPOCH, Index::Integer),
    (WRITTEN_AT, Index::Integer),
    (EXPIRES_AT, Index::Integer),
];

/// One thing that a point must fulfil.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// The keyword, or one of the keywords, is this.
    Is(&'static str, String),
    /// The integer is less than this.
    Below(&'static str, i64),
    /// The integer is this or less.
    AtMost(&'static str, i64),
    /// The point has this id.
    Id(Uuid),
}

/// The payload of an entry's point.
pub(super) fn payload(
    entry: &Entry,
    embedding: Option<&Embedding>,
) -> Result<Map<String, Value>, serde_json::Error> {
    let Scope { partition, digest } = &entry.scope;
    let fields = [
        (SCOPE, json!(digest.to_hex())),
        (NAMESPACE, json!(&*partition.namespace)),
        (TENANT, json!(partition.tenant.as_str())),
        (EPOCH, json!(integer(partition.epoch))),
        (TAGS, json!(entry.tags)),
        (MODEL, json!(entry.model)),
        (WRITTEN_AT, json!(integer(entry.written_at.0))),
        (EXPIRES_AT, json!(integer(entry.expires_at.0))),
        (ENTRY, json!(serde_json::to_string(entry)?)),
    ];
    let tokens = embedding.and_then(|embedding| embedding.tokens.as_ref());
    let tokens = tokens.map(|tokens| (TOKENS, json!(BASE64.encode(tokens.to_bytes()))));
    Ok(fields.into_iter().chain(tokens).map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The tokens of a point, from their text; `None` when there are none, or none that can be read.
pub(super) fn tokens(text: Option<&str>) -> Option<Arc<Tokens>> {
    Tokens::from_bytes(&BASE64.decode(text?).ok()?).map(Arc::new)
}

/// The entry of a point. One that cannot be read is no entry: it is a miss, and worth a line.
pub(super) fn entry(id: impl std::fmt::Display, json: Option<&str>) -> Option<Entry> {
    let Some(json) = json else {
        warn!(point = %id, "a stored point has no entry; it is passed over");
        return None;
    };
    serde_json::from_str(json)
        .inspect_err(|error| warn!(point = %id, %error, "a stored entry cannot be read; it is passed over"))
        .ok()
}

/// What a point of this scope fulfils.
pub(super) fn in_scope(scope: &Scope) -> Condition {
    Condition::Is(SCOPE, scope.digest.to_hex())
}

/// Whether an entry that a filter by scope found is of that scope indeed. The filter is the
/// store's; this is our own look, because an answer across scopes is the one thing that must
/// never happen.
pub(super) fn belongs(entry: &Entry, scope: &Scope) -> bool {
    let belongs = entry.scope == *scope;
    if !belongs {
        warn!(entry = %entry.key, "the store returned an entry of another scope; it is passed over");
    }
    belongs
}

/// What the points that a selector names fulfil; none for all points.
pub(super) fn conditions(selector: &Selector) -> Vec<Condition> {
    // Named one by one, so that a new field of the selector cannot be forgotten here.
    let Selector { namespace, tag, id, model, written_before, expires_before, epoch_before } = selector;
    [
        namespace.clone().map(|namespace| Condition::Is(NAMESPACE, namespace)),
        tag.clone().map(|tag| Condition::Is(TAGS, tag)),
        model.clone().map(|model| Condition::Is(MODEL, model)),
        id.map(|id| Condition::Id(id.as_uuid())),
        written_before.map(|time| Condition::Below(WRITTEN_AT, integer(time.0))),
        expires_before.map(|time| Condition::AtMost(EXPIRES_AT, integer(time.0))),
        epoch_before.map(|epoch| Condition::Below(EPOCH, integer(epoch))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Qdrant compares integers as doubles, so the largest one told apart from its neighbours is
/// 2^53 − 1: as milliseconds, the year 287396. What lies beyond is taken for that.
fn integer(value: u64) -> i64 {
    const LARGEST: i64 = (1 << 53) - 1;
    i64::try_from(value).map_or(LARGEST, |value| value.min(LARGEST))
}

/// The same as a double, for a range filter; exact, see [`integer`].
#[expect(clippy::cast_precision_loss, reason = "integer() lets nothing pass that a double cannot hold")]
pub(super) fn double(value: i64) -> f64 {
    value as f64
}

/// Where a page starts: collections go by name, points in them by id.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) collection: String,
    pub(super) point: Uuid,
}

impl Place {
    /// The first point that a collection could hold.
    pub(super) fn start_of(collection: String) -> Self {
        Self { collection, point: Uuid::nil() }
    }

    /// Reads what [`Self::write`] wrote and a caller may have changed.
    pub(super) fn read(cursor: &Cursor) -> Result<Self, StoreError> {
        let place = cursor.0.rsplit_once(':').and_then(|(collection, point)| {
            Some(Self { collection: collection.to_owned(), point: point.parse().ok()? })
        });
        place.ok_or_else(|| StoreError::Failed("the cursor is none of ours".into()))
    }

    pub(super) fn write(&self) -> Cursor {
        Cursor(format!("{}:{}", self.collection, self.point))
    }
}

/// The error for vectors that cannot lie beside those already stored.
pub(super) fn wrong_dimensions(embedder: &EmbedderId, stored: usize, wanted: usize) -> StoreError {
    StoreError::Unusable(
        format!(
            "the store holds vectors of {stored} dimensions for the embedder {embedder}, which makes {wanted}: \
             delete the stored ones, or give the changed embedder another name"
        )
        .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_stay_exact_as_doubles() {
        for value in [0, 1, (1 << 53) - 2, (1 << 53) - 1, 1 << 53, u64::MAX] {
            let integer = integer(value);
            #[expect(clippy::cast_possible_truncation, reason = "the round trip is what is tested")]
            let back = double(integer) as i64;
            assert_eq!(back, integer);
        }
        assert_eq!(integer(1 << 53), integer(u64::MAX));
    }

    #[test]
    fn a_cursor_comes_back_as_it_went() {
        let place = Place { collection: "vectors-a.b:c".into(), point: Uuid::from_u128(7) };
        assert_eq!(Place::read(&place.write()).unwrap(), place);
        for broken in ["", ":", "vectors-a", "vectors-a:7", "\u{0}:\u{0}"] {
            assert!(Place::read(&Cursor(broken.into())).is_err(), "{broken:?}");
        }
    }
}

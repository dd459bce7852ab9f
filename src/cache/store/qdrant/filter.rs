//! Conditions, ids and index kinds in the terms of the server's protocol.

use qdrant_client::qdrant::r#match::MatchValue;
use qdrant_client::qdrant::payload_index_params::IndexParams;
use qdrant_client::qdrant::point_id::PointIdOptions;
use qdrant_client::qdrant::value::Kind as ValueKind;
use qdrant_client::qdrant::{
    Condition as ServerCondition, FieldType, Filter, IntegerIndexParamsBuilder, KeywordIndexParamsBuilder,
    PointId, Range, Value,
};
use uuid::Uuid;

use crate::cache::store::record::{Condition, Index, double};

/// A filter for points that fulfil all conditions; an empty one passes every point.
pub(super) fn all_of(conditions: &[Condition]) -> Filter {
    Filter::must(conditions.iter().map(translate))
}

fn translate(condition: &Condition) -> ServerCondition {
    match condition {
        // Said in full: a mere string becomes a full-text match as soon as it holds white space.
        Condition::Is(field, value) => ServerCondition::matches(*field, MatchValue::Keyword(value.clone())),
        Condition::Below(field, value) => {
            ServerCondition::range(*field, Range { lt: Some(double(*value)), ..Range::default() })
        }
        Condition::AtMost(field, value) => {
            ServerCondition::range(*field, Range { lte: Some(double(*value)), ..Range::default() })
        }
        Condition::Id(id) => ServerCondition::has_id([point(*id)]),
    }
}

/// The id of a point.
pub(super) fn point(id: Uuid) -> PointId {
    PointId { point_id_options: Some(PointIdOptions::Uuid(id.to_string())) }
}

/// The other way; `None` for ids that we did not make.
pub(super) fn uuid(id: Option<&PointId>) -> Option<Uuid> {
    match id?.point_id_options.as_ref()? {
        PointIdOptions::Uuid(id) => id.parse().ok(),
        PointIdOptions::Num(_) => None,
    }
}

/// How the server is told to index a field.
pub(super) fn schema(index: Index) -> (FieldType, IndexParams) {
    match index {
        Index::Tenant => {
            (FieldType::Keyword, KeywordIndexParamsBuilder::default().is_tenant(true).build().into())
        }
        Index::Keyword => (FieldType::Keyword, KeywordIndexParamsBuilder::default().build().into()),
        Index::Integer => (FieldType::Integer, IntegerIndexParamsBuilder::new(false, true).build().into()),
    }
}

/// The text of a payload's value, when it is one.
pub(super) fn text(value: &Value) -> Option<&str> {
    match value.kind.as_ref()? {
        ValueKind::StringValue(text) => Some(text),
        _ => None,
    }
}

//! Conditions in Edge's own terms.

use qdrant_edge::external::ordered_float::OrderedFloat;
use qdrant_edge::{
    Condition as EdgeCondition, FieldCondition, Filter, HasIdCondition, IntegerIndexParams, JsonPath,
    KeywordIndexParams, Match, PayloadFieldSchema, PayloadSchemaParams, PointId, Range,
};

use crate::cache::store::record::{Condition, Index, double};

/// A filter for points that fulfil all conditions; `None` for all points.
pub(super) fn all_of(conditions: &[Condition]) -> Option<Filter> {
    let must: Vec<_> = conditions.iter().map(translate).collect();
    (!must.is_empty()).then(|| Filter { must: Some(must), should: None, min_should: None, must_not: None })
}

/// A filter that every point passes, for calls that demand one.
pub(super) fn anything() -> Filter {
    Filter { must: None, should: None, min_should: None, must_not: None }
}

fn translate(condition: &Condition) -> EdgeCondition {
    match condition {
        Condition::Is(field, value) => {
            EdgeCondition::Field(FieldCondition::new_match(path(field), Match::from(value.clone())))
        }
        Condition::Below(field, value) => range(field, Range { lt: Some(limit(*value)), ..no_limit() }),
        Condition::AtMost(field, value) => range(field, Range { lte: Some(limit(*value)), ..no_limit() }),
        Condition::Id(id) => EdgeCondition::HasId(HasIdCondition::from_iter([PointId::Uuid(*id)])),
    }
}

fn range(field: &str, range: Range<OrderedFloat<f64>>) -> EdgeCondition {
    EdgeCondition::Field(FieldCondition::new_range(path(field), range))
}

fn limit(value: i64) -> OrderedFloat<f64> {
    OrderedFloat(double(value))
}

fn no_limit() -> Range<OrderedFloat<f64>> {
    Range { lt: None, gt: None, gte: None, lte: None }
}

/// A top-level field of the payload.
pub(super) fn path(field: &str) -> JsonPath {
    field.parse().expect("our field names are plain words")
}

/// How Edge is told to index a field.
pub(super) fn schema(index: Index) -> PayloadFieldSchema {
    PayloadFieldSchema::FieldParams(match index {
        Index::Tenant => PayloadSchemaParams::Keyword(KeywordIndexParams {
            is_tenant: Some(true),
            ..KeywordIndexParams::default()
        }),
        Index::Keyword => PayloadSchemaParams::Keyword(KeywordIndexParams {
            // Only the scope needs links of its own in the graph: searches filter by nothing else.
            enable_hnsw: Some(false),
            ..KeywordIndexParams::default()
        }),
        Index::Integer => PayloadSchemaParams::Integer(IntegerIndexParams {
            lookup: Some(false),
            range: Some(true),
            enable_hnsw: Some(false),
            ..IntegerIndexParams::default()
        }),
    })
}

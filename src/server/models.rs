//! The list of models, in one form that OpenAI's and Anthropic's clients both read.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use serde_json::{Value, json};

use super::Context;
use super::error::ApiError;

/// `GET /v1/models`
pub(super) async fn models(
    State(context): State<Arc<Context>>,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    context.admit(&request.into_parts().0)?;
    let models: Vec<Value> =
        context.gateway.upstream().models().chain(context.encoders.names()).map(model).collect();
    let id = |model: Option<&Value>| model.map_or(Value::Null, |model| model["id"].clone());
    let (first, last) = (id(models.first()), id(models.last()));
    Ok(Json(json!({
        "object": "list", "data": models, "has_more": false, "first_id": first, "last_id": last
    })))
}

fn model(name: &str) -> Value {
    json!({
        "id": name, "object": "model", "created": 0, "owned_by": "refrain",
        "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z"
    })
}

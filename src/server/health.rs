//! Is the process there, and can it do its work?

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::Context;

/// The process answers.
pub(super) async fn process() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// Encoders are loaded and the store can be reached. Not being ready is no reason for callers
/// to stay away: chats are answered all the same, only less often from the cache.
pub(super) async fn ready(State(context): State<Arc<Context>>) -> (StatusCode, Json<Value>) {
    let store = context.store.check().await;
    let encoders = context.encoders.ready();
    let ready = store.is_ok() && encoders;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({
        "status": if ready { "ready" } else { "not ready" },
        "embedder": if encoders { "ready" } else { "loading" },
        "store": store.map_or_else(|error| error.label(), |()| "ready"),
    });
    (status, Json(body))
}

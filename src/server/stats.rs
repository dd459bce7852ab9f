//! What was counted: JSON for people and scripts, text for Prometheus.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::Context;
use super::error::ApiError;
use crate::metrics::{self, Levels, Since, Stats};
use crate::upstream::ProvidersReport;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Window {
    since: Option<String>,
}

/// `GET /stats?since=15m`
pub(super) async fn stats(
    State(context): State<Arc<Context>>,
    window: Result<Query<Window>, QueryRejection>,
) -> Result<Json<Stats>, ApiError> {
    let Query(window) = window?;
    let since = window.since.as_deref().map(str::parse::<Since>).transpose();
    let since = since.map_err(|error| ApiError::bad_request(error.to_string(), Some("since")))?;
    let levels = levels(&context).await;
    Ok(Json(context.metrics.snapshot(since, levels)))
}

/// `GET /stats/providers`
pub(super) async fn providers(State(context): State<Arc<Context>>) -> Json<ProvidersReport> {
    Json(context.gateway.upstream().report())
}

/// `GET /metrics`: what the requests came to, and then what was measured of each target. The text
/// format has no mark at its end, and no name is in both, so one may follow the other.
pub(super) async fn scrape(State(context): State<Arc<Context>>) -> Response {
    let levels = levels(&context).await;
    let page = context.metrics.encode(levels) + &context.gateway.upstream().exposition();
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], page).into_response()
}

async fn levels(context: &Context) -> Levels {
    let mut levels = context.gateway.levels().await;
    levels.open_connections = context.connections.get().map_or(0, |connections| connections.open() as u64);
    levels
}

//! Who decides whether a target is asked: its breaker, or the operator.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};

use super::Context;
use super::body::WholeBody;
use super::error::ApiError;
use crate::upstream::breaker::Control;
use crate::upstream::{BreakerReport, NoSuchTarget, ProvidersReport, Upstream};

/// What an operator wants of a breaker.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BreakerRequest {
    provider: String,
    /// The provider's name for it.
    model: String,
    control: Control,
}

/// How the breaker stands now.
#[derive(Debug, Serialize)]
pub(super) struct Controlled {
    provider: String,
    model: String,
    control: Control,
    breaker: Option<BreakerReport>,
    /// Forgotten at a restart; a switch is not.
    kept: &'static str,
}

/// `POST /admin/breakers`
pub(super) async fn control(
    State(context): State<Arc<Context>>,
    WholeBody(body): WholeBody,
) -> Result<Json<Controlled>, ApiError> {
    let BreakerRequest { provider, model, control } = serde_json::from_slice(&body)
        .map_err(|error| ApiError::bad_request(format!("the body cannot be read: {error}"), None))?;
    let upstream = context.gateway.upstream();
    upstream
        .control(&provider, &model, control)
        .map_err(|NoSuchTarget| ApiError::not_found(unknown(&provider, &model, upstream)))?;
    let ProvidersReport { targets, .. } = upstream.report();
    let mut targets = targets.into_iter();
    let target = targets.find(|target| target.health.provider == provider && target.health.model == model);
    let breaker = target.map(|target| target.breaker);
    Ok(Json(Controlled { provider, model, control, breaker, kept: "in_memory" }))
}

fn unknown(provider: &str, model: &str, upstream: &Upstream) -> String {
    let ProvidersReport { targets, .. } = upstream.report();
    let asked: Vec<_> =
        targets.iter().map(|target| format!("{}/{}", target.health.provider, target.health.model)).collect();
    let asked = if asked.is_empty() { "nobody yet".to_owned() } else { asked.join(", ") };
    format!("{provider}/{model} was not asked since the start, so it has no breaker; asked was {asked}")
}

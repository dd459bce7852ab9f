//! The operator's switches over HTTP: what is switched, who did it, and flipping.
//!
//! A flip is in force when it is answered, disk or no disk: it is set first, and then written by a
//! thread that may hang. An operator who flips a switch because the disk hangs must not wait for it.

mod names;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::Context;
use super::body::WholeBody;
use super::error::ApiError;
use crate::clock::Timestamp;
use crate::switches::{Change, Flip, InvalidFlip, Kept, Switch, Target};

pub use names::{Names, UnknownName};

/// How long an operator waits for the disk.
const DISK: Duration = Duration::from_secs(5);

/// `GET /admin/switches?audit=true`
pub(super) async fn list(
    State(context): State<Arc<Context>>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<Listed>, ApiError> {
    let Query(ListQuery { audit }) = query?;
    let switches = context.switches.list(context.clock.now()).into_iter().map(Shown::from).collect();
    let audit = audit.then(|| context.switches.audit().into_iter().map(Changed::from).collect());
    let config = context.switches.from_config();
    let config = config.into_iter().map(|(target, on)| Configured { target, on }).collect();
    Ok(Json(Listed { switches, config, audit }))
}

/// `POST /admin/switches`: sets a switch, or replaces the one on the same target.
pub(super) async fn set(
    State(context): State<Arc<Context>>,
    WholeBody(body): WholeBody,
) -> Result<Json<Flipped>, ApiError> {
    let request: FlipRequest = serde_json::from_slice(&body)
        .map_err(|error| ApiError::bad_request(format!("the body cannot be read: {error}"), None))?;
    let target = target(&request.target)?;
    let note = context.names.load().find(&target, context.gateway.upstream())?;
    let now = context.clock.now();
    let until = request.end(now)?;
    let FlipRequest { on, by, reason, .. } = request;
    flip(&context, Flip { target, on: Some(on), by, reason, until }, now, note).await
}

/// `DELETE /admin/switches/{target}?by=…&reason=…`: everything is as configured again. Who and why are
/// in the query, since a body of a DELETE means nothing and may get lost on the way (RFC 9110,
/// section 9.3.5).
pub(super) async fn clear(
    State(context): State<Arc<Context>>,
    Path(text): Path<String>,
    query: Result<Query<ClearQuery>, QueryRejection>,
) -> Result<Json<Flipped>, ApiError> {
    let Query(ClearQuery { by, reason }) = query?;
    let target = target(&text)?;
    let now = context.clock.now();
    // What was taken out of the config may be switched still.
    if !context.switches.list(now).iter().any(|switch| switch.target == target) {
        context.names.load().find(&target, context.gateway.upstream())?;
    }
    flip(&context, Flip { target, on: None, by, reason, until: None }, now, None).await
}

async fn flip(
    context: &Context,
    flip: Flip,
    now: Timestamp,
    note: Option<&'static str>,
) -> Result<Json<Flipped>, ApiError> {
    let change = context.switches.set(flip, now)?;
    let written = {
        let (switches, change) = (Arc::clone(&context.switches), change.clone());
        spawn_blocking(move || switches.keep(&change))
    };
    let kept = match timeout(DISK, written).await {
        Ok(Ok(kept)) => kept,
        Ok(Err(error)) => {
            tracing::error!(%error, "a switch was not written");
            Kept::InMemory { error: "the service failed, its log says why".to_owned() }
        }
        Err(_) => {
            tracing::warn!(switch = %change.target, after = ?DISK, "the disk hangs over a switch");
            Kept::InMemory { error: format!("the disk has not answered for {} s", DISK.as_secs()) }
        }
    };
    Ok(Json(Flipped { change: change.into(), kept, note }))
}

fn target(text: &str) -> Result<Target, ApiError> {
    text.parse::<Target>()
        .map_err(|error| ApiError::bad_request(format!("target is {text:?}: {error}"), Some("target")))
}

/// What an operator wants.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlipRequest {
    /// What is to be switched, as `provider:openai`.
    pub target: String,
    /// On or off.
    pub on: bool,
    /// Who wants it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When it ends by itself, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// After how long it does, such as `2h`; in place of `until`.
    #[serde(default, rename = "for", with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Duration>,
}

impl FlipRequest {
    fn end(&self, now: Timestamp) -> Result<Option<Timestamp>, ApiError> {
        match (&self.until, self.lasting) {
            (Some(_), Some(_)) => Err(ApiError::bad_request(
                "until and for say the same thing: only one is allowed",
                Some("for"),
            )),
            (Some(text), None) => text
                .parse()
                .map(Some)
                .map_err(|error| ApiError::bad_request(format!("until is {text:?}: {error}"), Some("until"))),
            (None, lasting) => Ok(lasting.map(|lasting| now.after(lasting))),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ListQuery {
    audit: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClearQuery {
    by: String,
    reason: String,
}

/// The switches in force, and the last changes when they were asked for.
#[derive(Debug, Serialize)]
pub(super) struct Listed {
    switches: Vec<Shown>,
    /// What the config switches; an operator's switch on the same target counts for more.
    config: Vec<Configured>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<Vec<Changed>>,
}

/// A line of the config.
#[derive(Debug, Serialize)]
struct Configured {
    target: Target,
    on: bool,
}

/// A switch in force; times in RFC 3339.
#[derive(Debug, Serialize)]
struct Shown {
    target: Target,
    on: bool,
    by: String,
    reason: String,
    since: String,
    until: Option<String>,
}

impl From<Switch> for Shown {
    fn from(switch: Switch) -> Self {
        let Switch { target, on, by, reason, since, until } = switch;
        Self { target, on, by, reason, since: since.to_rfc3339(), until: until.map(Timestamp::to_rfc3339) }
    }
}

/// A change; times in RFC 3339. `on` is null when the switch was taken away.
#[derive(Debug, Serialize)]
struct Changed {
    number: u64,
    at: String,
    target: Target,
    on: Option<bool>,
    by: String,
    reason: String,
    until: Option<String>,
}

impl From<Change> for Changed {
    fn from(change: Change) -> Self {
        let Change { number, at, target, on, by, reason, until } = change;
        Self { number, at: at.to_rfc3339(), target, on, by, reason, until: until.map(Timestamp::to_rfc3339) }
    }
}

/// A change that is in force, and whether it survives a restart.
#[derive(Debug, Serialize)]
pub(super) struct Flipped {
    #[serde(flatten)]
    change: Changed,
    #[serde(flatten)]
    kept: Kept,
    /// What the operator may not have meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

impl From<InvalidFlip> for ApiError {
    fn from(error: InvalidFlip) -> Self {
        let param = match error {
            InvalidFlip::By => Some("by"),
            InvalidFlip::Reason => Some("reason"),
            InvalidFlip::Until => Some("until"),
            InvalidFlip::TooMany => None,
        };
        Self::bad_request(error.to_string(), param)
    }
}

impl From<UnknownName> for ApiError {
    fn from(error: UnknownName) -> Self {
        Self::not_found(error.to_string())
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::bad_request(rejection.body_text(), None)
    }
}

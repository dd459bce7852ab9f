//! What callers and operators say of an answer: `POST /v1/feedback` and `POST /admin/feedback`.
//!
//! A caller names the answer by the id of its request, as long as this instance remembers it, or by
//! the entry that the answer's `x-refrain-entry` named and the question that was asked, which any
//! instance understands at any time.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use moka::sync::Cache;
use serde::{Deserialize, Serialize};

use super::Context;
use super::body::{WholeBody, read_whole};
use super::error::ApiError;
use crate::cache::key::{ExactKey, Tenant};
use crate::gateway::{Consequence, Feedback, FeedbackError, Opinion};

/// Answers that are remembered by the ids of their requests, the latest ones.
const REMEMBERED: u64 = 20_000;

/// Which answer went to which request.
pub struct Recent(Cache<String, Answered>);

/// An answer that went out.
#[derive(Clone)]
pub(super) struct Answered {
    pub(super) entry: ExactKey,
    pub(super) question: Option<Arc<str>>,
    pub(super) tenant: Tenant,
}

impl Recent {
    pub(super) fn remember(&self, request: &str, answered: Answered) {
        self.0.insert(request.to_owned(), answered);
    }
}

impl Default for Recent {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

/// An opinion as it is sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    verdict: Opinion,
    #[serde(default)]
    request_id: Option<String>,
    #[serde(default)]
    entry: Option<ExactKey>,
    #[serde(default)]
    question: Option<String>,
}

/// What followed from it.
#[derive(Debug, Serialize)]
pub(super) struct Followed {
    consequence: Consequence,
}

/// `POST /v1/feedback`: of one's own answers only.
pub(super) async fn of_caller(
    State(context): State<Arc<Context>>,
    request: Request,
) -> Result<Json<Followed>, ApiError> {
    let (parts, body) = request.into_parts();
    let caller = context.admit(&parts)?;
    let body = read_whole(body).await?;
    take(&context, &body, Some(caller.tenant)).await
}

/// `POST /admin/feedback`: of anybody's.
pub(super) async fn of_operator(
    State(context): State<Arc<Context>>,
    WholeBody(body): WholeBody,
) -> Result<Json<Followed>, ApiError> {
    take(&context, &body, None).await
}

async fn take(context: &Context, body: &[u8], tenant: Option<Tenant>) -> Result<Json<Followed>, ApiError> {
    let sent: Sent = serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request(format!("the body cannot be read: {error}"), None))?;
    let Sent { verdict, request_id, entry, question } = sent;
    let (entry, question) = match (request_id, entry) {
        (Some(id), None) if question.is_none() => {
            let known = context.recent.0.get(&id);
            let known = known.filter(|known| tenant.as_ref().is_none_or(|tenant| *tenant == known.tenant));
            let Answered { entry, question, .. } = known.ok_or_else(|| {
                ApiError::not_found(format!(
                    "no request {id:?} is remembered here: send entry (its answer's x-refrain-entry) and question"
                ))
            })?;
            (entry, question.map(|question| question.to_string()))
        }
        (None, Some(entry)) => (entry, question),
        _ => {
            let message = "either request_id is allowed, or entry with the question that was asked";
            return Err(ApiError::bad_request(message, Some("request_id")));
        }
    };
    let feedback = Feedback { entry, question, opinion: verdict, tenant };
    let consequence = context.gateway.feedback(feedback).await.map_err(|error| match error {
        FeedbackError::NotKept => ApiError::not_found(error.to_string()),
        FeedbackError::Store(error) => error.into(),
        FeedbackError::Evict(error) => error.into(),
    })?;
    Ok(Json(Followed { consequence }))
}

//! The operator's API: look at entries, take them back, explain a request.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::Context;
use super::body::WholeBody;
use super::chat::read_call;
use super::error::ApiError;
use crate::cache::Entry;
use crate::cache::key::{ExactKey, Tenant};
use crate::cache::store::{Cursor, Selector, StoreError};
use crate::chat::Api;
use crate::chat::ChatReply;
use crate::clock::Timestamp;
use crate::config::Similarity;
use crate::gateway::{EvictError, Evicted, Eviction, Explained, Similar};

/// Entries on one page, unless asked for otherwise, and at most.
const PAGE: usize = 50;
const MAX_PAGE: usize = 500;

/// When an operator may try again what the store failed.
const STORE_RETRY: Duration = Duration::from_secs(5);

/// Lets only operators through.
pub(super) async fn guard(State(context): State<Arc<Context>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match context.admin.check(&parts) {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(error) => ApiError::from(error).into_response(),
    }
}

/// What shall go. Fields narrow each other; nothing at all is refused, `all` takes everything.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvictRequest {
    /// Entries of this namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Entries with this tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The entry with this id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<ExactKey>,
    /// Entries that were asked of this model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Entries older than this, such as `7d`.
    #[serde(with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub older_than: Option<Duration>,
    /// Entries whose question is similar to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similar_to: Option<String>,
    /// The least similarity for `similar_to`, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_similarity: Option<f64>,
    /// Everything there is.
    pub all: bool,
    /// Only count what would go.
    pub dry_run: bool,
}

/// `POST /admin/evict`
pub(super) async fn evict(
    State(context): State<Arc<Context>>,
    WholeBody(body): WholeBody,
) -> Result<Json<Evicted>, ApiError> {
    let request: EvictRequest = serde_json::from_slice(&body)
        .map_err(|error| ApiError::bad_request(format!("the body cannot be read: {error}"), None))?;
    let eviction = eviction(request, context.clock.now())?;
    known_namespace(&context, &eviction.selector).await?;
    Ok(Json(context.gateway.evict(&eviction).await?))
}

/// Refuses a namespace that nobody has heard of: a slip of the pen must not look like a purge. One
/// that was taken out of the config may still hold entries.
async fn known_namespace(context: &Context, selector: &Selector) -> Result<(), ApiError> {
    let Some(namespace) = &selector.namespace else { return Ok(()) };
    let all = Selector { namespace: Some(namespace.clone()), ..Selector::default() };
    if context.gateway.namespaces().get(namespace).is_some() || context.store.count(&all).await? > 0 {
        return Ok(());
    }
    Err(ApiError::not_found(format!(
        "there is no namespace {namespace:?}, neither in the config nor in the store"
    )))
}

fn eviction(request: EvictRequest, now: Timestamp) -> Result<Eviction, ApiError> {
    let selector = Selector {
        namespace: request.namespace,
        tag: request.tag,
        id: request.id,
        model: request.model,
        written_before: request.older_than.map(|age| now.before(age)),
        ..Selector::default()
    };
    let similar = match (request.similar_to, request.min_similarity) {
        (Some(question), Some(floor)) => {
            let floor = Similarity::try_from(floor);
            let min_similarity =
                floor.map_err(|error| ApiError::bad_request(error, Some("min_similarity")))?;
            Some(Similar { question, min_similarity })
        }
        (None, None) => None,
        (Some(_), None) => {
            let message = "similar_to needs min_similarity, 0 to 1";
            return Err(ApiError::bad_request(message, Some("min_similarity")));
        }
        (None, Some(_)) => {
            return Err(ApiError::bad_request("min_similarity needs similar_to", Some("similar_to")));
        }
    };
    if selector == Selector::default() && similar.is_none() && !request.all {
        let message = "say what shall go: namespace, tag, id, model, older_than, similar_to, or all: true";
        return Err(ApiError::bad_request(message, None));
    }
    if selector != Selector::default() && request.all {
        return Err(ApiError::bad_request("all takes everything: nothing else may narrow it", Some("all")));
    }
    Ok(Eviction { selector, similar, dry_run: request.dry_run })
}

/// What entries to list.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ListQuery {
    namespace: Option<String>,
    tag: Option<String>,
    model: Option<String>,
    cursor: Option<String>,
    limit: Option<usize>,
    /// With the text of the answers that are nothing but text.
    answers: bool,
}

/// A page of entries.
#[derive(Debug, Serialize)]
pub(super) struct Listed {
    entries: Vec<Summary>,
    /// For the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Cursor>,
}

/// An entry without its answer.
#[derive(Debug, Serialize)]
struct Summary {
    id: ExactKey,
    namespace: String,
    tenant: String,
    model: String,
    provider: String,
    question: String,
    tags: Vec<String>,
    written_at: Timestamp,
    expires_at: Timestamp,
    age: u64,
    ttl: u64,
    bytes: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pinned: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
}

/// An entry with its answer.
#[derive(Debug, Serialize)]
pub(super) struct Detailed {
    #[serde(flatten)]
    summary: Summary,
    scope: String,
    epoch: u64,
    reply: ChatReply,
}

/// `GET /admin/entries?namespace=…&cursor=…`
pub(super) async fn entries(
    State(context): State<Arc<Context>>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Listed>, ApiError> {
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        let message = format!("limit is {limit}: 1 to {MAX_PAGE} is allowed");
        return Err(ApiError::bad_request(message, Some("limit")));
    }
    let selector =
        Selector { namespace: query.namespace, tag: query.tag, model: query.model, ..Selector::default() };
    let cursor = query.cursor.map(Cursor);
    let page = context.store.list(&selector, cursor.as_ref(), limit).await?;
    let now = context.clock.now();
    let with_answer = |entry: Entry| {
        let answer = entry.reply.is_plain_text().then(|| entry.reply.text.clone());
        Summary { answer, ..summary(entry, now) }
    };
    let each = |entry| if query.answers { with_answer(entry) } else { summary(entry, now) };
    let entries = page.entries.into_iter().map(each).collect();
    Ok(Json(Listed { entries, next: page.next }))
}

/// `GET /admin/entries/{id}`
pub(super) async fn entry(
    State(context): State<Arc<Context>>,
    Path(id): Path<String>,
) -> Result<Json<Detailed>, ApiError> {
    let id = entry_id(&id)?;
    let entry = context.gateway.entry(&id).await?.ok_or_else(|| no_entry(&id))?;
    let (scope, epoch) = (entry.scope.digest.to_hex(), entry.scope.partition.epoch);
    let reply = entry.reply.clone();
    let summary = summary(entry, context.clock.now());
    Ok(Json(Detailed { summary, scope, epoch, reply }))
}

/// `DELETE /admin/entries/{id}`
pub(super) async fn remove(
    State(context): State<Arc<Context>>,
    Path(id): Path<String>,
) -> Result<Json<Evicted>, ApiError> {
    let id = entry_id(&id)?;
    let selector = Selector { id: Some(id), ..Selector::default() };
    let evicted = context.gateway.evict(&Eviction { selector, ..Eviction::default() }).await?;
    if evicted.exact + evicted.store == 0 { Err(no_entry(&id)) } else { Ok(Json(evicted)) }
}

/// How a request to be explained is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ExplainQuery {
    api: Spoken,
}

/// The calls that ask for an answer.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Spoken {
    #[default]
    Chat,
    Messages,
    Responses,
}

impl From<Spoken> for Api {
    fn from(spoken: Spoken) -> Self {
        match spoken {
            Spoken::Chat => Self::Chat,
            Spoken::Messages => Self::Messages,
            Spoken::Responses => Self::Responses,
        }
    }
}

/// `POST /admin/explain?api=…`: the body and headers of a chat request (or `messages`, `responses`);
/// the tenant is named by `x-refrain-tenant`, as entries show it.
pub(super) async fn explain(
    State(context): State<Arc<Context>>,
    Query(query): Query<ExplainQuery>,
    headers: HeaderMap,
    WholeBody(body): WholeBody,
) -> Result<Json<Explained>, ApiError> {
    let tenant = headers.get("x-refrain-tenant").and_then(|value| value.to_str().ok());
    let tenant = tenant.map_or_else(Tenant::anonymous, Tenant::known_as);
    let call = read_call(&context, query.api.into(), &headers, body, tenant, None)?;
    Ok(Json(context.gateway.explain(&call).await))
}

fn entry_id(text: &str) -> Result<ExactKey, ApiError> {
    let id = text.parse::<uuid::Uuid>();
    id.map(ExactKey::from)
        .map_err(|_| ApiError::bad_request(format!("{text:?} is no entry's id"), Some("id")))
}

fn no_entry(id: &ExactKey) -> ApiError {
    ApiError::not_found(format!("there is no entry {id}"))
}

fn summary(entry: Entry, now: Timestamp) -> Summary {
    Summary {
        id: entry.key,
        age: entry.age(now).as_secs(),
        ttl: entry.time_to_live(now).as_secs(),
        bytes: entry.weight(),
        pinned: entry.pinned,
        answer: None,
        namespace: entry.scope.partition.namespace.to_string(),
        tenant: entry.scope.partition.tenant.as_str().to_owned(),
        model: entry.model,
        provider: entry.provider,
        question: entry.question,
        tags: entry.tags,
        written_at: entry.written_at,
        expires_at: entry.expires_at,
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        tracing::warn!(%error, "the store failed an operator's request");
        Self::unavailable(STORE_RETRY)
    }
}

impl From<EvictError> for ApiError {
    fn from(error: EvictError) -> Self {
        match error {
            EvictError::Store(error) => error.into(),
            EvictError::Embed(error) => {
                Self::bad_request(format!("similar_to cannot be compared: {error}"), Some("similar_to"))
            }
        }
    }
}

//! OpenAI's door: chat completions and the list of models.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{AGE, CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Context;
use super::auth::Caller;
use super::body::read_whole;
use super::directives::{deadline, directives, priority};
use super::error::{ApiError, Credential};
use super::feedback::Answered;
use super::request_id::{X_REQUEST_ID, unique};
use crate::cache::key::Tenant;
use crate::chat::{ChatReply, Question};
use crate::config::Secret;
use crate::dialect::openai;
use crate::dialect::openai::reply::{Stamp, TERMINAL, frame, render_stream, render_whole};
use crate::gateway::{Answer, AnswerBody, Call, EventTail, GatewayError, Namespace, Source};
use crate::upstream::{EventKind, Preferences};

/// When to come again while nothing but kept answers is served.
const CACHE_ONLY: Duration = Duration::from_secs(30);

const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// `POST /v1/chat/completions`
pub(super) async fn completions(State(context): State<Arc<Context>>, request: Request) -> Response {
    let begun = Instant::now();
    let mut line = LogLine::default();
    let (parts, body) = request.into_parts();
    let result = complete(&context, &parts, body, &mut line).await;
    line.write(&parts.headers, begun, result.as_ref().err());
    result.unwrap_or_else(IntoResponse::into_response)
}

async fn complete(
    context: &Context,
    parts: &Parts,
    body: Body,
    line: &mut LogLine,
) -> Result<Response, ApiError> {
    let caller = context.admit(parts)?;
    line.caller = Some(Arc::clone(&caller.name));
    // Nobody's body is read before it is known who sends it.
    let body = read_whole(body).await?;
    let call = read_call(context, &parts.headers, body, caller.tenant, caller.credential)?;
    line.namespace = Some(Arc::clone(&call.namespace));
    line.model.clone_from(&call.request.model);
    if context.log_prompts {
        line.question = call.request.question.as_ref().map(Question::text);
    }
    let form = Form {
        stream: call.request.stream,
        include_usage: call.request.include_usage,
        refresh: call.directives.no_cache,
    };
    let (tenant, question) = (call.tenant.clone(), call.request.question.as_ref().map(Question::text));
    let answer = context.gateway.answer(call).await.map_err(|error| refusal(error, context.credential))?;
    remember(context, &parts.headers, &answer, tenant, question);
    line.source = Some(answer.source.clone());
    line.bypass = answer.bypass.or(answer.semantic_bypass);
    Ok(respond(context, answer, form))
}

impl Context {
    /// Who calls, if they may.
    pub(super) fn admit(&self, parts: &Parts) -> Result<Caller, ApiError> {
        let auth = self.auth.load();
        auth.guard(parts)?;
        Ok(auth.caller(&parts.headers)?)
    }
}

/// Remembers which answer this request got, for what may be said of it.
fn remember(
    context: &Context,
    headers: &HeaderMap,
    answer: &Answer,
    tenant: Tenant,
    question: Option<String>,
) {
    let entry = match &answer.body {
        AnswerBody::Kept(entry) => entry.key,
        _ => answer.key,
    };
    // What was asked in the entry's own words needs no words here.
    let question = question.filter(|_| matches!(answer.source, Source::Semantic { .. })).map(Into::into);
    if let Some(id) = headers.get(X_REQUEST_ID).and_then(|id| id.to_str().ok()) {
        context.recent.remember(id, Answered { entry, question, tenant });
    }
}

/// Reads a call as the callers' API and `/admin/explain` take it.
pub(super) fn read_call(
    context: &Context,
    headers: &HeaderMap,
    body: Bytes,
    tenant: Tenant,
    credential: Option<Secret>,
) -> Result<Call, ApiError> {
    let request = openai::request::parse(body, context.max_json_depth)
        .map_err(|error| ApiError::bad_request(error.message, error.param.as_deref()))?;
    let preferences = Preferences::read(&request.scope)
        .map_err(|error| ApiError::bad_request(error.to_string(), Some(&error.param)))?;
    let upstream = context.gateway.upstream();
    if !std::iter::once(&request.model).chain(&preferences.models).any(|model| upstream.serves(model)) {
        return Err(ApiError::model_not_found(&request.model));
    }
    let namespace = namespace(context, headers, &request.model)?;
    let request = request.placed(namespace.placement());
    let directives = directives(headers)?;
    let priority = priority(headers)?;
    let wait = deadline(headers)?.unwrap_or(context.deadlines.default).min(context.deadlines.max);
    let deadline = Instant::now() + wait;
    Ok(Call { request, tenant, credential, namespace, directives, preferences, priority, deadline })
}

/// The namespace that the caller names, else the model's, else `default`.
fn namespace(context: &Context, headers: &HeaderMap, model: &str) -> Result<Arc<Namespace>, ApiError> {
    const HEADER: &str = "x-refrain-namespace";
    let named = headers.get(HEADER).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let name = match &named {
        Some(name) => name.trim(),
        None => context.gateway.upstream().namespace_of(model).unwrap_or("default"),
    };
    context.gateway.namespaces().get(name).cloned().ok_or_else(|| {
        let message = format!("there is no namespace {name:?}: namespaces are named in the config");
        ApiError::bad_request(message, Some(HEADER))
    })
}

/// How the caller wants the answer.
#[derive(Clone, Copy)]
struct Form {
    stream: bool,
    include_usage: bool,
    refresh: bool,
}

/// What the caller is told when there is no answer.
fn refusal(error: GatewayError, credential: Credential) -> ApiError {
    match error {
        GatewayError::Upstream(error) => ApiError::from_upstream(error, credential),
        GatewayError::NotCached => ApiError::only_if_cached(),
        GatewayError::CacheOnly => ApiError::unavailable(CACHE_ONLY),
        GatewayError::Internal => ApiError::internal(),
    }
}

fn respond(context: &Context, answer: Answer, form: Form) -> Response {
    let headers = describe(context, &answer, form);
    let body = match answer.body {
        AnswerBody::Kept(entry) => render(context, &entry.reply, form, true),
        AnswerBody::Reply(reply) => render(context, &reply, form, false),
        AnswerBody::Verbatim(whole) => Body::from(whole.bytes.clone()),
        AnswerBody::Events(events) => Body::from_stream(relay(events, form.include_usage)),
    };
    (headers, body).into_response()
}

fn render(context: &Context, reply: &ChatReply, form: Form, cached: bool) -> Body {
    let id = format!("chatcmpl-{}", unique().simple());
    let created = context.clock.now().as_secs();
    let stamp = Stamp { id: &id, created, cached };
    if form.stream {
        let frames: Vec<Bytes> = render_stream(reply, &stamp, form.include_usage).collect();
        Body::from_stream(stream::iter(frames.into_iter().map(Ok::<_, Infallible>)))
    } else {
        Body::from(render_whole(reply, &stamp))
    }
}

/// A provider's events as they come; a break is told in OpenAI's form, without a terminal event.
fn relay(events: EventTail, include_usage: bool) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::unfold(Some(events), move |events| async move {
        let mut events = events?;
        loop {
            return Some(match events.next().await {
                Some(Ok(event)) if event.kind == EventKind::Usage && !include_usage => continue,
                Some(Ok(event)) => (Ok(frame(&event.data)), Some(events)),
                Some(Err(error)) => (Ok(ApiError::from(error).to_event()), None),
                None => (Ok(frame(TERMINAL)), None),
            });
        }
    })
}

/// The headers that say where an answer is from (RFC 9211, and `x-refrain-*`).
fn describe(context: &Context, answer: &Answer, form: Form) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(12);
    let content_type = if form.stream && !matches!(answer.body, AnswerBody::Verbatim(_)) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        "text/event-stream"
    } else {
        "application/json"
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    let mut put = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    };
    let id = HeaderName::from_static("x-refrain-entry");
    let source = HeaderName::from_static("x-refrain-source");
    match (&answer.source, &answer.body) {
        (Source::Upstream { served, coalesced }, _) => {
            put(source, "upstream".to_owned());
            put(HeaderName::from_static("x-refrain-provider"), served.provider.to_string());
            put(HeaderName::from_static("x-refrain-model"), served.model.to_string());
            put(HeaderName::from_static("x-refrain-attempts"), served.attempts.to_string());
            if served.is_fallback {
                put(HeaderName::from_static("x-refrain-fallback"), "true".to_owned());
            }
            put(CACHE_STATUS, forwarded(answer, *coalesced, form.refresh));
            if let (true, Some((similarity, why))) = (context.debug, answer.refused) {
                put(HeaderName::from_static("x-refrain-similarity"), format!("{similarity:.4}"));
                put(HeaderName::from_static("x-refrain-refused"), why.to_owned());
            }
        }
        (Source::Substitute(substitute), _) => {
            let layer = substitute.label();
            put(source, layer.to_owned());
            put(CACHE_STATUS, format!("refrain; fwd=miss; detail={layer}"));
            return headers;
        }
        (kept, AnswerBody::Kept(entry)) => {
            let now = context.clock.now();
            let layer = match kept {
                Source::Semantic { similarity, probability } => {
                    put(HeaderName::from_static("x-refrain-similarity"), format!("{similarity:.4}"));
                    if let Some(probability) = probability {
                        put(HeaderName::from_static("x-refrain-probability"), format!("{probability:.4}"));
                    }
                    "semantic"
                }
                Source::Stale => "stale",
                _ => "exact",
            };
            put(source, layer.to_owned());
            put(HeaderName::from_static("x-refrain-provider"), entry.provider.clone());
            put(HeaderName::from_static("x-refrain-model"), entry.reply.model.clone());
            put(AGE, entry.age(now).as_secs().to_string());
            // Below zero once the time is over (RFC 9211, section 2.6).
            let ttl = entry.time_to_live(now).as_secs();
            let sign = if entry.overdue(now).is_zero() { "" } else { "-" };
            let ttl = ttl.max(entry.overdue(now).as_secs());
            put(CACHE_STATUS, format!("refrain; hit; ttl={sign}{ttl}; detail={layer}"));
            put(id, entry.key.to_string());
            return headers;
        }
        _ => {}
    }
    put(id, answer.key.to_string());
    headers
}

fn forwarded(answer: &Answer, coalesced: bool, refresh: bool) -> String {
    let mut status = String::from(match answer.bypass {
        Some(_) => "refrain; fwd=bypass",
        None if refresh => "refrain; fwd=request",
        None => "refrain; fwd=miss",
    });
    if coalesced {
        status += "; collapsed";
    }
    if answer.stored {
        status += "; stored";
    }
    if let Some(reason) = answer.bypass.or(answer.semantic_bypass) {
        status += "; detail=";
        status += reason;
    }
    status
}

/// One line a request. No text of questions unless the config says so.
#[derive(Default)]
struct LogLine {
    caller: Option<Arc<str>>,
    namespace: Option<Arc<Namespace>>,
    model: String,
    question: Option<String>,
    source: Option<Source>,
    bypass: Option<&'static str>,
}

impl LogLine {
    fn write(&self, headers: &HeaderMap, begun: Instant, error: Option<&ApiError>) {
        let (source, similarity, provider) = match &self.source {
            Some(Source::Exact) => ("exact", None, None),
            Some(Source::Semantic { similarity, .. }) => ("semantic", Some(*similarity), None),
            Some(Source::Stale) => ("stale", None, None),
            Some(Source::Substitute(substitute)) => (substitute.label(), None, None),
            Some(Source::Upstream { served, coalesced }) => {
                (if *coalesced { "coalesced" } else { "upstream" }, None, Some(&*served.provider))
            }
            None => ("none", None, None),
        };
        tracing::info!(
            id = headers.get(X_REQUEST_ID).and_then(|id| id.to_str().ok()),
            caller = self.caller.as_deref(),
            namespace = self.namespace.as_ref().map(|namespace| &**namespace.name()),
            model = self.model,
            status = error.map_or(200, |error| error.status().as_u16()),
            source,
            similarity,
            provider,
            reason = self.bypass,
            error = error.map(ApiError::label),
            question = self.question,
            micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
            "chat"
        );
    }
}

/// `GET /v1/models`
pub(super) async fn models(
    State(context): State<Arc<Context>>,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    context.admit(&request.into_parts().0)?;
    let models: Vec<Value> = context
        .gateway
        .upstream()
        .models()
        .map(|name| json!({ "id": name, "object": "model", "created": 0, "owned_by": "refrain" }))
        .collect();
    Ok(Json(json!({ "object": "list", "data": models })))
}

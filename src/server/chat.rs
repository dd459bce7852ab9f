//! The doors for chats: OpenAI's two and Anthropic's, which differ in form only.

mod line;
mod read;
mod respond;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;

use super::Context;
use super::auth::Caller;
use super::body::read_whole;
use super::error::{ApiError, Credential};
use super::feedback::Answered;
use super::request_id::X_REQUEST_ID;
use crate::cache::key::Tenant;
use crate::chat::{Api, Question};
use crate::dialect::responses::reply::Echo;
use crate::gateway::{Answer, AnswerBody, GatewayError, Source};
use line::LogLine;
pub(super) use read::read_call;
use respond::{Form, respond};

/// When to come again while nothing but kept answers is served.
const CACHE_ONLY: Duration = Duration::from_secs(30);

/// `POST /v1/chat/completions`
pub(super) async fn completions(State(context): State<Arc<Context>>, request: Request) -> Response {
    serve(&context, Api::Chat, request).await
}

/// `POST /v1/responses`
pub(super) async fn responses(State(context): State<Arc<Context>>, request: Request) -> Response {
    serve(&context, Api::Responses, request).await
}

/// `POST /v1/messages`
pub(super) async fn messages(State(context): State<Arc<Context>>, request: Request) -> Response {
    serve(&context, Api::Messages, request).await
}

/// `POST /v1/messages/count_tokens`
pub(super) async fn count_tokens(State(context): State<Arc<Context>>, request: Request) -> Response {
    serve(&context, Api::CountTokens, request).await
}

async fn serve(context: &Context, api: Api, request: Request) -> Response {
    let begun = Instant::now();
    let mut line = LogLine { api, ..LogLine::default() };
    let (parts, body) = request.into_parts();
    let result = complete(context, api, &parts, body, &mut line).await;
    told(&line, &parts, begun, result)
}

/// Passes on a request whose body was read, and whose caller may ask.
pub(super) async fn pass(context: &Context, api: Api, parts: Parts, body: Bytes, caller: Caller) -> Response {
    let begun = Instant::now();
    let mut line = LogLine { api, ..LogLine::default() };
    let result = answer(context, api, &parts, body, caller, &mut line).await;
    told(&line, &parts, begun, result)
}

/// The response, once the log has its line.
fn told(line: &LogLine, parts: &Parts, begun: Instant, result: Result<Response, ApiError>) -> Response {
    line.write(&parts.headers, begun, result.as_ref().err());
    result.unwrap_or_else(|error| error.in_dialect(line.api.into()).into_response())
}

async fn complete(
    context: &Context,
    api: Api,
    parts: &Parts,
    body: Body,
    line: &mut LogLine,
) -> Result<Response, ApiError> {
    let caller = context.admit(parts)?;
    line.caller = Some(Arc::clone(&caller.name));
    // Nobody's body is read before it is known who sends it.
    let body = read_whole(body).await?;
    answer(context, api, parts, body, caller, line).await
}

async fn answer(
    context: &Context,
    api: Api,
    parts: &Parts,
    body: Bytes,
    caller: Caller,
    line: &mut LogLine,
) -> Result<Response, ApiError> {
    line.caller = Some(Arc::clone(&caller.name));
    let echo = (api == Api::Responses).then(|| Echo::of(&body));
    let call = read_call(context, api, &parts.headers, body, caller.tenant, caller.credential)?;
    line.namespace = Some(Arc::clone(&call.namespace));
    line.model.clone_from(&call.request.model);
    if context.log_prompts {
        line.question = call.request.question.as_ref().map(Question::text);
    }
    let form = Form {
        dialect: api.into(),
        // What only they can say goes to a provider who speaks them, and comes back as it is.
        echo: echo.filter(|_| call.request.api != Api::Responses),
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

/// What the caller is told when there is no answer.
fn refusal(error: GatewayError, credential: Credential) -> ApiError {
    match error {
        GatewayError::Upstream(error) => ApiError::from_upstream(error, credential),
        GatewayError::NotCached => ApiError::only_if_cached(),
        GatewayError::CacheOnly => ApiError::unavailable(CACHE_ONLY),
        GatewayError::Internal => ApiError::internal(),
    }
}

//! From a request on the wire to a call.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName};
use tokio::time::Instant;

use crate::cache::key::Tenant;
use crate::chat::{Api, ChatRequest};
use crate::config::Secret;
use crate::dialect::{anthropic, openai, responses};
use crate::gateway::{Call, Namespace};
use crate::server::Context;
use crate::server::directives::{deadline, directives, priority};
use crate::server::error::ApiError;
use crate::upstream::Preferences;

const VERSION: &str = "anthropic-version";
const BETA: &str = "anthropic-beta";

/// Reads a call as the callers' API and `/admin/explain` take it.
pub(in crate::server) fn read_call(
    context: &Context,
    api: Api,
    headers: &HeaderMap,
    body: Bytes,
    tenant: Tenant,
    credential: Option<Secret>,
) -> Result<Call, ApiError> {
    let request = read_request(api, headers, body, context.max_json_depth)?;
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

fn read_request(api: Api, headers: &HeaderMap, body: Bytes, depth: usize) -> Result<ChatRequest, ApiError> {
    match api {
        Api::Chat => Ok(openai::request::parse(body, depth)?),
        Api::Embeddings => Ok(openai::embeddings::parse(body, depth)?.request),
        Api::Responses => read_responses(body, depth),
        Api::Messages | Api::CountTokens => read_messages(api, headers, body, depth),
    }
}

fn read_messages(api: Api, headers: &HeaderMap, body: Bytes, depth: usize) -> Result<ChatRequest, ApiError> {
    let reading = anthropic::request::read(body, depth)?;
    let said = anthropics_headers(headers)?;
    let others = said.iter().filter(|(name, _)| !matches!(name.as_str(), VERSION | BETA));
    let texts = |name| said.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let mut request = reading
        .with_betas(texts(BETA))
        .under_version(texts(VERSION).next())
        .with_headers(others.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))))
        .request;
    request.api = api;
    request.stream &= api != Api::CountTokens;
    request.headers = said;
    Ok(request)
}

/// What the caller says in headers of Anthropic's, all of them: what they mean may not be known here.
fn anthropics_headers(headers: &HeaderMap) -> Result<HeaderMap, ApiError> {
    let bad =
        |name: &HeaderName, why: &str| ApiError::bad_request(format!("{name} {why}"), Some(name.as_str()));
    let mut said = HeaderMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| name.as_str().starts_with("anthropic-")) {
        // How a browser's SDK owns up to its caller: nothing to the provider.
        if name == "anthropic-dangerous-direct-browser-access" {
            continue;
        }
        if value.to_str().is_err() {
            return Err(bad(name, "must be plain ASCII text"));
        }
        if said.contains_key(name) && name != BETA {
            return Err(bad(name, "is said more than once"));
        }
        said.append(name.clone(), value.clone());
    }
    Ok(said)
}

/// What chat completions can say is put so, and kept for callers of either; the rest goes as it is.
fn read_responses(body: Bytes, depth: usize) -> Result<ChatRequest, ApiError> {
    let reading = responses::request::read(body, depth)?;
    if reading.goes_on_from_ours() {
        let message = "the response that this one goes on from was given by a cache, and no provider knows it: \
                       send the whole conversation as input";
        return Err(ApiError::bad_request(message, Some("previous_response_id")));
    }
    Ok(reading.into_chat())
}

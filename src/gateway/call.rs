//! What a caller asks, and how its call goes.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Namespace;
use crate::cache::follow_up::is_follow_up;
use crate::cache::key::Tenant;
use crate::cache::semantic::is_time_bound;
use crate::chat::json::{Json, Number};
use crate::chat::{Api, ChatRequest};
use crate::config::{FollowUps, Secret};
use crate::switches::{Feature, Subject};
use crate::upstream::{Preferences, Priority};

/// A caller's request with all that the caller may say about caching.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is asked.
    pub request: ChatRequest,
    /// Who asks.
    pub tenant: Tenant,
    /// The caller's own key, when it goes to the provider.
    pub credential: Option<Secret>,
    /// Where answers are kept.
    pub namespace: Arc<Namespace>,
    /// What the caller wants of the cache.
    pub directives: Directives,
    /// Who shall answer, as far as the caller says.
    pub preferences: Preferences,
    /// Before whom the request comes when some have to wait.
    pub priority: Priority,
    /// When the whole answer must be there.
    pub deadline: Instant,
}

/// What a caller wants of the cache (`Cache-Control` and `x-refrain-*`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// Neither look up nor store.
    pub no_store: bool,
    /// Do not look up; store.
    pub no_cache: bool,
    /// Do not ask a provider.
    pub only_if_cached: bool,
    /// The oldest answer to be served.
    pub max_age: Option<Duration>,
    /// How long past its time an answer may be served when no provider can give a new one; clamped
    /// to the namespace's window.
    pub stale_if_error: Option<Duration>,
    /// How long the answer may be served; clamped to the namespace's limit.
    pub ttl: Option<Duration>,
    /// Freshness tags of the answer.
    pub tags: Vec<String>,
}

/// How a call goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Route {
    /// Looked up, and stored if it misses.
    Cache,
    /// Looked up, and never asked upstream.
    CacheOnly,
    /// Asked upstream, and stored.
    Refresh,
    /// The caller forbids both the cache and the provider.
    Nowhere,
    /// Asked upstream, and nothing else, for this reason.
    Bypass(&'static str),
}

impl Route {
    /// `is_on` tells how the operator's switches stand.
    pub(super) fn of(call: &Call, is_on: &dyn Fn(Subject<'_>) -> bool) -> Self {
        let several = matches!(call.request.scope.get("n"), Some(n) if ![Json::Null, Json::Number(Number::Integer(1))].contains(n));
        let only_passes = match call.request.api {
            Api::Chat | Api::Messages => call.request.is_stateful.then_some("stateful"),
            Api::CountTokens => Some("count_tokens"),
            Api::Embeddings => Some("embeddings"),
            Api::Responses => Some("responses_only"),
        };
        let Directives { no_store, no_cache, only_if_cached, .. } = call.directives;
        if only_if_cached && (no_store || no_cache || several || only_passes.is_some()) {
            Self::Nowhere
        } else if is_on(Subject::Feature(Feature::CacheOnly)) {
            if no_store || no_cache || several || only_passes.is_some() {
                Self::Nowhere
            } else {
                Self::CacheOnly
            }
        } else if !is_on(Subject::Namespace(call.namespace.name())) {
            Self::Bypass("switched_off")
        } else if let Some(reason) = only_passes {
            Self::Bypass(reason)
        } else if no_store {
            Self::Bypass("no_store")
        } else if several {
            Self::Bypass("several_choices")
        } else if only_if_cached {
            Self::CacheOnly
        } else if no_cache {
            Self::Refresh
        } else {
            Self::Cache
        }
    }
}

/// The question's text, when it may be matched in other words; else why not.
pub(super) fn fuzzy(call: &Call, is_on: &dyn Fn(Subject<'_>) -> bool) -> Result<String, &'static str> {
    let settings = call.namespace.settings();
    if !settings.semantic || !is_on(Subject::Feature(Feature::Semantic)) {
        return Err("switched_off");
    }
    let question = call.request.question.as_ref().ok_or("no_question")?.text();
    if settings.follow_ups == FollowUps::Bypass && has_history(&call.request.scope) && is_follow_up(&question)
    {
        return Err("follow_up");
    }
    if settings.time_bound_bypass && is_time_bound(&question) {
        return Err("time_bound");
    }
    Ok(question)
}

/// Whether anything was said before the last turn, instructions aside.
fn has_history(scope: &Json) -> bool {
    let Some(Json::Array(turns)) = scope.get("messages") else { return false };
    let instructs =
        |turn: &Json| matches!(turn.get("role").and_then(Json::as_str), Some("system" | "developer"));
    turns.split_last().is_some_and(|(_, earlier)| earlier.iter().any(|turn| !instructs(turn)))
}

//! What the log says of a request: one line, and no text of questions unless the config says so.

use std::sync::Arc;

use axum::http::HeaderMap;
use tokio::time::Instant;

use crate::chat::Api;
use crate::gateway::{Namespace, Source};
use crate::server::error::ApiError;
use crate::server::request_id::X_REQUEST_ID;

/// What is known of a request when its line is written.
#[derive(Default)]
pub(super) struct LogLine {
    pub(super) api: Api,
    pub(super) caller: Option<Arc<str>>,
    pub(super) namespace: Option<Arc<Namespace>>,
    pub(super) model: String,
    pub(super) question: Option<String>,
    pub(super) source: Option<Source>,
    pub(super) bypass: Option<&'static str>,
}

impl LogLine {
    pub(super) fn write(&self, headers: &HeaderMap, begun: Instant, error: Option<&ApiError>) {
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
        let api = match self.api {
            Api::Chat => "chat",
            Api::Messages => "messages",
            Api::CountTokens => "count_tokens",
            Api::Responses => "responses",
            Api::Embeddings => "embeddings",
        };
        tracing::info!(
            id = headers.get(X_REQUEST_ID).and_then(|id| id.to_str().ok()),
            api,
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

//! The port to whoever answers a request, and its adapters.

pub mod openai;
mod pieces;
pub mod rules;

use std::sync::Arc;

use async_trait::async_trait;

use super::{Body, UpstreamError};
use crate::chat::ChatRequest;
use crate::config::Secret;

/// Someone who completes chats.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Its name in the config.
    fn name(&self) -> &Arc<str>;

    /// Answers one request, in one call and without a retry.
    ///
    /// `model` is the model's name at this provider. `credential` is the caller's own key, which
    /// goes to the provider instead of a key from the config.
    ///
    /// Dropping the future, or the stream it gave, cancels the call. The only limit in time that
    /// a provider keeps itself is the one for connecting; the caller has the others.
    async fn complete(
        &self,
        request: &ChatRequest,
        model: &str,
        credential: Option<&Secret>,
    ) -> Result<Body, UpstreamError>;
}

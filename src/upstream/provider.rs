//! The port to whoever answers a request, and its adapters.

mod pieces;
mod protocol;
pub mod remote;
pub mod rules;

use std::sync::Arc;

use async_trait::async_trait;

use super::{Body, UpstreamError};
use crate::chat::ChatRequest;
use crate::config::Secret;
use crate::dialect::cross::Inexpressible;

pub use protocol::Protocol;

/// Someone who completes chats.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Its name in the config.
    fn name(&self) -> &Arc<str>;

    /// Scheme, host and port of where its calls go; `None` for one that calls nobody.
    fn host(&self) -> Option<&str> {
        None
    }

    /// Whether a request can be put to it, whatever dialect it is in; else what it has no words for.
    fn takes(&self, _request: &ChatRequest) -> Result<(), Inexpressible> {
        Ok(())
    }

    /// Answers one request, in one call and without a retry. The answer is in the request's own
    /// dialect.
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

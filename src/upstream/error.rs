//! Why there is no answer.

use std::sync::Arc;

use bytes::Bytes;
use thiserror::Error;

/// Why there is no answer, or why it broke off.
#[derive(Clone, Debug, Error)]
pub enum UpstreamError {
    /// No configured model has this name, or its provider is not there.
    #[error("no provider serves the model {model:?}")]
    UnknownModel {
        /// The name asked for.
        model: String,
    },
    /// No connection.
    #[error("{provider} cannot be reached: {reason}")]
    Connect {
        /// The provider's name.
        provider: Arc<str>,
        /// Why, for the log only.
        reason: Arc<str>,
    },
    /// A timer ran out.
    #[error("{provider} did not answer in time ({timer})")]
    TimedOut {
        /// The provider's name.
        provider: Arc<str>,
        /// Which timer: `connect`, `first_content`, `stall` or `total`.
        timer: &'static str,
    },
    /// The provider refused or failed, with a status of its own (or an error inside a 200).
    #[error("{provider} answered {status}")]
    Status {
        /// The provider's name.
        provider: Arc<str>,
        /// Its status; 200 for an error inside a success.
        status: u16,
        /// Its body, for the caller when the fault is the caller's.
        body: Bytes,
        /// Its `Retry-After` header.
        retry_after: Option<String>,
    },
    /// The answer is not what the protocol says, or ended before its terminal event.
    #[error("{provider} sent a broken answer: {reason}")]
    Broken {
        /// The provider's name.
        provider: Arc<str>,
        /// What is wrong with it.
        reason: Arc<str>,
    },
    /// The answer is larger than `upstream.max_reply`.
    #[error("{provider} sent more than {limit} bytes")]
    TooLarge {
        /// The provider's name.
        provider: Arc<str>,
        /// The limit.
        limit: u64,
    },
}

impl UpstreamError {
    /// The provider it comes from; none for an unknown model.
    pub fn provider(&self) -> &str {
        match self {
            Self::UnknownModel { .. } => "none",
            Self::Connect { provider, .. }
            | Self::TimedOut { provider, .. }
            | Self::Status { provider, .. }
            | Self::Broken { provider, .. }
            | Self::TooLarge { provider, .. } => provider,
        }
    }

    /// A word for metrics and logs.
    pub fn label(&self) -> &'static str {
        match self {
            Self::UnknownModel { .. } => "unknown_model",
            Self::Connect { .. } => "connect",
            Self::TimedOut { .. } => "timeout",
            Self::Status { .. } => "status",
            Self::Broken { .. } => "broken",
            Self::TooLarge { .. } => "too_large",
        }
    }
}

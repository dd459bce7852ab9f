//! The way to the providers: one call from here, whatever it takes behind it.

pub mod provider;
pub mod timers;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use thiserror::Error;

use crate::chat::ChatReply;

/// Who really served an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The provider's name in the config.
    pub provider: Arc<str>,
    /// The model's name at the provider.
    pub model: Arc<str>,
    /// Calls it took.
    pub attempts: u32,
}

/// A provider's answer, begun.
pub struct Completion {
    /// Who serves it.
    pub served: Served,
    /// The answer.
    pub body: Body,
}

/// An answer as the provider sends it.
pub enum Body {
    /// All at once.
    Whole(Whole),
    /// Piece by piece.
    Stream(PieceStream),
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Whole {
    /// The provider's body, byte for byte.
    pub bytes: Bytes,
    /// What it says; `None` when it is no single answer (several choices), which is passed on
    /// and never stored.
    pub reply: Option<ChatReply>,
}

/// A streamed answer. Ends after `Complete` or an error; a stream that ends without either was
/// cut, and the upstream module turns that into an error.
pub type PieceStream = BoxStream<'static, Result<Piece, UpstreamError>>;

/// A piece of a streamed answer.
#[derive(Clone, Debug)]
pub enum Piece {
    /// One server-sent event.
    Event(Event),
    /// The terminal event was seen: what the whole stream says, put together. `None` as in
    /// [`Whole::reply`].
    Complete(Option<Box<ChatReply>>),
}

/// One server-sent event in the provider's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event's data, byte for byte; the protocol's terminal (`[DONE]`) is not passed on as
    /// an event.
    pub data: Bytes,
    /// What it is, for timers and for callers who did not ask for usage.
    pub kind: EventKind,
}

/// What an event carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Something the caller waits for: text, a tool call, reasoning.
    Content,
    /// Nothing but the usage (no choices).
    Usage,
    /// Anything else: a role, a finish reason, an empty delta.
    Other,
}

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

//! An answer as a provider gives it: whole, or begun.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;

use super::UpstreamError;
use crate::chat::{ChatReply, EventKind, Usage};

/// Who really served an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The provider's name in the config.
    pub provider: Arc<str>,
    /// The model's name at the provider.
    pub model: Arc<str>,
    /// Calls it took.
    pub attempts: u32,
    /// Another model than the one asked for, which could not answer.
    pub is_fallback: bool,
}

/// A provider's answer, begun: a stream is handed on with its first content.
pub struct Completion {
    /// Who serves it.
    pub served: Served,
    /// The answer.
    pub body: Body,
}

/// An answer as the provider sends it.
#[expect(clippy::large_enum_variant, reason = "there is one a call, and it is not copied around")]
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
    /// What it cost, also where there is no reply.
    pub usage: Option<Usage>,
}

impl Whole {
    /// A body, and what it says.
    pub fn new(bytes: Bytes, reply: Option<ChatReply>) -> Self {
        let usage = reply.as_ref().and_then(|reply| reply.usage);
        Self { bytes, reply, usage }
    }
}

/// What a stream came to.
#[derive(Clone, Debug, Default)]
pub struct End {
    /// What the whole stream says, put together; `None` as in [`Whole::reply`].
    pub reply: Option<ChatReply>,
    /// What it cost, also where there is no reply.
    pub usage: Option<Usage>,
}

impl From<Option<ChatReply>> for End {
    fn from(reply: Option<ChatReply>) -> Self {
        let usage = reply.as_ref().and_then(|reply| reply.usage);
        Self { reply, usage }
    }
}

/// A streamed answer. Ends after `Complete` or an error; a stream that ends without either was
/// cut, and the upstream module turns that into an error.
pub type PieceStream = BoxStream<'static, Result<Piece, UpstreamError>>;

/// A piece of a streamed answer.
#[derive(Clone, Debug)]
pub enum Piece {
    /// One server-sent event.
    Event(Event),
    /// The terminal event was seen.
    Complete(Box<End>),
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

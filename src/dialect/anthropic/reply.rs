//! Answers in Anthropic's messages, read and written, whole and streamed.
//!
//! An answer is kept in the terms that all dialects meet in, so that one stored from either
//! dialect can be given in the other: tool calls and reasoning as OpenAI's fields, token counts
//! as OpenAI counts them. Read for storing is only what comes back field for field: one block of
//! plain text. Everything else (tool use, thinking, citations, server tools, several blocks) is
//! passed on and never stored.

mod assemble;
mod blocks;
mod stream;
pub(in crate::dialect) mod usage;
mod whole;

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::Finish;
use crate::dialect::openai;

pub use crate::dialect::openai::reply::{ReplyFault, Stamp};
pub use assemble::Assembler;
pub(in crate::dialect) use blocks::call_id;
pub use stream::{render_events, render_stream};
pub(in crate::dialect) use whole::read;
pub use whole::{parse_whole, render_whole};

/// The data of the event that ends a stream.
pub const TERMINAL: &[u8] = br#"{"type":"message_stop"}"#;

/// Whether an event's data is the protocol's terminal. Unlike OpenAI's it is an event as any
/// other: the assembler wants it too, and a client waits for it.
pub fn is_terminal(data: &[u8]) -> bool {
    name(data).is_some_and(|name| name == "message_stop")
}

/// One event of a stream on the wire: named by its type, as the SDKs demand.
pub fn frame(data: &[u8]) -> Bytes {
    let lines = openai::reply::frame(data);
    let Some(name) = name(data).filter(|name| !name.contains(['\n', '\r'])) else { return lines };
    let mut frame = BytesMut::with_capacity(lines.len() + name.len() + 8);
    frame.put_slice(b"event: ");
    frame.put_slice(name.as_bytes());
    frame.put_u8(b'\n');
    frame.put_slice(&lines);
    frame.freeze()
}

fn name(data: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        r#type: String,
    }
    serde_json::from_slice::<Named>(data).ok().map(|named| named.r#type)
}

fn malformed(error: &serde_json::Error) -> ReplyFault {
    ReplyFault::Malformed(format!("not a message: {error}"))
}

/// A value that has only string keys, which cannot fail in memory.
fn write<T: Serialize>(value: &T) -> Bytes {
    serde_json::to_vec(value).expect("maps with string keys always serialise into memory").into()
}

/// Whether this is an error inside a success: Anthropic's own form, or anybody's `error`.
pub(in crate::dialect) fn reports_error(kind: Option<&str>, error: Option<&Value>) -> bool {
    kind == Some("error") || error.is_some_and(|error| !error.is_null())
}

impl Finish {
    /// From Anthropic's `stop_reason`. That a stop sequence was the reason shows in the reply's
    /// `stop_sequence`.
    pub(in crate::dialect) fn from_stop_reason(word: &str) -> Self {
        match word {
            "end_turn" | "stop_sequence" => Self::Stop,
            "max_tokens" => Self::Length,
            "tool_use" => Self::ToolCalls,
            "refusal" => Self::ContentFilter,
            other => Self::Other(other.to_owned()),
        }
    }

    /// As Anthropic's `stop_reason`; reasons of other providers as they are.
    pub(in crate::dialect) fn as_stop_reason(&self, at_stop_sequence: bool) -> &str {
        match self {
            Self::Stop if at_stop_sequence => "stop_sequence",
            Self::Stop => "end_turn",
            Self::Length => "max_tokens",
            Self::ToolCalls => "tool_use",
            Self::ContentFilter => "refusal",
            Self::Other(word) => word,
        }
    }
}

/// What OpenAI calls a refusal ends with `stop` there, and the field it stands in says what it is;
/// at Anthropic the stop reason does.
pub(in crate::dialect) fn refused(finish: Finish, refused: bool) -> Finish {
    if refused && finish == Finish::Stop { Finish::ContentFilter } else { finish }
}

/// A call that the caller demanded by name ends with `stop` at OpenAI, and some providers end every
/// call so. Anthropic's clients run tools only where the stop reason says `tool_use`.
pub(in crate::dialect) fn calling(finish: Finish, calls: bool) -> Finish {
    if calls && finish == Finish::Stop { Finish::ToolCalls } else { finish }
}

#[cfg(test)]
mod tests;

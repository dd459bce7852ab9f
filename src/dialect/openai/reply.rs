//! Answers of OpenAI's chat completions, read and written, whole and streamed.
//!
//! A stored answer has to come back as the miss it repeats, field for field, whichever form it
//! was asked in then and now. So what is understood of an answer is little (text, finish reason,
//! token counts) and all the rest is carried along in [`crate::chat::Extra`]. Where the pieces of
//! a stream leave a doubt about the whole, there is no [`ChatReply`](crate::chat::ChatReply)
//! at all: such an answer is passed on and never stored.

mod assemble;
mod stream;
mod usage;
mod whole;

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use crate::chat::Finish;

pub use assemble::Assembler;
pub use stream::{render_chunks, render_stream};
pub use whole::{parse_whole, render_whole};

/// The data of the event that ends a stream.
pub const TERMINAL: &[u8] = b"[DONE]";

/// Whether an event's data is the protocol's terminal.
pub fn is_terminal(data: &[u8]) -> bool {
    data.trim_ascii() == TERMINAL
}

/// What is written anew each time an answer is rendered.
#[derive(Clone, Copy, Debug)]
pub struct Stamp<'a> {
    /// The completion's id.
    pub id: &'a str,
    /// Seconds since the Unix epoch.
    pub created: u64,
    /// Marks the usage as not spent this time, by a field `"cached": true` inside it (SDKs keep
    /// or ignore fields they do not know). The counts stay those of the answer: OpenAI's own
    /// `cached_tokens` means something else and is never touched.
    pub cached: bool,
}

/// Why a body or an event is no part of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReplyFault {
    /// It reports an error in the provider's words.
    #[error("the provider reports an error")]
    Reported,
    /// It is not what the protocol says.
    #[error("{0}")]
    Malformed(String),
}

impl From<serde_json::Error> for ReplyFault {
    fn from(error: serde_json::Error) -> Self {
        Self::Malformed(format!("not a chat completion: {error}"))
    }
}

/// One event of a stream on the wire. Line breaks in the data become several data lines, as
/// the event stream format wants it.
pub fn frame(data: &[u8]) -> Bytes {
    const FIELD: &[u8] = b"data: ";
    let mut frame = BytesMut::with_capacity(FIELD.len() + data.len() + 2);
    let mut rest = data;
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        frame.put_slice(FIELD);
        frame.put_slice(&rest[..end]);
        frame.put_u8(b'\n');
        rest = &rest[end..];
        rest = rest.strip_prefix(b"\r\n").unwrap_or(&rest[1..]);
    }
    frame.put_slice(FIELD);
    frame.put_slice(rest);
    frame.put_slice(b"\n\n");
    frame.freeze()
}

/// The event that ends a stream which broke after its first byte. No terminal may follow: a
/// client must not take the part for the whole.
pub fn error_event(message: &str, kind: &str, code: Option<&str>) -> Bytes {
    #[derive(Serialize)]
    struct Body<'a> {
        error: Error<'a>,
    }
    #[derive(Serialize)]
    struct Error<'a> {
        message: &'a str,
        r#type: &'a str,
        param: Option<&'a str>,
        code: Option<&'a str>,
    }
    let body = Body { error: Error { message, r#type: kind, param: None, code } };
    let mut data = Vec::new();
    write(&mut data, &body);
    frame(&data)
}

impl Finish {
    fn from_wire(word: &str) -> Self {
        match word {
            "stop" => Self::Stop,
            "length" => Self::Length,
            "tool_calls" => Self::ToolCalls,
            "content_filter" => Self::ContentFilter,
            other => Self::Other(other.to_owned()),
        }
    }

    fn as_wire(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Other(word) => word,
        }
    }
}

/// Whether this is an error object inside a success: OpenAI's `error` (an object, or Ollama's
/// string), or the flat form of older vLLM.
fn reports_error(error: Option<&Value>, object: Option<&Value>) -> bool {
    error.is_some_and(|error| !error.is_null())
        || object.and_then(Value::as_str).is_some_and(|object| object == "error")
}

/// Appends a value that has only string keys, which cannot fail in memory.
fn write<T: Serialize + ?Sized>(body: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(body, value).expect("maps with string keys always serialise into memory");
}

#[cfg(test)]
mod tests;

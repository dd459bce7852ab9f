//! Answers in OpenAI's responses, read and written, whole and streamed.
//!
//! An answer is kept in the terms that all dialects meet in, so that one stored from either
//! dialect can be given in the other: calls, thoughts and refusals as chat completions' fields, token
//! counts as those count them. What a response repeats of its request is no part of the answer: it is
//! left out where one is read, and written from the request at hand ([`Echo`]).
//!
//! Read for storing is only what comes back as it was: one message, with readable thoughts before
//! it and function calls after it. Left out are item ids, which are written anew, and thoughts that
//! only their provider can read, which say nothing to anybody else. Everything else (citations,
//! summaries, built-in tools, several messages) is passed on and never stored.

mod assemble;
mod echo;
mod events;
mod items;
mod stream;
pub(in crate::dialect) mod usage;
mod whole;

use serde::Deserialize;

use crate::chat::Finish;

pub use crate::dialect::anthropic::reply::frame;
pub use crate::dialect::openai::reply::{ReplyFault, Stamp};
pub use assemble::Assembler;
pub use echo::Echo;
pub(in crate::dialect) use events::{EventWriter, Said};
pub(in crate::dialect) use items::call_id;
pub use stream::{render_events, render_stream};
pub use whole::{parse_whole, render_whole};

/// Whether an event's data is one that ends a stream with an answer, whole or cut. Unlike that of
/// chat completions it is an event as any other: the assembler wants it too, and a client waits for
/// it.
pub fn is_terminal(data: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Named {
        r#type: String,
    }
    serde_json::from_slice::<Named>(data).is_ok_and(|named| is_terminal_name(&named.r#type))
}

fn is_terminal_name(name: &str) -> bool {
    matches!(name, "response.completed" | "response.incomplete")
}

impl Finish {
    /// Why a response is incomplete; `None` when it is complete.
    fn as_incomplete_reason(&self) -> Option<&str> {
        match self {
            Self::Stop | Self::ToolCalls => None,
            Self::Length => Some("max_output_tokens"),
            Self::ContentFilter => Some("content_filter"),
            // Nobody here knows whether that is the end, and a cut answer must not pass for a whole.
            Self::Other(word) => Some(word),
        }
    }

    fn from_incomplete_reason(word: &str) -> Self {
        match word {
            "max_output_tokens" => Self::Length,
            "content_filter" => Self::ContentFilter,
            other => Self::Other(other.to_owned()),
        }
    }
}

#[cfg(test)]
pub(in crate::dialect) mod tests;

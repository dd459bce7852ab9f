//! Whole answers from one dialect to the other, by way of the canonical form.
//!
//! A stored answer is rendered from that form too, so a hit equals the miss it repeats, in
//! whichever dialect it is asked for. What is not carried over, and why:
//!
//! - the signature of a thought, and thoughts that are redacted: a proof to Anthropic that the
//!   thought is its own, and a text that only Anthropic can read;
//! - the borders between several texts: OpenAI's message has one.

use bytes::Bytes;
use serde_json::Value;
use thiserror::Error;

use super::Inexpressible;
use crate::chat::Finish;
use crate::dialect::openai::reply::{ReplyFault, Stamp};
use crate::dialect::{anthropic, openai};

/// Why an answer has no other form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CrossFault {
    /// It is no answer.
    #[error(transparent)]
    Reply(#[from] ReplyFault),
    /// It holds what the other dialect cannot say.
    #[error(transparent)]
    Inexpressible(#[from] Inexpressible),
}

/// A message as a chat completion. Usage and everything unknown is carried along.
pub fn to_openai(body: &[u8], stamp: &Stamp<'_>) -> Result<Bytes, CrossFault> {
    let mut reading = anthropic::reply::read(body)?;
    if let Some(index) = reading.lost {
        let reason = "holds more than text, thoughts and tool calls";
        return Err(Inexpressible::new(format!("content[{index}]"), reason).into());
    }
    if reading.reply.finish == Finish::Other(String::new()) {
        return Err(Inexpressible::new("stop_reason", "is missing, so the message is not finished").into());
    }
    super::stream::finish_for_openai(&mut reading.reply.finish);
    // A completion has fields of these names, and means something else by them.
    reading.reply.extra.reply.retain(|name, _| !matches!(name.as_str(), "object" | "created" | "choices"));
    Ok(openai::reply::render_whole(&reading.reply, stamp))
}

/// A chat completion as a message. Usage and everything unknown is carried along; what stood in
/// the choice or its message stands beside `content`.
pub fn to_anthropic(body: &[u8], stamp: &Stamp<'_>) -> Result<Bytes, CrossFault> {
    let reply = openai::reply::parse_whole(body)?
        .ok_or_else(|| Inexpressible::new("choices", "are not one finished answer of text and tool calls"))?;
    let calls = reply.extra.message.get("tool_calls").and_then(Value::as_array);
    let is_unnamed = |call: &Value| call["function"]["name"].as_str().is_none_or(str::is_empty);
    if let Some(index) = calls.into_iter().flatten().position(is_unnamed) {
        let reason = "calls no function, and Anthropic has no other calls";
        return Err(Inexpressible::new(format!("message.tool_calls[{index}]"), reason).into());
    }
    Ok(anthropic::reply::render_whole(&reply, stamp))
}

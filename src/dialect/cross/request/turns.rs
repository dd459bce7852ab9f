//! The conversation, turn by turn.
//!
//! The dialects cut it differently: results of tools are messages of their own at OpenAI and
//! blocks of the user's turn at Anthropic, instructions are messages at OpenAI and stand before
//! the conversation at Anthropic.

mod to_anthropic;
mod to_openai;

use serde_json::{Map, Value};

use super::super::Inexpressible;

pub(super) use to_anthropic::to_anthropic;
pub(in crate::dialect) use to_openai::{system_to_openai, turn_to_openai};

/// Chat completions begin an answer, messages may also go on with one.
const PREFILL: &str = "is the assistant's last word, which only Anthropic goes on with";

pub(super) fn list(body: &Map<String, Value>) -> Result<&Vec<Value>, Inexpressible> {
    let turns = body.get("messages").and_then(Value::as_array).filter(|turns| !turns.is_empty());
    turns.ok_or_else(|| Inexpressible::new("messages", "must be an array of at least one message"))
}

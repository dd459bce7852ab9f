//! Requests from one dialect to the other.
//!
//! Fields that never change an answer stay behind: in Anthropic's requests `metadata`,
//! `service_tier` and every `cache_control`; in OpenAI's `user`, `metadata`, `store`,
//! `service_tier`, `safety_identifier`, `stream_options` and the `prompt_cache_*` fields. One more
//! does: the `name` of a JSON schema for the answer, which is a label that OpenAI demands. `null`
//! says nothing in either dialect, and neither does an empty list of tools, stop sequences or system
//! blocks, nor a value that is the other dialect's only way (`n` of 1, a penalty of 0). All else that
//! has no counterpart is [`Inexpressible`], and so is what Anthropic refuses and OpenAI does not: a
//! blank text, a blank stop sequence, an image that is not at an https address, an id of a call with
//! letters that Anthropic's never have. It would be the caller's fault by the provider's word, and
//! another provider could have answered.
//!
//! Requests are also brought into a normal form: content of a single text is a string, and a tool
//! without a type is a function.

pub(super) mod content;
mod fields;
pub(super) mod object;
mod tools;
mod turns;

use serde_json::{Map, Value, json};

use super::Inexpressible;
use object::{object, said};

pub(in crate::dialect) use content::image_to_openai;
pub(super) use fields::SILENT_AT_OPENAI;
pub(in crate::dialect) use fields::to_openai as field_to_openai;
pub(in crate::dialect) use turns::{system_to_openai, turn_to_openai};

/// The `max_tokens` of a request that sets no limit of its own, since Anthropic demands one. It is
/// the most that every model of Anthropic's can give; what is cut by it says so in its finish
/// reason, and so is never stored.
pub const DEFAULT_MAX_TOKENS: u64 = 4096;

/// Stands before the content of a tool message whose tool failed: OpenAI has no field for it. A
/// result that begins so without being a failure cannot be told from one, and is refused.
pub const TOOL_ERROR: &str = "[tool error] ";

/// An Anthropic request as a chat completions request. A stream asks for its usage, which
/// Anthropic's streams always tell.
pub fn to_openai(body: &Value) -> Result<Value, Inexpressible> {
    let body = object(body, "the body")?;
    let mut request = Map::new();
    let mut messages = Vec::new();
    if let Some(system) = said(body, "system") {
        messages.extend(system_to_openai(system)?);
    }
    for (name, value) in body {
        if !matches!(name.as_str(), "messages" | "system") {
            request.extend(field_to_openai(name, value)?);
        }
    }
    let turns = turns::list(body)?;
    for (index, turn) in turns.iter().enumerate() {
        messages.extend(turn_to_openai(turn, index, index + 1 == turns.len())?);
    }
    request.insert("messages".to_owned(), messages.into());
    Ok(request.into())
}

/// A chat completions request as an Anthropic request.
pub fn to_anthropic(body: &Value) -> Result<Value, Inexpressible> {
    let body = object(body, "the body")?;
    let mut request = Map::new();
    for (name, value) in body {
        for (name, value) in fields::to_anthropic(name, value)? {
            // Effort and format are two fields at OpenAI and one at Anthropic.
            match (request.get_mut(&name), value) {
                (Some(Value::Object(whole)), Value::Object(part)) => whole.extend(part),
                (_, value) => drop(request.insert(name, value)),
            }
        }
    }
    fields::max_tokens(body, &mut request)?;
    tools::choice_to_anthropic(body, &mut request)?;
    let (system, turns) = turns::to_anthropic(turns::list(body)?)?;
    if let Some(system) = system {
        request.insert("system".to_owned(), system);
    }
    request.insert("messages".to_owned(), turns.into());
    Ok(request.into())
}

/// A text part, which is the same in both dialects.
pub(super) fn text_part(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

#[cfg(test)]
mod tests;

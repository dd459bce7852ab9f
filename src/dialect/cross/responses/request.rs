//! Responses requests as chat completions requests.
//!
//! Fields that never change an answer stay behind: `metadata`, `store`, `user`, `safety_identifier`,
//! `service_tier`, `stream_options`, the `prompt_cache_*` fields and every `prompt_cache_breakpoint`.
//! `null` says nothing, and neither does a default that both dialects share. All else that has no
//! counterpart is [`Inexpressible`]. Exceptions, and why they are none:
//!
//! - ids of messages and calls, and the status `completed`: labels of what is told in full;
//! - what `include` asks for of built-in tools, and `max_tool_calls`, which limits them: a request
//!   that has such tools is not crossed;
//! - encrypted thoughts that `include` asks for: a model without them sends none either;
//! - `strict` of a function where it is left out: responses then try for a strict schema and promise
//!   nothing, chat completions do not try. A schema that is strict already is said to be.

mod content;
mod fields;
mod items;
mod tools;

use serde_json::{Map, Value};

use super::super::Inexpressible;
use super::super::request::object::{object, said};

pub(in crate::dialect) use content::input_text;
pub(in crate::dialect) use fields::to_chat as field_to_chat;
pub(in crate::dialect) use items::{instructions_to_chat, to_chat as items_to_chat};
pub(in crate::dialect) use tools::{FIELDS as TOOL_FIELDS, to_chat as tools_to_chat};

/// A Responses request as a chat completions request. A stream asks for its usage, which the
/// streams of responses always tell.
pub fn to_chat(body: &Value) -> Result<Value, Inexpressible> {
    let body = object(body, "the body")?;
    let mut request = Map::new();
    for (name, value) in body {
        if !(TOOL_FIELDS.contains(&name.as_str()) || matches!(name.as_str(), "input" | "instructions")) {
            request.extend(field_to_chat(name, value)?);
        }
    }
    request.extend(tools_to_chat(body)?);
    let mut messages = Vec::new();
    messages.extend(said(body, "instructions").map(instructions_to_chat).transpose()?);
    messages.extend(items_to_chat(said(body, "input"))?);
    request.insert("messages".to_owned(), messages.into());
    Ok(request.into())
}

#[cfg(test)]
mod tests;

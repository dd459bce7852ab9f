//! The scope of a request for a response, in the words of chat completions.
//!
//! What crossing can say in a chat completions request stands in the scope as its clients would
//! have sent it. All else stands in it as it came, under a mark that no body of any dialect can
//! hold, so that two requests never meet by accident. Which fields never change an answer, and
//! which say nothing, is crossing's to know; two decisions of its own count here:
//!
//! - `store` does not count: an answer is the same whether its provider keeps it or not;
//! - encrypted thoughts that `include` asks for are no part of the answer either. They are never
//!   kept, so a hit has none.

use serde_json::{Map, Value, json};

use super::Passage;
use crate::chat::Question;
use crate::chat::json::Json;
use crate::dialect::canonical::{gathered, loose};
use crate::dialect::cross::Inexpressible;
use crate::dialect::cross::responses::request::{
    TOOL_FIELDS, field_to_chat, input_text, instructions_to_chat, items_to_chat, tools_to_chat,
};

/// Begins with NUL, which [`Json::parse`] refuses: no field of a body is called so.
const MARK: &str = "\0responses ";

/// Fields whose place is elsewhere: the model's name in [`crate::chat::ChatRequest::model`], the way
/// an answer is sent in `stream`.
const NOT_IN_SCOPE: [&str; 2] = ["model", "stream"];

/// The name of a field of this dialect's own.
fn marked(name: &str) -> String {
    format!("{MARK}{name}")
}

/// Scope, question and passage of a body's fields.
pub(super) fn split(fields: Vec<(String, Json)>) -> (Json, Option<Question>, Passage) {
    let mut body: Map<_, _> = fields
        .into_iter()
        .filter(|(name, value)| *value != Json::Null && !NOT_IN_SCOPE.contains(&name.as_str()))
        .map(|(name, value)| (name, loose(value)))
        .collect();
    let (instructions, input) = (body.remove("instructions"), body.remove("input"));
    let mut own = None;
    let mut scope = Map::new();
    for (name, value) in &body {
        if !TOOL_FIELDS.contains(&name.as_str()) {
            match field_to_chat(name, value) {
                Ok(fields) => scope.extend(fields),
                Err(reason) => {
                    own.get_or_insert(reason);
                    scope.insert(marked(name), value.clone());
                }
            }
        }
    }
    match tools_to_chat(&body) {
        Ok(fields) => scope.extend(fields),
        Err(reason) => {
            own.get_or_insert(reason);
            for name in TOOL_FIELDS {
                scope.extend(body.remove(name).map(|value| (marked(name), value)));
            }
        }
    }
    let messages = messages(instructions.as_ref(), input, &mut own);
    let tools = scope.contains_key("tools") || messages.iter().any(uses_tools);
    let (scope, question) = gathered(scope, messages, true);
    (scope, question, Passage::of(own, tools))
}

fn messages(
    instructions: Option<&Value>,
    input: Option<Value>,
    own: &mut Option<Inexpressible>,
) -> Vec<Value> {
    // Checked before, so it is a string.
    let first = instructions.and_then(|instructions| instructions_to_chat(instructions).ok());
    let rest = items_to_chat(input.as_ref()).unwrap_or_else(|reason| {
        own.get_or_insert(reason);
        let items = if let Some(Value::Array(items)) = input { items } else { Vec::new() };
        items.into_iter().map(own_item).collect()
    });
    first.into_iter().chain(rest).collect()
}

fn uses_tools(message: &Value) -> bool {
    message["role"] == "tool" || !message["tool_calls"].is_null()
}

/// An item of a conversation that chat completions have no words for. What a user says in it stands
/// where it would there, so that the question is found and its place stays.
fn own_item(item: Value) -> Value {
    let is_users = item["role"] == "user" && (item["type"].is_null() || item["type"] == "message");
    let Value::Object(fields) = item else { return item };
    if !is_users {
        return json!({ marked("item"): fields });
    }
    let mut own = Map::new();
    // Even where nothing else is marked: what has no words may stand before it.
    own.insert(marked("item"), true.into());
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("content", Value::Array(parts)) => {
                let parts = parts
                    .into_iter()
                    .map(|part| input_text(&part, "").unwrap_or_else(|_| json!({ marked("part"): part })));
                own.insert(name, parts.collect());
            }
            ("role" | "content", value) => drop(own.insert(name, value)),
            (_, value) => drop(own.insert(marked(&name), value)),
        }
    }
    own.into()
}

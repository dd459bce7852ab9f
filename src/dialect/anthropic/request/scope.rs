//! The scope of a messages request, in OpenAI's words.
//!
//! What crossing can say in OpenAI's dialect stands in the scope as an OpenAI client would have
//! sent it. All else stands in it as it came, under a mark that no body of any dialect can hold,
//! so that two requests never meet by accident. Decisions:
//!
//! - `max_tokens` counts. Anthropic demands it and OpenAI's clients seldom send it, so without
//!   `scope.ignore = ["max_tokens"]` few questions meet across dialects; but a model may know its
//!   limit and answer to fit it.
//! - `metadata`, `service_tier` and `stream` never change an answer. Neither does `cache_control`:
//!   it says which computations are kept, whose results are the same when they are made anew.
//! - `null` says nothing, and does not count.
//! - Tools' results make a turn no question, whatever text stands beside them.

use serde_json::{Map, Value, json};

use super::Passage;
use crate::chat::Question;
use crate::chat::json::Json;
use crate::dialect::canonical::{gathered, loose};
use crate::dialect::cross::Inexpressible;
use crate::dialect::cross::request::{field_to_openai, image_to_openai, system_to_openai, turn_to_openai};

/// Begins with NUL, which [`Json::parse`] refuses: no field of a body is called so.
const MARK: &str = "\0anthropic ";

/// Top-level fields that never change an answer; the model's name is in [`crate::chat::ChatRequest::model`].
const NOT_IN_SCOPE: [&str; 5] = ["cache_control", "metadata", "model", "service_tier", "stream"];

/// The name of a field of Anthropic's own.
pub(super) fn marked(name: &str) -> String {
    format!("{MARK}{name}")
}

/// Scope, question and passage of a body's fields.
pub(super) fn split(fields: Vec<(String, Json)>) -> (Json, Option<Question>, Passage) {
    let mut own = None;
    let mut tools = false;
    let mut scope = Map::new();
    let mut messages = Vec::new();
    let mut is_question = false;
    for (name, value) in fields {
        let value = loose(value);
        match name.as_str() {
            _ if value.is_null() || NOT_IN_SCOPE.contains(&name.as_str()) => {}
            // For the router, as at OpenRouter: see [`crate::upstream::Preferences`].
            "models" | "provider" => drop(scope.insert(name, value)),
            "system" => match system_to_openai(&value) {
                Ok(message) => drop(messages.splice(0..0, message)),
                Err(reason) => {
                    own.get_or_insert(reason);
                    scope.insert(marked(&name), without_cache_control(value));
                }
            },
            "messages" => {
                let turns = if let Value::Array(turns) = value { turns } else { Vec::new() };
                tools |= turns.iter().any(uses_tools);
                is_question = turns.last().is_some_and(is_users_word);
                let count = turns.len();
                for (index, turn) in turns.into_iter().enumerate() {
                    messages.extend(said(turn, index, index + 1 == count, &mut own));
                }
            }
            _ => {
                tools |= name == "tools" && value != json!([]);
                match field_to_openai(&name, &value) {
                    Ok(fields) => scope.extend(fields),
                    Err(reason) => {
                        own.get_or_insert(reason);
                        let value = if name == "tools" { without_cache_control(value) } else { value };
                        scope.insert(marked(&name), value);
                    }
                }
            }
        }
    }
    let (scope, question) = gathered(scope, messages, is_question);
    (scope, question, Passage::of(own, tools))
}

fn said(turn: Value, index: usize, last: bool, own: &mut Option<Inexpressible>) -> Vec<Value> {
    turn_to_openai(&turn, index, last).unwrap_or_else(|reason| {
        own.get_or_insert(reason);
        vec![own_turn(turn)]
    })
}

/// A turn that OpenAI has no words for. Its texts and images stand where OpenAI's would, so that
/// the question is found and its place stays; role and place in the list too, so that
/// `scope.ignore = ["history"]` means the same.
fn own_turn(turn: Value) -> Value {
    let Value::Object(fields) = turn else { return turn };
    let mut own = Map::new();
    // Even where nothing else is marked: the cut of the turn may be what has no words.
    own.insert(marked("turn"), true.into());
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("content", Value::Array(blocks)) => {
                drop(own.insert(name, blocks.into_iter().map(own_block).collect()));
            }
            ("role" | "content", value) => drop(own.insert(name, value)),
            (_, value) => drop(own.insert(marked(&name), value)),
        }
    }
    own.into()
}

fn own_block(block: Value) -> Value {
    if let Ok(image) = image_to_openai(&block, "") {
        return image;
    }
    match without_cache_control(block) {
        Value::Object(fields) if fields.get("type").is_some_and(|kind| kind == "text") => fields
            .into_iter()
            .map(|(name, value)| {
                if matches!(name.as_str(), "type" | "text") { (name, value) } else { (marked(&name), value) }
            })
            .collect::<Map<_, _>>()
            .into(),
        block => json!({ marked("block"): block }),
    }
}

/// A block, a tool or a list of them without the marks of what is kept; those inside a block's
/// own content too. Inputs and schemas are the caller's, and stay whole.
fn without_cache_control(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(without_cache_control).collect(),
        Value::Object(mut fields) => {
            fields.remove("cache_control");
            if let Some(content) = fields.remove("content") {
                fields.insert("content".to_owned(), without_cache_control(content));
            }
            fields.into()
        }
        value => value,
    }
}

fn blocks(turn: &Value) -> impl Iterator<Item = &Value> {
    turn["content"].as_array().into_iter().flatten()
}

fn uses_tools(turn: &Value) -> bool {
    blocks(turn).any(|block| block["type"] == "tool_use" || block["type"] == "tool_result")
}

fn is_users_word(turn: &Value) -> bool {
    turn["role"] == "user" && !blocks(turn).any(|block| block["type"] == "tool_result")
}

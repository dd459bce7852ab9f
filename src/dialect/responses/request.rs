//! Reads a request for a response.
//!
//! Only what the key and the streaming need is checked; the rest is the provider's to judge. The
//! body goes to a provider of the same dialect as it came, byte for byte. The scope is written in
//! the words of chat completions (its module says how), so that a question meets its answer
//! whichever dialect either was in.

mod scope;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use super::OUR_IDS;
use crate::chat::json::Json;
use crate::chat::{Api, ChatRequest};
use crate::dialect::cross::responses::request::to_chat;
use crate::dialect::openai::request::{boolean, check_role, fields, find, missing, model, model_span, wrong};

pub use crate::dialect::Passage;
pub use crate::dialect::openai::request::BadRequest;

/// A request, and what it asks of who serves it.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The request. Its `include_usage` is always true: streams of responses tell it unasked.
    pub request: ChatRequest,
    /// Where it may go.
    pub passage: Passage,
}

impl Reading {
    /// The request as chat completions take it, where they have words for all of it; else as it is.
    /// Its scope and question are those of the chat already.
    pub fn into_chat(self) -> ChatRequest {
        if let Passage::Own(_) = self.passage {
            return self.request;
        }
        let body = serde_json::from_slice(&self.request.body).ok();
        let Some(chat) = body.and_then(|body: Value| to_chat(&body).ok()) else { return self.request };
        let body = Bytes::from(chat.to_string());
        ChatRequest { api: Api::Chat, model_span: model_span(&body), body, ..self.request }
    }

    /// Whether it goes on from an answer that was given here, and that no provider has kept.
    pub fn goes_on_from_ours(&self) -> bool {
        #[derive(Deserialize)]
        struct Earlier {
            previous_response_id: Option<String>,
        }
        let Passage::Own(_) = self.passage else { return false };
        let earlier = serde_json::from_slice::<Earlier>(&self.request.body).ok();
        earlier.and_then(|earlier| earlier.previous_response_id).is_some_and(|id| id.starts_with(OUR_IDS))
    }
}

/// Reads `body`, nested at most `depth` deep.
pub fn parse(body: Bytes, depth: usize) -> Result<ChatRequest, BadRequest> {
    Ok(read(body, depth)?.request)
}

/// Reads `body` as [`parse`] does, and says where it may go.
pub fn read(body: Bytes, depth: usize) -> Result<Reading, BadRequest> {
    let fields = fields(&body, depth)?;
    let model = model(&fields)?;
    let stream = boolean(find(&fields, "stream"), "stream")?;
    match find(&fields, "instructions") {
        None | Some(Json::Null | Json::String(_)) => {}
        Some(other) => return Err(wrong("instructions", "a string", other)),
    }
    check_input(&fields)?;
    let model_span = model_span(&body);
    let (scope, question, passage) = scope::split(fields);
    let request = ChatRequest {
        api: Api::Responses,
        body,
        model_span,
        model,
        scope,
        question,
        stream,
        include_usage: true,
        ..ChatRequest::default()
    };
    Ok(Reading { request, passage })
}

fn check_input(fields: &[(String, Json)]) -> Result<(), BadRequest> {
    /// Where what is asked may stand in place of the input.
    const ELSEWHERE: [&str; 3] = ["conversation", "previous_response_id", "prompt"];
    let elsewhere =
        || ELSEWHERE.iter().any(|name| find(fields, name).is_some_and(|value| *value != Json::Null));
    let items = match find(fields, "input") {
        Some(Json::String(_)) => return Ok(()),
        Some(Json::Array(items)) if !items.is_empty() => items,
        None | Some(Json::Null | Json::Array(_)) if elsewhere() => return Ok(()),
        Some(Json::Array(_)) => {
            return Err(BadRequest::at("input", "input must hold at least one item"));
        }
        None | Some(Json::Null) => return Err(BadRequest::at("input", "input is missing")),
        Some(other) => return Err(wrong("input", "a string or an array of items", other)),
    };
    for (index, item) in items.iter().enumerate() {
        // Made only for an error: every hit comes through here.
        let at = |field: &str| format!("input[{index}]{field}");
        if !matches!(item, Json::Object(_)) {
            return Err(wrong(&at(""), "an object", item));
        }
        match item.get("type") {
            None | Some(Json::Null | Json::String(_)) => {}
            Some(other) => return Err(wrong(&at(".type"), "a string", other)),
        }
        if is_message(item) {
            check_message(item, at)?;
        }
    }
    Ok(())
}

/// Messages may leave their type out; what has neither type nor role refers to another item.
fn is_message(item: &Json) -> bool {
    match item.get("type") {
        None | Some(Json::Null) => item.get("role").is_some(),
        Some(kind) => kind.as_str() == Some("message"),
    }
}

fn check_message(item: &Json, at: impl Fn(&str) -> String) -> Result<(), BadRequest> {
    check_role(item, &at)?;
    let parts = match item.get("content") {
        None => return Err(missing(at(".content"))),
        Some(Json::Null | Json::String(_)) => return Ok(()),
        Some(Json::Array(parts)) => parts,
        Some(other) => return Err(wrong(&at(".content"), "a string or an array of parts", other)),
    };
    for (index, part) in parts.iter().enumerate() {
        let at = || at(&format!(".content[{index}]"));
        if !matches!(part, Json::Object(_)) {
            return Err(wrong(&at(), "an object", part));
        }
        let is_text = matches!(part.get("type").and_then(Json::as_str), Some("input_text" | "output_text"));
        if is_text && part.get("text").and_then(Json::as_str).is_none() {
            return Err(BadRequest::at(
                format!("{}.text", at()),
                format!("{} is a text part: its text must be a string", at()),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

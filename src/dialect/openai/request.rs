//! Reads a chat completions request.
//!
//! Only what the key and the streaming need is checked; the rest is the provider's to judge.
//! The scope is made by a deny-list, so a field that nobody here has heard of is part of it.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::chat::json::Json;
use crate::chat::{ChatRequest, Question};

/// Top-level fields that never change an answer, and so never reach the key. The model's name
/// is not in the scope either: the key takes it from [`ChatRequest::model`].
const NOT_IN_SCOPE: [&str; 7] =
    ["metadata", "model", "service_tier", "store", "stream", "stream_options", "user"];

/// What is wrong with a request, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct BadRequest {
    /// For the caller.
    pub message: String,
    /// The field, such as `messages[2].content`; `None` for the body as a whole.
    pub param: Option<String>,
}

impl BadRequest {
    pub(in crate::dialect) fn at(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { message: message.into(), param: Some(param.into()) }
    }
}

/// Reads `body`, nested at most `depth` deep.
pub fn parse(body: Bytes, depth: usize) -> Result<ChatRequest, BadRequest> {
    let fields = fields(&body, depth)?;
    let model = model(&fields)?;
    let stream = boolean(find(&fields, "stream"), "stream")?;
    let include_usage = match find(&fields, "stream_options") {
        None | Some(Json::Null) => false,
        Some(options @ Json::Object(_)) => {
            boolean(options.get("include_usage"), "stream_options.include_usage")?
        }
        Some(other) => return Err(wrong("stream_options", "an object", other)),
    };
    check_messages(find(&fields, "messages"), check_content)?;
    let model_span = model_span(&body);
    let (scope, question) = split(fields);
    Ok(ChatRequest {
        body,
        model_span,
        model,
        scope,
        question,
        stream,
        include_usage,
        ..ChatRequest::default()
    })
}

/// The fields of a body, nested at most `depth` deep.
pub(in crate::dialect) fn fields(body: &[u8], depth: usize) -> Result<Vec<(String, Json)>, BadRequest> {
    match Json::parse(body, depth).map_err(|error| unreadable(&error))? {
        Json::Object(fields) => Ok(fields),
        other => {
            let message = format!("the body must be a JSON object, not {}", other.kind());
            Err(BadRequest { message, param: None })
        }
    }
}

fn unreadable(error: &serde_json::Error) -> BadRequest {
    let mut message = format!("the body is not the JSON expected here: {error}");
    if message.contains("hex escape") {
        message += " (a lone surrogate is half a character)";
    }
    BadRequest { message, param: None }
}

pub(in crate::dialect) fn find<'a>(fields: &'a [(String, Json)], key: &str) -> Option<&'a Json> {
    fields.binary_search_by(|(name, _)| name.as_str().cmp(key)).ok().map(|index| &fields[index].1)
}

pub(in crate::dialect) fn wrong(param: &str, wanted: &str, found: &Json) -> BadRequest {
    BadRequest::at(param, format!("{param} must be {wanted}, not {}", found.kind()))
}

pub(in crate::dialect) fn model(fields: &[(String, Json)]) -> Result<String, BadRequest> {
    match find(fields, "model") {
        Some(Json::String(model)) if !model.trim().is_empty() => Ok(model.clone()),
        Some(Json::String(_)) => Err(BadRequest::at("model", "model must not be empty")),
        Some(other) => Err(wrong("model", "a string", other)),
        None => Err(BadRequest::at("model", "model is missing: say which model shall answer")),
    }
}

pub(in crate::dialect) fn boolean(value: Option<&Json>, param: &str) -> Result<bool, BadRequest> {
    match value {
        None | Some(Json::Null) => Ok(false),
        Some(Json::Bool(value)) => Ok(*value),
        Some(other) => Err(wrong(param, "true or false", other)),
    }
}

/// Checks that there are turns, each with a role; their content by `check_content`, which is told
/// where it stands.
pub(in crate::dialect) fn check_messages(
    messages: Option<&Json>,
    check_content: impl Fn(Option<&Json>, &dyn Fn() -> String) -> Result<(), BadRequest>,
) -> Result<(), BadRequest> {
    let turns = match messages {
        Some(Json::Array(turns)) => turns,
        Some(other) => return Err(wrong("messages", "an array", other)),
        None => return Err(missing("messages".to_owned())),
    };
    if turns.is_empty() {
        return Err(BadRequest::at("messages", "messages must hold at least one message"));
    }
    for (index, turn) in turns.iter().enumerate() {
        // Made only for an error: every hit comes through here.
        let at = |field: &str| format!("messages[{index}]{field}");
        if !matches!(turn, Json::Object(_)) {
            return Err(wrong(&at(""), "an object", turn));
        }
        check_role(turn, at)?;
        check_content(turn.get("content"), &|| at(".content"))?;
    }
    Ok(())
}

/// Checks that a turn says whose it is; `at` names its fields.
pub(in crate::dialect) fn check_role(turn: &Json, at: impl Fn(&str) -> String) -> Result<(), BadRequest> {
    match turn.get("role") {
        Some(Json::String(_)) => Ok(()),
        Some(other) => Err(wrong(&at(".role"), "a string", other)),
        None => Err(missing(at(".role"))),
    }
}

pub(in crate::dialect) fn missing(param: String) -> BadRequest {
    BadRequest { message: format!("{param} is missing"), param: Some(param) }
}

fn check_content(content: Option<&Json>, at: &dyn Fn() -> String) -> Result<(), BadRequest> {
    let parts = match content {
        None | Some(Json::Null | Json::String(_)) => return Ok(()),
        Some(Json::Array(parts)) => parts,
        Some(other) => return Err(wrong(&at(), "a string or an array of parts", other)),
    };
    for (index, part) in parts.iter().enumerate() {
        let at = || format!("{}[{index}]", at());
        if !matches!(part, Json::Object(_)) {
            return Err(wrong(&at(), "an object", part));
        }
        if is_text(part) && !matches!(part.get("text"), Some(Json::String(_))) {
            return Err(BadRequest::at(
                format!("{}.text", at()),
                format!("{} is a text part: its text must be a string", at()),
            ));
        }
    }
    Ok(())
}

fn is_text(part: &Json) -> bool {
    part.get("type").and_then(Json::as_str) == Some("text")
}

/// Where the model's name stands in a body that was read already.
pub(in crate::dialect) fn model_span(body: &[u8]) -> std::ops::Range<usize> {
    #[derive(Deserialize)]
    struct Top<'a> {
        #[serde(borrow)]
        model: &'a RawValue,
    }
    let Ok(top) = serde_json::from_slice::<Top<'_>>(body) else { return 0..0 };
    let name = top.model.get();
    let start = name.as_ptr() as usize - body.as_ptr() as usize;
    start..start + name.len()
}

/// Scope and question: takes the text out of the last user turn and leaves its place.
fn split(fields: Vec<(String, Json)>) -> (Json, Option<Question>) {
    let mut question = None;
    let scope = fields
        .into_iter()
        .filter(|(name, _)| !NOT_IN_SCOPE.contains(&name.as_str()))
        .map(|(name, mut value)| {
            if name == "messages"
                && let Json::Array(turns) = &mut value
                && let Some(last) = turns.last_mut()
            {
                question = take_question(last);
            }
            (name, value)
        })
        .collect();
    (Json::Object(scope), question)
}

pub(in crate::dialect) fn take_question(turn: &mut Json) -> Option<Question> {
    if turn.get("role").and_then(Json::as_str) != Some("user") {
        return None;
    }
    let Json::Object(fields) = turn else { return None };
    let (_, content) = fields.iter_mut().find(|(name, _)| name == "content")?;
    let question = Question::try_new(match content {
        Json::String(text) => vec![text.clone()],
        Json::Array(parts) => parts
            .iter()
            .filter(|part| is_text(part))
            .filter_map(|part| part.get("text")?.as_str())
            .map(str::to_owned)
            .collect(),
        _ => return None,
    })?;
    match content {
        Json::Array(parts) => parts.iter_mut().filter(|part| is_text(part)).for_each(|part| {
            if let Json::Object(fields) = part {
                fields.iter_mut().filter(|(name, _)| name == "text").for_each(|(_, text)| *text = Json::Null);
            }
        }),
        content => *content = Json::Null,
    }
    Some(question)
}

#[cfg(test)]
mod tests;

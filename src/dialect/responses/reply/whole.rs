//! An answer in one piece.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::items::{self, COMPLETED, INCOMPLETE};
use super::{Echo, ReplyFault, Stamp, echo, usage};
use crate::chat::{ChatReply, Extra, Finish};

/// Reads a whole response. `Ok(None)` when it is an answer, but not one that can be repeated
/// faithfully: see [the module](super). It is passed on and never stored.
///
/// An error inside a success, or a response that failed, is [`ReplyFault::Reported`]; a body without
/// output, or that is no JSON object, is [`ReplyFault::Malformed`].
pub fn parse_whole(body: &[u8]) -> Result<Option<ChatReply>, ReplyFault> {
    let response = serde_json::from_slice(body)
        .map_err(|error| ReplyFault::Malformed(format!("not a response: {error}")))?;
    read(response)
}

/// Reads a response, as [`parse_whole`] does.
pub(super) fn read(mut response: Map<String, Value>) -> Result<Option<ChatReply>, ReplyFault> {
    let mut take = |name: &str| response.remove(name).unwrap_or_default();
    let status = take("status");
    let named_error = take("object") == "error" || take("type") == "error";
    if named_error || !take("error").is_null() || status == "failed" || status == "cancelled" {
        return Err(ReplyFault::Reported);
    }
    let Value::Array(output) = take("output") else {
        return Err(ReplyFault::Malformed("no output in it".to_owned()));
    };
    let content = items::read(&output);
    let reason = take("incomplete_details");
    let finish = match status.as_str() {
        Some(COMPLETED) if content.message.contains_key("tool_calls") => Some(Finish::ToolCalls),
        Some(COMPLETED) => Some(Finish::Stop),
        Some(INCOMPLETE) => reason["reason"].as_str().map(Finish::from_incomplete_reason),
        _ => None,
    };
    let Some(finish) = finish.filter(|finish| *finish != Finish::Other(String::new())) else {
        return Ok(None);
    };
    let model = take("model").as_str().unwrap_or_default().to_owned();
    let raw_usage = take("usage");
    // It continues what is kept at one provider; to another caller it is another answer.
    let continues = ["conversation", "previous_response_id"].iter().any(|name| !take(name).is_null());
    let plain = content.plain && !continues;
    let mut beside = response;
    // The last is written by some SDKs, and is the text once more.
    beside.retain(|name, _| {
        !(echo::is_echoed(name)
            || matches!(name.as_str(), "id" | "created_at" | "completed_at" | "output_text"))
    });
    let usage = usage::take(raw_usage, &mut beside);
    let extra = Extra { reply: beside, message: content.message, ..Extra::default() };
    Ok(plain.then_some(ChatReply { model, text: content.text, finish, usage, extra }))
}

/// Writes a whole response. A reply of another dialect's is written in this one's terms, and what it
/// holds beside them stands beside `output`; what says nothing (`null`, an empty list) is left out.
pub fn render_whole(reply: &ChatReply, stamp: &Stamp<'_>, echo: &Echo) -> Bytes {
    let end = End {
        finish: Some(&reply.finish),
        output: items::write(reply, stamp.id),
        usage: usage::view(reply, stamp.cached),
        beside: beside(reply),
    };
    Envelope::new(stamp, echo.clone()).ended(&reply.model, end).to_string().into()
}

/// The fields of a reply that a response has no place of their own for.
pub(super) fn beside(reply: &ChatReply) -> Map<String, Value> {
    let says = |value: &Value| !(value.is_null() || value.as_array().is_some_and(Vec::is_empty));
    let Extra { reply, choice, message } = &reply.extra;
    let mut beside = reply.clone();
    beside.remove(usage::KEY);
    let message = message.iter().filter(|(name, _)| !items::is_written(name));
    for (name, value) in choice.iter().chain(message).filter(|(_, value)| says(value)) {
        beside.entry(name).or_insert_with(|| value.clone());
    }
    beside
}

/// What every state of one response has in common.
#[derive(Debug)]
pub(super) struct Envelope {
    pub(super) id: String,
    created: u64,
    echo: Echo,
}

/// What a response says at its end.
pub(super) struct End<'a> {
    /// `None` when nobody said why it ended.
    pub(super) finish: Option<&'a Finish>,
    pub(super) output: Vec<Value>,
    pub(super) usage: Value,
    pub(super) beside: Map<String, Value>,
}

impl Envelope {
    pub(super) fn new(stamp: &Stamp<'_>, echo: Echo) -> Self {
        Self { id: stamp.id.to_owned(), created: stamp.created, echo }
    }

    /// The response before it says anything.
    pub(super) fn begun(&self, model: &str) -> Value {
        self.write(model, items::IN_PROGRESS, Value::Null, Vec::new(), Value::Null).into()
    }

    /// The response when all is said.
    pub(super) fn ended(&self, model: &str, end: End<'_>) -> Value {
        let cut = match end.finish {
            Some(finish) => finish.as_incomplete_reason().map(|reason| json!({ "reason": reason })),
            None => Some(json!({ "reason": null })),
        };
        let status = if cut.is_some() { INCOMPLETE } else { COMPLETED };
        let mut response = self.write(model, status, cut.into(), end.output, end.usage);
        for (name, value) in end.beside {
            // What stands there already means something else.
            response.entry(name).or_insert(value);
        }
        response.into()
    }

    fn write(
        &self,
        model: &str,
        status: &str,
        incomplete_details: Value,
        output: Vec<Value>,
        usage: Value,
    ) -> Map<String, Value> {
        let mut response = Map::new();
        for (name, value) in [
            ("id", json!(self.id)),
            ("object", json!("response")),
            ("created_at", json!(self.created)),
            ("status", json!(status)),
            ("error", Value::Null),
            ("incomplete_details", incomplete_details),
            ("model", json!(model)),
            ("output", output.into()),
            (usage::KEY, usage),
        ] {
            response.insert(name.to_owned(), value);
        }
        response.extend(self.echo.fields().clone());
        response
    }
}

//! Content blocks, and the fields of OpenAI's message that they are kept as.

use serde_json::{Map, Value, json};

use crate::chat::ChatReply;

/// What blocks say.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// All text.
    pub(super) text: String,
    /// `reasoning_content` and `tool_calls`, as OpenAI's message has them.
    pub(super) message: Map<String, Value>,
    /// It is no more than one block of text, and nothing of it is lost.
    pub(super) plain: bool,
    /// The first block that could not be read, or not whole.
    pub(super) lost: Option<usize>,
}

/// Reads blocks. Texts are joined, so are thoughts; a thought's signature and what was redacted
/// stay behind: they prove something to Anthropic, and nobody else can read them.
pub(super) fn read(blocks: &[Value]) -> Content {
    let mut content = Content::default();
    let mut thoughts = String::new();
    let mut calls = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let word = |name: &str| block[name].as_str();
        let whole = match word("type") {
            Some("text") => {
                content.text += word("text").unwrap_or_default();
                word("text").is_some() && is_uncited(block)
            }
            Some("thinking") => {
                thoughts += word("thinking").unwrap_or_default();
                true
            }
            Some("redacted_thinking") => true,
            Some("tool_use") => {
                let arguments = match &block["input"] {
                    Value::String(odd) => odd.clone(),
                    input => input.to_string(),
                };
                let function = json!({ "name": block["name"], "arguments": arguments });
                calls.push(json!({ "id": block["id"], "type": "function", "function": function }));
                word("id").is_some() && word("name").is_some()
            }
            _ => false,
        };
        if !whole {
            content.lost.get_or_insert(index);
        }
    }
    content.plain = match blocks {
        [] => true,
        // An empty text is written as no block.
        [only] => only["type"] == "text" && content.lost.is_none() && !content.text.is_empty(),
        _ => false,
    };
    for (name, value, is_empty) in [
        ("reasoning_content", json!(thoughts), thoughts.is_empty()),
        ("tool_calls", json!(calls), calls.is_empty()),
    ] {
        if !is_empty {
            content.message.insert(name.to_owned(), value);
        }
    }
    content
}

/// A text block that holds nothing but its text.
fn is_uncited(block: &Value) -> bool {
    block.as_object().into_iter().flatten().all(|(name, value)| match name.as_str() {
        "type" | "text" => true,
        // `null` and an empty list both say that there are none.
        "citations" => value.is_null() || value.as_array().is_some_and(Vec::is_empty),
        _ => value.is_null(),
    })
}

/// The blocks of a reply: thoughts without a signature, text, then tool calls. A refusal that
/// OpenAI keeps apart from the content is text here, where the stop reason says what it is.
pub(super) fn write(reply: &ChatReply, message_id: &str) -> Vec<Value> {
    let said = |name: &str| said(reply, name);
    let mut blocks = Vec::new();
    let thoughts =
        Some(said("reasoning_content")).filter(|text| !text.is_empty()).unwrap_or(said("reasoning"));
    if !thoughts.is_empty() {
        blocks.push(json!({ "type": "thinking", "thinking": thoughts, "signature": "" }));
    }
    for text in [reply.text.as_str(), said("refusal")] {
        if !text.is_empty() {
            blocks.push(json!({ "type": "text", "text": text }));
        }
    }
    let calls = reply.extra.message.get("tool_calls").and_then(Value::as_array);
    for (place, call) in calls.into_iter().flatten().enumerate() {
        // Some send none, and the result has to name its call.
        let id = call["id"].as_str().filter(|id| !id.is_empty());
        let id = id.map_or_else(|| call_id(message_id, place as u64), str::to_owned);
        let function = &call["function"];
        let input = tool_input(function["arguments"].as_str().unwrap_or_default());
        blocks.push(json!({ "type": "tool_use", "id": id, "name": function["name"], "input": input }));
    }
    blocks
}

/// The id of a call that came without one.
pub(in crate::dialect) fn call_id(message_id: &str, place: u64) -> String {
    format!("toolu_{message_id}_{place}")
}

/// The model would not answer, and said so in OpenAI's field for it.
pub(super) fn is_refusal(reply: &ChatReply) -> bool {
    !said(reply, "refusal").is_empty()
}

/// It calls tools.
pub(super) fn has_calls(reply: &ChatReply) -> bool {
    let calls = reply.extra.message.get("tool_calls").and_then(Value::as_array);
    calls.is_some_and(|calls| !calls.is_empty())
}

fn said<'a>(reply: &'a ChatReply, name: &str) -> &'a str {
    reply.extra.message.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Fields of OpenAI's message that [`write()`] makes blocks of.
pub(super) fn is_written(name: &str) -> bool {
    matches!(name, "reasoning_content" | "reasoning" | "refusal" | "tool_calls")
}

/// The arguments of a call as Anthropic's `input`. A model's arguments may be no JSON object; then
/// they stay the string they are, for whoever wants to make something of it.
fn tool_input(arguments: &str) -> Value {
    if arguments.trim().is_empty() {
        return json!({});
    }
    match serde_json::from_str(arguments) {
        Ok(input @ Value::Object(_)) => input,
        _ => arguments.into(),
    }
}

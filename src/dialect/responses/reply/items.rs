//! Output items, and the fields of a chat completion's message that they are kept as.

use serde_json::{Map, Value, json};

use crate::chat::ChatReply;

/// What items say.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// All text.
    pub(super) text: String,
    /// `reasoning_content`, `refusal`, `phase` and `tool_calls`, as a message has them.
    pub(super) message: Map<String, Value>,
    /// [`write()`] gives the same items.
    pub(super) plain: bool,
}

/// The order in which [`write()`] gives items; thoughts and the message come at most once.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Place {
    Begin,
    Thoughts,
    Message,
    Calls,
}

/// Reads items. Thoughts without a readable text are passed over: they prove something to their
/// provider, and nobody else can read them.
pub(super) fn read(items: &[Value]) -> Content {
    let mut content = Content { plain: true, ..Content::default() };
    let mut place = Place::Begin;
    for item in items {
        let (next, whole) = match item["type"].as_str() {
            Some("reasoning") => match content.read_thoughts(item) {
                Some(whole) => (Place::Thoughts, whole),
                None => continue,
            },
            Some("message") => (Place::Message, content.read_message(item)),
            Some("function_call") => (Place::Calls, content.read_call(item)),
            _ => (place, false),
        };
        content.plain &= whole && (place < next || next == Place::Calls && place == next);
        place = next;
    }
    content
}

impl Content {
    /// Whether the thoughts are there in full; `None` when there is nothing to read.
    fn read_thoughts(&mut self, item: &Value) -> Option<bool> {
        let parts = |name: &str| item[name].as_array().into_iter().flatten();
        let mut thoughts = String::new();
        for part in parts("content") {
            thoughts += part["text"].as_str().unwrap_or_default();
        }
        let summarised = parts("summary").next().is_some();
        if thoughts.is_empty() {
            return summarised.then_some(false);
        }
        self.message.insert("reasoning_content".to_owned(), thoughts.into());
        Some(!summarised && parts("content").count() == 1)
    }

    /// Whether the message is there in full.
    fn read_message(&mut self, item: &Value) -> bool {
        let parts: Vec<_> = item["content"].as_array().into_iter().flatten().collect();
        let mut refusals = 0;
        for part in &parts {
            match part["type"].as_str() {
                Some("refusal") => {
                    refusals += 1;
                    self.message.insert("refusal".to_owned(), part["refusal"].clone());
                }
                _ => self.text += part["text"].as_str().unwrap_or_default(),
            }
        }
        if let Some(phase) = item["phase"].as_str() {
            self.message.insert("phase".to_owned(), phase.into());
        }
        let whole = match parts[..] {
            [text] => is_text(text) || is_refusal(text),
            [text, refusal] => is_text(text) && is_refusal(refusal),
            _ => false,
        };
        whole && refusals < 2 && item["role"] == "assistant"
    }

    /// Whether the call is there in full.
    fn read_call(&mut self, item: &Value) -> bool {
        let function = json!({ "name": item["name"], "arguments": item["arguments"] });
        let call = json!({ "id": item["call_id"], "type": "function", "function": function });
        match self.message.get_mut("tool_calls").and_then(Value::as_array_mut) {
            Some(calls) => calls.push(call),
            None => drop(self.message.insert("tool_calls".to_owned(), json!([call]))),
        }
        let texts = ["call_id", "name", "arguments"].iter().all(|name| item[name].is_string());
        texts
            && item["call_id"] != ""
            && item.as_object().into_iter().flatten().all(|(name, value)| match name.as_str() {
                "type" | "id" | "call_id" | "name" | "arguments" | "status" => true,
                "caller" => *value == json!({ "type": "direct" }) || value.is_null(),
                "async" => *value == false || value.is_null(),
                _ => value.is_null(),
            })
    }
}

/// A text that is not empty (such a one is not written), without citations and probabilities.
fn is_text(part: &Value) -> bool {
    let none = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    part["type"] == "output_text"
        && part["text"].as_str().is_some_and(|text| !text.is_empty())
        && none(&part["annotations"])
        && none(&part["logprobs"])
}

fn is_refusal(part: &Value) -> bool {
    part["type"] == "refusal" && part["refusal"].as_str().is_some_and(|text| !text.is_empty())
}

/// A call of a reply.
pub(super) struct Call<'a> {
    pub(super) id: String,
    pub(super) name: &'a str,
    pub(super) arguments: &'a str,
}

/// What a reply says, in the order of its items.
pub(super) struct Parts<'a> {
    pub(super) thoughts: &'a str,
    pub(super) text: &'a str,
    pub(super) refusal: &'a str,
    pub(super) phase: Option<&'a str>,
    pub(super) calls: Vec<Call<'a>>,
}

impl<'a> Parts<'a> {
    pub(super) fn of(reply: &'a ChatReply, response_id: &str) -> Self {
        let said = |name: &str| reply.extra.message.get(name).and_then(Value::as_str).unwrap_or_default();
        let thoughts = said("reasoning_content");
        let calls = reply.extra.message.get("tool_calls").and_then(Value::as_array);
        let calls = calls.into_iter().flatten().enumerate().map(|(place, call)| {
            let text = |value: &'a Value| value.as_str().unwrap_or_default();
            // Some send none, and the result has to name its call.
            let id = match text(&call["id"]) {
                "" => call_id(response_id, place as u64),
                id => id.to_owned(),
            };
            let function = &call["function"];
            Call { id, name: text(&function["name"]), arguments: text(&function["arguments"]) }
        });
        Self {
            thoughts: if thoughts.is_empty() { said("reasoning") } else { thoughts },
            text: &reply.text,
            refusal: said("refusal"),
            phase: Some(said("phase")).filter(|phase| !phase.is_empty()),
            calls: calls.collect(),
        }
    }
}

/// The items of a reply: thoughts, a message, then calls. The last one is incomplete where the
/// answer is.
pub(super) fn write(reply: &ChatReply, response_id: &str) -> Vec<Value> {
    let Parts { thoughts, text, refusal, phase, calls } = Parts::of(reply, response_id);
    let mut items = Vec::new();
    if !thoughts.is_empty() {
        items.push(reasoning(&item_id("rs", response_id, 0), &[reasoning_text(thoughts)], COMPLETED));
    }
    let mut parts = Vec::new();
    parts.extend(Some(text).filter(|text| !text.is_empty()).map(output_text));
    parts.extend(Some(refusal).filter(|text| !text.is_empty()).map(refusal_part));
    if !parts.is_empty() {
        items.push(message(&item_id("msg", response_id, items.len()), &parts, phase, COMPLETED));
    }
    for Call { id, name, arguments } in calls {
        let item = item_id("fc", response_id, items.len());
        items.push(function_call(&item, &id, name, arguments, COMPLETED));
    }
    if let Some(last) = items.last_mut()
        && reply.finish.as_incomplete_reason().is_some()
    {
        last["status"] = INCOMPLETE.into();
    }
    items
}

/// Fields of a chat completion's message that [`write()`] makes items of.
pub(super) fn is_written(name: &str) -> bool {
    matches!(name, "reasoning_content" | "reasoning" | "refusal" | "phase" | "tool_calls")
}

pub(super) const COMPLETED: &str = "completed";
pub(super) const INCOMPLETE: &str = "incomplete";
pub(super) const IN_PROGRESS: &str = "in_progress";

/// The id of an item by its place: the same in every event of a stream.
pub(super) fn item_id(prefix: &str, response_id: &str, place: usize) -> String {
    format!("{prefix}_{}_{place}", bare(response_id))
}

/// The id of a call that came without one.
pub(in crate::dialect) fn call_id(response_id: &str, place: u64) -> String {
    format!("call_{}_{place}", bare(response_id))
}

fn bare(response_id: &str) -> &str {
    response_id.strip_prefix("resp_").unwrap_or(response_id)
}

pub(super) fn reasoning(id: &str, content: &[Value], status: &str) -> Value {
    json!({ "id": id, "type": "reasoning", "status": status, "summary": [], "content": content })
}

pub(super) fn message(id: &str, content: &[Value], phase: Option<&str>, status: &str) -> Value {
    let mut item =
        json!({ "id": id, "type": "message", "status": status, "role": "assistant", "content": content });
    if let Some(phase) = phase {
        item["phase"] = phase.into();
    }
    item
}

pub(super) fn function_call(id: &str, call_id: &str, name: &str, arguments: &str, status: &str) -> Value {
    json!({
        "id": id, "type": "function_call", "status": status, "call_id": call_id, "name": name,
        "arguments": arguments,
    })
}

pub(super) fn output_text(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

pub(super) fn refusal_part(refusal: &str) -> Value {
    json!({ "type": "refusal", "refusal": refusal })
}

pub(super) fn reasoning_text(text: &str) -> Value {
    json!({ "type": "reasoning_text", "text": text })
}

//! A streamed answer, put together from its events.
//!
//! The rule is that of the official SDKs (openai-python's `accumulate_delta`): strings grow,
//! lists grow or merge by `index`, objects merge field by field. It is followed for the fields
//! that are known to come in parts; an unknown field that says two different things in one
//! stream leaves a doubt, and then there is no reply to store.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::{ReplyFault, reports_error, usage};
use crate::chat::{ChatReply, EventKind, Extra, Finish, Usage};

/// Fields whose string value comes in parts, wherever they stand in a message.
const GROWING: [&str; 11] = [
    "arguments",
    "data",
    "input",
    "reasoning",
    "reasoning_content",
    "refusal",
    "signature",
    "summary",
    "text",
    "thinking",
    "transcript",
];

/// Fields of a delta that a caller waits for.
const CONTENT: [&str; 8] = [
    "audio",
    "content",
    "function_call",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "refusal",
    "tool_calls",
];

/// List entries that merge by `index`. Beyond it lies no answer, only an attack on the search.
const MAX_INDEXED: usize = 1024;

#[derive(Deserialize)]
struct Chunk {
    #[serde(default, rename = "id")]
    _id: IgnoredAny,
    #[serde(default, rename = "created")]
    _created: IgnoredAny,
    // Random padding against observers of the line's length; no part of the answer.
    #[serde(default, rename = "obfuscation")]
    _obfuscation: IgnoredAny,
    object: Option<Value>,
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Value>,
    error: Option<Value>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Deserialize)]
struct Choice {
    index: Option<u64>,
    delta: Option<Map<String, Value>>,
    finish_reason: Option<String>,
    error: Option<Value>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// Puts the events of one stream together.
///
/// What counts as complete, decided at [`Assembler::finish`] and by its callers:
/// - `[DONE]` after a finish reason: complete, and may be stored.
/// - `[DONE]` without one, or the end of the connection after one: the caller has got all there
///   is, so it is no error; but one of the two proofs is missing, so it is never stored.
/// - The end of the connection without either: cut.
#[derive(Debug, Default)]
pub struct Assembler {
    model: String,
    text: String,
    finish: Option<Finish>,
    usage: Option<Usage>,
    extra: Extra,
    /// A choice was seen.
    begun: bool,
    /// The stream is more than one plain answer, or says what cannot be put together.
    doubtful: bool,
}

impl Assembler {
    /// Takes the data of one event, other than the terminal, and says what it carries.
    ///
    /// An error object is [`ReplyFault::Reported`]; anything but a JSON object is
    /// [`ReplyFault::Malformed`]. After a fault the assembler is of no more use.
    pub fn push(&mut self, data: &[u8]) -> Result<EventKind, ReplyFault> {
        let chunk: Chunk = serde_json::from_slice(data)?;
        if reports_error(chunk.error.as_ref(), chunk.object.as_ref()) {
            return Err(ReplyFault::Reported);
        }
        let choices = chunk.choices.unwrap_or_default();
        let usage = chunk.usage.filter(|usage| !usage.is_null());
        let mut kind =
            if choices.is_empty() && usage.is_some() { EventKind::Usage } else { EventKind::Other };
        if let Some(model) = chunk.model.filter(|_| self.model.is_empty()) {
            self.model = model;
        }
        if let Some(usage) = usage {
            self.extra.reply.remove(usage::KEY);
            self.usage = usage::read(usage, &mut self.extra.reply);
        }
        latest(&mut self.extra.reply, chunk.extra);
        for choice in choices {
            if reports_error(choice.error.as_ref(), None) || choice.finish_reason.as_deref() == Some("error")
            {
                return Err(ReplyFault::Reported);
            }
            if choice.delta.as_ref().is_some_and(is_content) {
                kind = EventKind::Content;
            }
            self.push_choice(choice);
        }
        Ok(kind)
    }

    fn push_choice(&mut self, choice: Choice) {
        self.begun = true;
        if choice.index.unwrap_or(0) != 0 {
            self.doubtful = true;
            return;
        }
        for (name, value) in choice.delta.unwrap_or_default() {
            let understood = match (name.as_str(), value) {
                ("content", Value::String(part)) => {
                    self.text.push_str(&part);
                    true
                }
                ("role", Value::String(role)) => role.is_empty() || role == "assistant",
                ("content" | "role", value) => value.is_null(),
                (_, value) => merge_field(&mut self.extra.message, name, value),
            };
            self.doubtful |= !understood;
        }
        let mut extra = choice.extra;
        if let Some(logprobs) = extra.remove("logprobs") {
            self.doubtful |= !merge_field(&mut self.extra.choice, "logprobs".to_owned(), logprobs);
        }
        latest(&mut self.extra.choice, extra);
        // Some providers send an empty string where others send null.
        if let Some(word) = choice.finish_reason.filter(|word| !word.is_empty()) {
            self.finish = Some(Finish::from_wire(&word));
        }
    }

    /// A choice was seen: what has come so far is the beginning of an answer.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// A finish reason was seen: the text is complete, though usage and terminal may follow.
    pub fn has_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// What it cost, as far as it was told.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// The whole answer, once the terminal was seen; `None` when there is a doubt about it, as
    /// in [`parse_whole`](super::parse_whole).
    pub fn finish(mut self) -> Option<ChatReply> {
        let finish = self.finish.filter(|_| !self.doubtful)?;
        // Its place in the list says which call it is; only deltas need the number.
        if let Some(Value::Array(calls)) = self.extra.message.get_mut("tool_calls") {
            for call in calls.iter_mut().filter_map(Value::as_object_mut) {
                call.remove("index");
            }
        }
        let Self { model, text, usage, extra, .. } = self;
        Some(ChatReply { model, text, finish, usage, extra })
    }
}

/// Whether a string under this name may come in several deltas.
pub(super) fn grows(name: &str) -> bool {
    GROWING.contains(&name)
}

fn is_content(delta: &Map<String, Value>) -> bool {
    CONTENT.iter().filter_map(|name| delta.get(*name)).any(|value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => false,
    })
}

/// Fields that every chunk repeats: the last one that says something stands.
fn latest(fields: &mut Map<String, Value>, newer: Map<String, Value>) {
    for (name, value) in newer {
        if !value.is_null() || !fields.contains_key(&name) {
            fields.insert(name, value);
        }
    }
}

/// Adds a delta's field; false when the two cannot both be true.
fn merge_field(fields: &mut Map<String, Value>, name: String, delta: Value) -> bool {
    match fields.get_mut(&name) {
        Some(whole) if !whole.is_null() => merge(&name, whole, delta),
        _ => {
            // An empty list first, so that entries with an index find their place in it.
            let Value::Array(items) = delta else {
                fields.insert(name, delta);
                return true;
            };
            let mut whole = Value::Array(Vec::new());
            let understood = merge(&name, &mut whole, Value::Array(items));
            fields.insert(name, whole);
            understood
        }
    }
}

fn merge(name: &str, whole: &mut Value, delta: Value) -> bool {
    match (whole, delta) {
        (_, Value::Null) => true,
        (Value::String(text), Value::String(part)) if grows(name) => {
            text.push_str(&part);
            true
        }
        // Names and ids come once; some providers repeat them, or send them empty.
        (Value::String(text), Value::String(other)) => {
            if text.is_empty() {
                *text = other;
                return true;
            }
            other.is_empty() || *text == other
        }
        (Value::Array(whole), Value::Array(delta)) => delta.into_iter().all(|item| merge_item(whole, item)),
        (Value::Object(whole), Value::Object(delta)) => {
            delta.into_iter().all(|(name, value)| merge_field(whole, name, value))
        }
        (whole, delta) => *whole == delta,
    }
}

fn merge_item(whole: &mut Vec<Value>, item: Value) -> bool {
    let index = |item: &Value| item.get("index").and_then(Value::as_u64);
    let Some(wanted) = index(&item) else {
        whole.push(item);
        return true;
    };
    if whole.len() > MAX_INDEXED {
        return false;
    }
    if let Some(entry) = whole.iter_mut().rev().find(|entry| index(entry) == Some(wanted)) {
        return merge("", entry, item);
    }
    whole.push(item);
    true
}

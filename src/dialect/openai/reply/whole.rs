//! An answer in one piece.

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ReplyFault, Stamp, reports_error, usage, write};
use crate::chat::{ChatReply, Extra, Finish};

#[derive(Deserialize)]
struct Completion {
    #[serde(default, rename = "id")]
    _id: IgnoredAny,
    #[serde(default, rename = "created")]
    _created: IgnoredAny,
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
    message: Option<Message>,
    finish_reason: Option<String>,
    error: Option<Value>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Deserialize)]
struct Message {
    role: Option<String>,
    content: Option<Value>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// Reads a whole completion. `Ok(None)` when it is an answer, but not one that can be repeated
/// faithfully: several choices, no finish reason, content that is no text. It is passed on and
/// never stored.
///
/// An error object inside a success is [`ReplyFault::Reported`]; a body that holds no choice at
/// all, or is no JSON, is [`ReplyFault::Malformed`].
pub fn parse_whole(body: &[u8]) -> Result<Option<ChatReply>, ReplyFault> {
    let completion: Completion = serde_json::from_slice(body)?;
    if reports_error(completion.error.as_ref(), completion.object.as_ref()) {
        return Err(ReplyFault::Reported);
    }
    let mut choices = completion.choices.unwrap_or_default();
    if choices.iter().any(|choice| {
        reports_error(choice.error.as_ref(), None) || choice.finish_reason.as_deref() == Some("error")
    }) {
        return Err(ReplyFault::Reported);
    }
    let Some(choice) = choices.pop() else {
        return Err(ReplyFault::Malformed("no choice in it".to_owned()));
    };
    let mut extra = Extra { reply: completion.extra, choice: choice.extra, ..Extra::default() };
    let usage = usage::read(completion.usage.unwrap_or_default(), &mut extra.reply);
    let (Some(message), Some(finish), true, 0) =
        (choice.message, choice.finish_reason, choices.is_empty(), choice.index.unwrap_or(0))
    else {
        return Ok(None);
    };
    extra.message = message.extra;
    let text = match message.content {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(_) => return Ok(None),
    };
    if message.role.is_some_and(|role| role != "assistant") || finish.is_empty() {
        return Ok(None);
    }
    let model = completion.model.unwrap_or_default();
    Ok(Some(ChatReply { model, text, finish: Finish::from_wire(&finish), usage, extra }))
}

/// Writes a whole completion: every field as it was, but for what `stamp` says.
pub fn render_whole(reply: &ChatReply, stamp: &Stamp<'_>) -> Bytes {
    // Escapes and the frame around the text; a larger answer costs one reallocation.
    let mut body = Vec::with_capacity(512 + reply.text.len() + reply.text.len() / 8);
    write(&mut body, &CompletionView { reply, stamp });
    body.into()
}

struct CompletionView<'a> {
    reply: &'a ChatReply,
    stamp: &'a Stamp<'a>,
}

struct ChoicesView<'a>(&'a ChatReply);

struct ChoiceView<'a>(&'a ChatReply);

struct MessageView<'a>(&'a ChatReply);

impl Serialize for CompletionView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { reply, stamp } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", stamp.id)?;
        map.serialize_entry("object", "chat.completion")?;
        map.serialize_entry("created", &stamp.created)?;
        map.serialize_entry("model", &reply.model)?;
        map.serialize_entry("choices", &ChoicesView(reply))?;
        if let Some(usage) = usage::View::of(reply, stamp.cached) {
            map.serialize_entry(usage::KEY, &usage)?;
        }
        for (name, value) in reply.extra.reply.iter().filter(|(name, _)| *name != usage::KEY) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Serialize for ChoicesView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(1))?;
        seq.serialize_element(&ChoiceView(self.0))?;
        seq.end()
    }
}

impl Serialize for ChoiceView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("index", &0)?;
        map.serialize_entry("message", &MessageView(self.0))?;
        for (name, value) in &self.0.extra.choice {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("finish_reason", self.0.finish.as_wire())?;
        map.end()
    }
}

impl Serialize for MessageView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", "assistant")?;
        // Null is what stands beside tool calls and refusals.
        map.serialize_entry("content", &(!self.0.text.is_empty()).then_some(&self.0.text))?;
        for (name, value) in &self.0.extra.message {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

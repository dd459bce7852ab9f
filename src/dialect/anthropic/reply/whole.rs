//! An answer in one piece.

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ReplyFault, Stamp, blocks, calling, malformed, refused, reports_error, usage, write};
use crate::chat::{ChatReply, Extra, Finish};

#[derive(Deserialize)]
struct Message {
    #[serde(default, rename = "id")]
    _id: IgnoredAny,
    r#type: Option<String>,
    role: Option<String>,
    model: Option<String>,
    content: Option<Vec<Value>>,
    stop_reason: Option<String>,
    stop_sequence: Option<String>,
    usage: Option<Value>,
    error: Option<Value>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// An answer, whether it may be stored or not.
pub(in crate::dialect) struct Reading {
    /// What it says.
    pub(in crate::dialect) reply: ChatReply,
    /// [`render_whole`] gives it back as it was.
    pub(in crate::dialect) faithful: bool,
    /// The first content block that is not in `reply`, or not whole.
    pub(in crate::dialect) lost: Option<usize>,
}

/// Reads a whole message. `Ok(None)` when it is an answer, but not one that can be repeated
/// faithfully: anything but one block of plain text, no stop reason, a container. It is passed on
/// and never stored.
///
/// An error object inside a success is [`ReplyFault::Reported`]; a body without content, or that
/// is no JSON, is [`ReplyFault::Malformed`].
pub fn parse_whole(body: &[u8]) -> Result<Option<ChatReply>, ReplyFault> {
    let Reading { reply, faithful, .. } = read(body)?;
    Ok(faithful.then_some(reply))
}

/// Reads a whole message, as far as the canonical form holds it.
pub(in crate::dialect) fn read(body: &[u8]) -> Result<Reading, ReplyFault> {
    let message: Message = serde_json::from_slice(body).map_err(|error| malformed(&error))?;
    if reports_error(message.r#type.as_deref(), message.error.as_ref()) {
        return Err(ReplyFault::Reported);
    }
    let Some(content) = message.content else {
        return Err(ReplyFault::Malformed("no content in it".to_owned()));
    };
    let content = blocks::read(&content);
    let word = message.stop_reason.unwrap_or_default();
    let told = message.usage.clone().unwrap_or_default();
    let plain = content.plain
        && message.r#type.is_none_or(|kind| kind == "message")
        && message.role.is_none_or(|role| role == "assistant")
        && is_repeatable(&message.extra);
    let mut extra = Extra { reply: message.extra, message: content.message, ..Extra::default() };
    let usage = usage::take(message.usage.unwrap_or_default(), &mut extra.reply);
    if let Some(sequence) = message.stop_sequence {
        extra.choice.insert("stop_sequence".to_owned(), sequence.into());
    }
    let finish = Finish::from_stop_reason(&word);
    let reply =
        ChatReply { model: message.model.unwrap_or_default(), text: content.text, finish, usage, extra };
    let faithful = plain && ends_as(&reply, &word, &told);
    Ok(Reading { reply, faithful, lost: content.lost })
}

/// Whether what stood beside the known fields may be given again. A container lives on at Anthropic,
/// and not for as long as an answer; the other names are those of fields that rendering writes
/// itself, here or for OpenAI's callers.
pub(super) fn is_repeatable(beside: &Map<String, Value>) -> bool {
    const WRITTEN: [&str; 10] =
        ["choices", "content", "created", "error", "id", "model", "object", "role", "type", usage::KEY];
    beside.get("container").is_none_or(Value::is_null)
        && !WRITTEN.iter().any(|name| beside.contains_key(*name))
}

/// Whether rendering gives this stop reason and these counts again. The canonical form has fewer
/// words than providers may think of: `stop_sequence` without a sequence, OpenAI's details among
/// Anthropic's counts. Without counts there is nothing to compare; a message has to have some.
pub(super) fn ends_as(reply: &ChatReply, word: &str, usage: &Value) -> bool {
    let is_told = |usage: &Value| !(usage.is_null() || usage.as_object().is_some_and(Map::is_empty));
    !word.is_empty() && stop_reason(reply) == word && (!is_told(usage) || usage::view(reply, false) == *usage)
}

/// Writes a whole message: every field as it was, but for what `stamp` says (a message has no
/// time). A reply of another dialect's is written in Anthropic's terms, and what it holds beside
/// them stands beside `content`; what says nothing (`null`, an empty list) is left out.
pub fn render_whole(reply: &ChatReply, stamp: &Stamp<'_>) -> Bytes {
    let view = MessageView { reply, stamp, content: &blocks::write(reply, stamp.id), ended: true };
    write(&view)
}

/// A message, or its beginning: without an end it has no stop reason, and its usage is only the
/// prompt's.
pub(super) struct MessageView<'a> {
    pub(super) reply: &'a ChatReply,
    pub(super) stamp: &'a Stamp<'a>,
    pub(super) content: &'a [Value],
    pub(super) ended: bool,
}

impl Serialize for MessageView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { reply, stamp, content, ended } = self;
        let mut usage = usage::view(reply, stamp.cached);
        if !ended && let Some(count) = usage.get_mut("output_tokens") {
            *count = 0.into();
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", stamp.id)?;
        map.serialize_entry("type", "message")?;
        map.serialize_entry("role", "assistant")?;
        map.serialize_entry("model", &reply.model)?;
        map.serialize_entry("content", content)?;
        map.serialize_entry("stop_reason", &ended.then(|| stop_reason(reply)))?;
        map.serialize_entry("stop_sequence", &stop_sequence(reply).filter(|_| *ended))?;
        for (name, value) in beside(reply).filter(|(name, _)| *ended || !comes_last(name)) {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("usage", &usage)?;
        map.end()
    }
}

pub(super) fn stop_reason(reply: &ChatReply) -> String {
    let at_sequence = stop_sequence(reply).is_some_and(|sequence| !sequence.is_null());
    let finish = refused(reply.finish.clone(), blocks::is_refusal(reply));
    calling(finish, !at_sequence && blocks::has_calls(reply)).as_stop_reason(at_sequence).to_owned()
}

pub(super) fn stop_sequence(reply: &ChatReply) -> Option<&Value> {
    reply.extra.choice.get("stop_sequence")
}

/// What is known of an answer only at its end, and so stands there in a stream.
pub(super) fn comes_last(name: &str) -> bool {
    matches!(name, "container" | "stop_details")
}

/// The fields of a reply that a message has no place of their own for.
pub(super) fn beside(reply: &ChatReply) -> impl Iterator<Item = (&String, &Value)> {
    const OWN: [&str; 8] =
        ["id", "type", "role", "model", "content", "stop_reason", "stop_sequence", usage::KEY];
    let says = |value: &Value| !(value.is_null() || value.as_array().is_some_and(Vec::is_empty));
    let Extra { reply, choice, message } = &reply.extra;
    let kept = reply.iter().filter(|(name, _)| *name != "error");
    let choice = choice.iter().filter(move |(name, value)| !reply.contains_key(*name) && says(value));
    let message = message
        .iter()
        .filter(move |(name, value)| !(reply.contains_key(*name) || blocks::is_written(name)) && says(value));
    kept.chain(choice).chain(message).filter(|(name, _)| !OWN.contains(&name.as_str()))
}

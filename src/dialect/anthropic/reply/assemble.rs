//! A streamed answer, put together from its events.
//!
//! The rule is that of the official SDKs (anthropic-sdk-python's `accumulate_event`): blocks grow
//! by their index, the last `message_delta` says how it ended, and its counts are totals that
//! replace those of `message_start`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::whole::{ends_as, is_repeatable};
use super::{ReplyFault, malformed, reports_error, usage};
use crate::chat::{ChatReply, EventKind, Extra, Finish, Usage};

#[derive(Deserialize)]
struct Event {
    r#type: Option<String>,
    message: Option<Value>,
    index: Option<u64>,
    content_block: Option<Map<String, Value>>,
    delta: Option<Map<String, Value>>,
    usage: Option<Map<String, Value>>,
    error: Option<Value>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// Puts the events of one stream together.
///
/// Complete is only a stream with a stop reason and `message_stop`, which has to be pushed like
/// any other event. Stored is only one block of text without citations: for tool use, thinking,
/// server tools, and events or deltas that nobody here has heard of, there is no reply.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing of the stream")]
pub struct Assembler {
    model: String,
    text: String,
    stop_reason: Option<String>,
    stop_sequence: Option<Value>,
    usage: Map<String, Value>,
    beside: Map<String, Value>,
    begun: bool,
    block: Block,
    stopped: bool,
    /// A block is open that may come all at once: thoughts, a tool's input.
    at_work: bool,
    /// The stream is more than one plain answer, or says what cannot be put together.
    doubtful: bool,
}

/// The one block that an answer may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Block {
    #[default]
    Awaited,
    Open,
    Ended,
}

impl Assembler {
    /// Takes the data of one event and says what it carries; never [`EventKind::Usage`], since
    /// Anthropic's callers get the usage unasked.
    ///
    /// An error event is [`ReplyFault::Reported`]; anything but a JSON object with a type is
    /// [`ReplyFault::Malformed`]. After a fault the assembler is of no more use.
    pub fn push(&mut self, data: &[u8]) -> Result<EventKind, ReplyFault> {
        let event: Event = serde_json::from_slice(data).map_err(|error| malformed(&error))?;
        if reports_error(event.r#type.as_deref(), event.error.as_ref()) {
            return Err(ReplyFault::Reported);
        }
        let Some(kind) = event.r#type.as_deref() else {
            return Err(ReplyFault::Malformed("an event without a type".to_owned()));
        };
        let carried = if kind == "ping" && self.at_work { EventKind::Working } else { carries(&event) };
        if kind != "ping" {
            // Whatever stands beside the known fields is not given again.
            self.doubtful |= event.extra.values().any(|value| !value.is_null());
            self.doubtful |= self.stopped || !self.begun && kind != "message_start";
        }
        match kind {
            "content_block_start" => {
                let block = event.content_block.as_ref();
                self.at_work = block.is_some_and(|block| !matches!(word(block, "type"), "" | "text"));
            }
            "content_block_stop" => self.at_work = false,
            _ => {}
        }
        match kind {
            "message_start" => self.start(event.message.unwrap_or_default()),
            "content_block_start" => self.start_block(event.index, event.content_block.unwrap_or_default()),
            "content_block_delta" => self.grow(event.index, &event.delta.unwrap_or_default()),
            "message_delta" => {
                self.end(event.delta.unwrap_or_default(), &event.usage.unwrap_or_default());
            }
            "message_stop" => self.stopped = true,
            "content_block_stop" => self.end_block(event.index),
            "ping" => {}
            _ => self.doubtful = true,
        }
        Ok(carried)
    }

    fn start(&mut self, message: Value) {
        let Value::Object(fields) = message else {
            self.doubtful = true;
            return;
        };
        self.doubtful |= self.begun;
        self.begun = true;
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("id" | "type" | "stop_reason" | "stop_sequence", _) => {}
                ("role", role) => self.doubtful |= role != "assistant",
                ("content", content) => {
                    self.doubtful |= content.as_array().is_none_or(|blocks| !blocks.is_empty());
                }
                ("model", model) => model.as_str().unwrap_or_default().clone_into(&mut self.model),
                (usage::KEY, Value::Object(usage)) => self.usage = usage,
                (usage::KEY | "error", Value::Null) => {}
                (_, value) => drop(self.beside.insert(name, value)),
            }
        }
    }

    fn start_block(&mut self, index: Option<u64>, block: Map<String, Value>) {
        self.doubtful |= index != Some(0) || self.block != Block::Awaited;
        self.block = Block::Open;
        for (name, value) in block {
            match (name.as_str(), value) {
                ("type", kind) => self.doubtful |= kind != "text",
                ("text", Value::String(text)) => self.text += &text,
                ("citations", Value::Array(none)) if none.is_empty() => {}
                (_, value) => self.doubtful |= !value.is_null(),
            }
        }
    }

    fn grow(&mut self, index: Option<u64>, delta: &Map<String, Value>) {
        self.doubtful |= index != Some(0) || self.block != Block::Open;
        for (name, value) in delta {
            match (name.as_str(), value) {
                ("type", kind) => self.doubtful |= kind != "text_delta",
                ("text", Value::String(text)) => self.text += text,
                (_, value) => self.doubtful |= !value.is_null(),
            }
        }
    }

    fn end_block(&mut self, index: Option<u64>) {
        self.doubtful |= index != Some(0) || self.block != Block::Open;
        self.block = Block::Ended;
    }

    fn end(&mut self, delta: Map<String, Value>, usage: &Map<String, Value>) {
        for (name, value) in delta {
            match (name.as_str(), value) {
                ("stop_reason", Value::String(word)) => self.stop_reason = Some(word),
                ("stop_sequence", value) => self.stop_sequence = Some(value).filter(|value| !value.is_null()),
                ("stop_reason", _) => {}
                (_, value) if value.is_null() && self.beside.contains_key(&name) => {}
                (_, value) => drop(self.beside.insert(name, value)),
            }
        }
        usage::replace(&mut self.usage, usage);
    }

    /// The message has begun: what has come so far is the beginning of an answer.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// A stop reason was seen: the text is complete, though the terminal may follow.
    pub fn has_finished(&self) -> bool {
        self.stop_reason.is_some()
    }

    /// What it cost, as far as it was told.
    pub fn usage(&self) -> Option<Usage> {
        usage::counts(&self.usage)
    }

    /// The whole answer; `None` when the terminal was not seen, and where
    /// [`parse_whole`](super::parse_whole) gives none.
    pub fn finish(self) -> Option<ChatReply> {
        let complete = self.begun && self.stopped && !self.doubtful && is_repeatable(&self.beside);
        let word = self.stop_reason.filter(|_| complete)?;
        // An empty block is not written again.
        if self.block != Block::Awaited && self.text.is_empty() {
            return None;
        }
        let mut extra = Extra { reply: self.beside, ..Extra::default() };
        let told = Value::from(self.usage);
        let usage = usage::take(told.clone(), &mut extra.reply);
        if let Some(sequence) = self.stop_sequence {
            extra.choice.insert("stop_sequence".to_owned(), sequence);
        }
        let finish = Finish::from_stop_reason(&word);
        let reply = ChatReply { model: self.model, text: self.text, finish, usage, extra };
        ends_as(&reply, &word, &told).then_some(reply)
    }
}

fn word<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a caller waits for this: text, thoughts or that there are some, a tool's name or its
/// input. Signatures and citations come after what they belong to.
fn carries(event: &Event) -> EventKind {
    let says = |fields: &Map<String, Value>| {
        ["text", "thinking", "partial_json"].iter().any(|name| !word(fields, name).is_empty())
    };
    let begins = |block: &Map<String, Value>| says(block) || !matches!(word(block, "type"), "" | "text");
    if event.delta.as_ref().is_some_and(says) || event.content_block.as_ref().is_some_and(begins) {
        EventKind::Content
    } else {
        EventKind::Other
    }
}

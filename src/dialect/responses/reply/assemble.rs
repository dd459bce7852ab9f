//! A streamed answer, put together from its events.
//!
//! The last event holds the whole response, and that is what counts. What the caller saw before has
//! to agree with it: else there is a doubt, and no reply.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ReplyFault, is_terminal_name, usage, whole};
use crate::chat::{ChatReply, EventKind, Usage};

#[derive(Deserialize)]
struct Event {
    r#type: Option<String>,
    delta: Option<Value>,
    item: Option<Value>,
    output_index: Option<u64>,
    response: Option<Map<String, Value>>,
    error: Option<Value>,
}

/// Puts the events of one stream together.
///
/// Complete is only a stream with `response.completed` or `response.incomplete`, which has to be
/// pushed like any other event.
#[derive(Debug, Default)]
pub struct Assembler {
    text: String,
    /// Items that have ended, for a last event that leaves them out.
    items: BTreeMap<u64, Value>,
    begun: bool,
    finished: bool,
    reply: Option<ChatReply>,
    usage: Option<Usage>,
    /// Something came after the end.
    doubtful: bool,
}

impl Assembler {
    /// Takes the data of one event and says what it carries; never [`EventKind::Usage`], since the
    /// usage is part of the last event.
    ///
    /// An error event or a failed response is [`ReplyFault::Reported`]; anything but a JSON object
    /// with a type is [`ReplyFault::Malformed`]. After a fault the assembler is of no more use.
    pub fn push(&mut self, data: &[u8]) -> Result<EventKind, ReplyFault> {
        let event: Event = serde_json::from_slice(data)
            .map_err(|error| ReplyFault::Malformed(format!("not an event: {error}")))?;
        let is_error = event.error.is_some_and(|error| !error.is_null());
        let Some(kind) = event.r#type else {
            let fault = ReplyFault::Malformed("an event without a type".to_owned());
            return Err(if is_error { ReplyFault::Reported } else { fault });
        };
        if is_error || matches!(kind.as_str(), "error" | "response.failed") {
            return Err(ReplyFault::Reported);
        }
        self.doubtful |= self.finished;
        self.begun |= event.response.is_some();
        if is_terminal_name(&kind) {
            let response = event.response.unwrap_or_default();
            self.usage = response.get(usage::KEY).and_then(Value::as_object).and_then(usage::told);
            self.end(response)?;
            return Ok(EventKind::Other);
        }
        let carried = carries(&kind, event.delta.as_ref(), event.item.as_ref());
        match (kind.as_str(), event.delta, event.item) {
            ("response.output_text.delta", Some(Value::String(piece)), _) => self.text += &piece,
            ("response.output_item.done", _, Some(item)) => {
                self.items.insert(event.output_index.unwrap_or_default(), item);
            }
            _ => {}
        }
        Ok(carried)
    }

    fn end(&mut self, mut response: Map<String, Value>) -> Result<(), ReplyFault> {
        if response.get("output").is_none_or(Value::is_null) {
            let items = std::mem::take(&mut self.items).into_values();
            response.insert("output".to_owned(), items.collect());
        }
        self.finished = true;
        self.reply = whole::read(response)?;
        Ok(())
    }

    /// The response has begun: what has come so far is the beginning of an answer.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// What it cost, as far as it was told.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// The last event was seen.
    pub fn has_finished(&self) -> bool {
        self.finished
    }

    /// The whole answer; `None` when the last event was not seen, and where
    /// [`parse_whole`](super::parse_whole) gives none.
    pub fn finish(self) -> Option<ChatReply> {
        self.reply.filter(|reply| !self.doubtful && reply.text == self.text)
    }
}

/// Whether a caller waits for this: text, thoughts, a refusal, a call or its arguments, the beginning
/// of what a built-in tool does.
fn carries(kind: &str, delta: Option<&Value>, item: Option<&Value>) -> EventKind {
    let says = delta.and_then(Value::as_str).is_some_and(|piece| !piece.is_empty());
    let begins = || kind == "response.output_item.added" && item.is_some_and(is_work);
    if says || begins() { EventKind::Content } else { EventKind::Other }
}

fn is_work(item: &Value) -> bool {
    !matches!(item["type"].as_str(), None | Some("message" | "reasoning"))
}

//! From OpenAI's chunks to Anthropic's events.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::{data, error_to_anthropic, says_more};
use crate::chat::Finish;
use crate::dialect::anthropic::reply::{TERMINAL, call_id, calling, refused, usage};
use crate::dialect::openai::reply::{ReplyFault, Stamp, is_terminal};

/// Converts one stream. After a fault, an error or the end it gives nothing any more.
///
/// OpenAI tells the usage after the finish reason, so the end of the message waits for `[DONE]`.
/// A tool's block ends when the next block begins, as Anthropic's own do. Only where calls are told
/// in turns, a piece of each at a time, one whose input is not whole yet stays open beside the
/// next; the SDKs take that, for they sort deltas by index.
#[derive(Debug)]
pub struct ToAnthropic {
    id: String,
    begun: bool,
    /// The block of text or thoughts that grows now.
    open: Option<(Kind, u64)>,
    /// The index of the next block.
    next: u64,
    /// Tool calls by their place at OpenAI.
    calls: BTreeMap<u64, Call>,
    /// The place of the call whose block began last.
    latest: Option<u64>,
    refused: bool,
    finish: Option<Finish>,
    stop_sequence: Value,
    usage: Value,
    model: String,
    /// Unknown fields beside the choices that were not sent on yet.
    beside: Map<String, Value>,
    /// Unknown fields of the choice, the latest of each; sent on at the end.
    choice: Map<String, Value>,
    /// The names of those beside the choices that were sent on: providers repeat them in every chunk.
    told: BTreeSet<String>,
    skipped: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Done,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    /// Text too, in a block of its own.
    Refusal,
}

/// A tool call, under way. Its block begins with its name.
#[derive(Debug, Default)]
struct Call {
    block: Option<u64>,
    id: String,
    /// All that came so far, and before the block began.
    arguments: String,
    closed: bool,
}

impl Call {
    /// Nothing can follow that would make sense.
    fn is_whole(&self) -> bool {
        self.arguments.trim_end().ends_with('}')
            && serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok()
    }
}

impl ToAnthropic {
    /// For a message of this id.
    pub fn new(stamp: &Stamp<'_>) -> Self {
        Self {
            id: stamp.id.to_owned(),
            begun: false,
            open: None,
            next: 0,
            calls: BTreeMap::new(),
            latest: None,
            refused: false,
            finish: None,
            stop_sequence: Value::Null,
            usage: Value::Null,
            model: String::new(),
            beside: Map::new(),
            choice: Map::new(),
            told: BTreeSet::new(),
            skipped: false,
            state: State::Open,
        }
    }

    /// The data of the events that one chunk's data, or `[DONE]`, stands for; the last ones are
    /// `message_stop`, or an error.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<Bytes>, ReplyFault> {
        if self.state != State::Open {
            return Ok(Vec::new());
        }
        self.convert(chunk).inspect_err(|_| self.state = State::Failed)
    }

    fn convert(&mut self, chunk: &[u8]) -> Result<Vec<Bytes>, ReplyFault> {
        let mut events = Vec::new();
        if is_terminal(chunk) {
            if !self.begun {
                return Err(ReplyFault::Malformed("the stream ended without an answer".to_owned()));
            }
            self.stop(&mut events);
            return Ok(events);
        }
        let mut chunk: Map<String, Value> = serde_json::from_slice(chunk)
            .map_err(|error| ReplyFault::Malformed(format!("not a chunk: {error}")))?;
        if let Some(error) = error_in(&chunk) {
            self.state = State::Failed;
            events.push(error_to_anthropic(error));
            return Ok(events);
        }
        let choices = chunk.remove("choices").unwrap_or_default();
        self.note(chunk);
        for choice in choices.as_array().into_iter().flatten() {
            self.push_choice(choice, &mut events)?;
        }
        Ok(events)
    }

    /// What is still to be said where the connection ends: nothing, but after a finish reason the
    /// rest that `[DONE]` would have brought.
    pub fn end(&mut self) -> Vec<Bytes> {
        let mut events = Vec::new();
        if self.state == State::Open && self.finish.is_some() {
            self.stop(&mut events);
        }
        events
    }

    /// The terminal was seen.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// An error or a fault was seen.
    pub fn has_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// Something was left out, so what was told must not be kept as the whole answer.
    pub fn has_skipped(&self) -> bool {
        self.skipped
    }

    /// What stands beside the choices.
    fn note(&mut self, chunk: Map<String, Value>) {
        for (name, value) in chunk {
            match name.as_str() {
                "id" | "object" | "created" | "error" | "obfuscation" => {}
                _ if value.is_null() => {}
                "model" if self.model.is_empty() => {
                    value.as_str().unwrap_or_default().clone_into(&mut self.model);
                }
                "usage" => self.usage = value,
                _ if is_own(&name) => {}
                _ if self.told.contains(&name) => {}
                _ => drop(self.beside.insert(name, value)),
            }
        }
    }

    fn push_choice(&mut self, choice: &Value, events: &mut Vec<Bytes>) -> Result<(), ReplyFault> {
        if choice["index"].as_u64().unwrap_or(0) != 0 {
            return Err(ReplyFault::Malformed("a second choice, which nobody asked for".to_owned()));
        }
        self.begin(events);
        let delta = &choice["delta"];
        if !(delta["content"].is_null() || delta["content"].is_string()) {
            return Err(ReplyFault::Malformed("a content that is no text".to_owned()));
        }
        let known = ["role", "content", "reasoning_content", "reasoning", "refusal", "tool_calls"];
        self.skipped |= says_more(delta, &known) || says_more(&choice["logprobs"], &[]);
        // Some providers send both, one of them empty.
        let said = |name: &str| delta[name].as_str().filter(|text| !text.is_empty());
        let thoughts = said("reasoning_content").or(said("reasoning"));
        let refusal = delta["refusal"].as_str();
        self.refused |= refusal.is_some_and(|refusal| !refusal.is_empty());
        self.say(Kind::Thinking, thoughts, events);
        self.say(Kind::Text, delta["content"].as_str(), events);
        self.say(Kind::Refusal, refusal, events);
        for (place, call) in delta["tool_calls"].as_array().into_iter().flatten().enumerate() {
            let place = call["index"].as_u64().unwrap_or(place as u64);
            self.push_call(place, call, events)?;
        }
        if let Some(word) = choice["finish_reason"].as_str().filter(|word| !word.is_empty()) {
            self.finish = Some(finish(word));
        }
        if choice["stop_sequence"].is_string() {
            self.stop_sequence = choice["stop_sequence"].clone();
        }
        for (name, value) in choice.as_object().into_iter().flatten() {
            let known = matches!(name.as_str(), "index" | "delta" | "finish_reason" | "logprobs" | "error");
            if !(known || is_own(name) || value.is_null()) {
                self.choice.insert(name.clone(), value.clone());
            }
        }
        Ok(())
    }

    fn begin(&mut self, events: &mut Vec<Bytes>) {
        if self.begun {
            return;
        }
        self.begun = true;
        let mut message = json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": [],
            "stop_reason": null, "stop_sequence": null,
            "usage": { "input_tokens": 0, "output_tokens": 0 },
        });
        for (name, value) in std::mem::take(&mut self.beside) {
            message[name.as_str()] = value;
            self.told.insert(name);
        }
        events.push(data(&json!({ "type": "message_start", "message": message })));
    }

    fn say(&mut self, kind: Kind, text: Option<&str>, events: &mut Vec<Bytes>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        let index = match self.open {
            Some((open, index)) if open == kind => index,
            _ => {
                self.close(events);
                let block = match kind {
                    Kind::Text | Kind::Refusal => json!({ "type": "text", "text": "" }),
                    Kind::Thinking => json!({ "type": "thinking", "thinking": "", "signature": "" }),
                };
                let index = self.start_block(&block, events);
                self.open = Some((kind, index));
                index
            }
        };
        let delta = match kind {
            Kind::Text | Kind::Refusal => json!({ "type": "text_delta", "text": text }),
            Kind::Thinking => json!({ "type": "thinking_delta", "thinking": text }),
        };
        events.push(grow(index, &delta));
    }

    fn push_call(&mut self, place: u64, piece: &Value, events: &mut Vec<Bytes>) -> Result<(), ReplyFault> {
        let function = &piece["function"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (name, arguments) = (text(&function["name"]), text(&function["arguments"]));
        self.skipped |= says_more(piece, &["index", "id", "type", "function"])
            || says_more(function, &["name", "arguments"]);
        let id = text(&piece["id"]);
        if !name.is_empty() {
            self.make_room(place, &id, events);
        }
        let call = self.calls.entry(place).or_default();
        if call.id.is_empty() {
            call.id = id;
        }
        if call.closed {
            let rest = arguments.trim();
            return if rest.is_empty() {
                Ok(())
            } else {
                Err(ReplyFault::Malformed("more of a tool call that was whole".to_owned()))
            };
        }
        call.arguments += &arguments;
        match call.block {
            Some(index) if !arguments.is_empty() => events.push(input(index, &arguments)),
            None if !name.is_empty() => self.begin_call(place, &name, events),
            _ => {}
        }
        Ok(())
    }

    /// Some providers give all calls one place, or none. A name and another id tell them apart; an id
    /// alone does not, for others send a new one with every piece.
    fn make_room(&mut self, place: u64, id: &str, events: &mut Vec<Bytes>) {
        let is_another =
            |call: &Call| call.block.is_some() && !(id.is_empty() || call.id.is_empty() || call.id == id);
        if !self.calls.get(&place).is_some_and(is_another) {
            return;
        }
        self.close(events);
        if let Some(call) = self.calls.remove(&place).filter(|call| !call.closed)
            && let Some(index) = call.block
        {
            events.push(data(&json!({ "type": "content_block_stop", "index": index })));
        }
    }

    fn begin_call(&mut self, place: u64, name: &str, events: &mut Vec<Bytes>) {
        self.close(events);
        let Some(call) = self.calls.get_mut(&place) else { return };
        let early = call.arguments.clone();
        // Some send none, and the result has to name its call.
        let id = if call.id.is_empty() { call_id(&self.id, place) } else { call.id.clone() };
        let block = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
        let index = self.start_block(&block, events);
        if let Some(call) = self.calls.get_mut(&place) {
            call.block = Some(index);
            self.latest = Some(place);
        }
        if !early.is_empty() {
            events.push(input(index, &early));
        }
    }

    fn start_block(&mut self, block: &Value, events: &mut Vec<Bytes>) -> u64 {
        let index = self.next;
        self.next += 1;
        events.push(data(&json!({ "type": "content_block_start", "index": index, "content_block": block })));
        index
    }

    fn close(&mut self, events: &mut Vec<Bytes>) {
        if let Some((_, index)) = self.open.take() {
            events.push(data(&json!({ "type": "content_block_stop", "index": index })));
        }
        let latest = self.latest.take().and_then(|place| self.calls.get_mut(&place));
        if let Some(call) = latest.filter(|call| call.is_whole())
            && let Some(index) = call.block
        {
            call.closed = true;
            events.push(data(&json!({ "type": "content_block_stop", "index": index })));
        }
    }

    fn stop(&mut self, events: &mut Vec<Bytes>) {
        let calls = !(self.calls.is_empty() || self.stop_sequence.is_string());
        self.state = State::Done;
        self.close(events);
        let nameless: Vec<_> =
            self.calls.iter().filter(|(_, call)| call.block.is_none()).map(|(place, _)| *place).collect();
        for place in nameless {
            self.begin_call(place, "", events);
        }
        for index in self.calls.values().filter(|call| !call.closed).filter_map(|call| call.block) {
            events.push(data(&json!({ "type": "content_block_stop", "index": index })));
        }
        let mut delta = Map::new();
        // Without a finish reason there is no stop reason either; a client sees what is missing.
        let at_sequence = self.stop_sequence.is_string();
        let finish = self.finish.take().map(|finish| calling(refused(finish, self.refused), calls));
        let word = finish.as_ref().map(|finish| finish.as_stop_reason(at_sequence));
        delta.insert("stop_reason".to_owned(), word.into());
        delta.insert("stop_sequence".to_owned(), self.stop_sequence.take());
        delta.extend(std::mem::take(&mut self.beside));
        // As in a whole message: what stands beside the choices goes first, an empty list says nothing.
        for (name, value) in std::mem::take(&mut self.choice) {
            if !(self.told.contains(&name) || delta.contains_key(&name) || value == json!([])) {
                delta.insert(name, value);
            }
        }
        let usage = match self.usage.take() {
            Value::Null => json!({ "output_tokens": 0 }),
            usage => usage::to_anthropic(usage),
        };
        events.push(data(&json!({ "type": "message_delta", "delta": delta, "usage": usage })));
        events.push(Bytes::from_static(TERMINAL));
    }
}

/// The message has fields of these names, and means something else by them.
fn is_own(name: &str) -> bool {
    matches!(name, "id" | "model" | "type" | "role" | "content" | "stop_reason" | "stop_sequence" | "usage")
}

fn grow(index: u64, delta: &Value) -> Bytes {
    data(&json!({ "type": "content_block_delta", "index": index, "delta": delta }))
}

fn input(index: u64, part: &str) -> Bytes {
    grow(index, &json!({ "type": "input_json_delta", "partial_json": part }))
}

pub(in crate::dialect::cross) fn finish(word: &str) -> Finish {
    match word {
        "stop" => Finish::Stop,
        "length" => Finish::Length,
        "tool_calls" => Finish::ToolCalls,
        "content_filter" => Finish::ContentFilter,
        other => Finish::Other(other.to_owned()),
    }
}

/// The error in a chunk, wherever providers put it.
pub(in crate::dialect::cross) fn error_in(chunk: &Map<String, Value>) -> Option<&Value> {
    let choices = chunk.get("choices").and_then(Value::as_array).into_iter().flatten();
    let mut in_choices = choices.filter_map(|choice| match (&choice["error"], &choice["finish_reason"]) {
        (Value::Null, Value::String(word)) if word == "error" => Some(&choice["error"]),
        (Value::Null, _) => None,
        (error, _) => Some(error),
    });
    let flat = || chunk.get("object").is_some_and(|object| object == "error").then(|| chunk.get("message"));
    chunk
        .get("error")
        .filter(|error| !error.is_null())
        .or_else(|| in_choices.next())
        .or_else(|| flat().map(|message| message.unwrap_or(&Value::Null)))
}

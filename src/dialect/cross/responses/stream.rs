//! Chat completions' chunks as the events of a response, one by one.
//!
//! The converter takes the data of one chunk and gives the data of none or several events. Nothing
//! waits longer than it must: texts, thoughts and arguments go on as they come. The calls of
//! `functions` as they were before tools, and audio, are skipped: they come only when asked for, and
//! responses cannot ask for them. Unknown fields come in the last event.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::super::stream::{error_in, finish, told};
use crate::chat::Finish;
use crate::dialect::openai::reply::{ReplyFault, Stamp, is_terminal};
use crate::dialect::responses::error;
use crate::dialect::responses::reply::{Echo, EventWriter, Said, call_id, usage};

/// Converts one stream. After a fault, an error or the end it gives nothing any more.
///
/// Chat completions tell the usage after the finish reason, so the end of the response waits for
/// `[DONE]`. A call ends when the next item begins. Only where calls are told in turns, a piece of
/// each at a time, one whose arguments are not whole yet stays open beside the next; the SDKs take
/// that, for they sort pieces by index.
#[derive(Debug)]
pub struct ToResponses {
    writer: EventWriter,
    begun: bool,
    /// Calls by their index in the chunks.
    calls: BTreeMap<u64, Call>,
    /// The index of the call that began last.
    latest: Option<u64>,
    finish: Option<Finish>,
    usage: Value,
    model: String,
    /// Unknown fields, for the last event.
    beside: Map<String, Value>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Done,
    Failed,
}

/// A call, under way. Its item begins with its name.
#[derive(Debug, Default)]
struct Call {
    /// The place of its item.
    place: Option<usize>,
    id: String,
    /// All that came so far, and before the item began.
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

impl ToResponses {
    /// For a response of this id and time to the request that `echo` is of.
    pub fn new(stamp: &Stamp<'_>, echo: &Echo) -> Self {
        Self {
            writer: EventWriter::new(stamp, echo.clone()),
            begun: false,
            calls: BTreeMap::new(),
            latest: None,
            finish: None,
            usage: Value::Null,
            model: String::new(),
            beside: Map::new(),
            state: State::Open,
        }
    }

    /// The data of the events that one chunk's data, or `[DONE]`, stands for; the last is
    /// `response.completed`, `response.incomplete` or `error`.
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
        if let Some(fault) = error_in(&chunk) {
            self.state = State::Failed;
            let (kind, message) = told(fault);
            let code = match &fault["code"] {
                Value::Null => Some(kind).filter(|kind| !kind.is_empty()).into(),
                Value::String(code) => code.as_str().into(),
                other => other.to_string().into(),
            };
            events.push(error::write(message, &code, self.writer.sequence()));
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

    /// The number of events given so far, for the event that tells of a break.
    pub fn sequence(&self) -> u64 {
        self.writer.sequence()
    }

    /// The terminal was seen.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// An error or a fault was seen.
    pub fn has_failed(&self) -> bool {
        self.state == State::Failed
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
                "model" => {}
                "usage" => self.usage = value,
                _ => drop(self.beside.insert(name, value)),
            }
        }
    }

    fn push_choice(&mut self, choice: &Value, events: &mut Vec<Bytes>) -> Result<(), ReplyFault> {
        if choice["index"].as_u64().unwrap_or(0) != 0 {
            return Err(ReplyFault::Malformed("a second choice, which nobody asked for".to_owned()));
        }
        if !self.begun {
            self.begun = true;
            self.writer.begin(&self.model, events);
        }
        let delta = &choice["delta"];
        if !(delta["content"].is_null() || delta["content"].is_string()) {
            return Err(ReplyFault::Malformed("a content that is no text".to_owned()));
        }
        if let Some(phase) = delta["phase"].as_str() {
            self.writer.set_phase(phase);
        }
        let thoughts = delta["reasoning_content"].as_str().or(delta["reasoning"].as_str());
        self.say(Said::Thoughts, thoughts, events);
        self.say(Said::Text, delta["content"].as_str(), events);
        self.say(Said::Refusal, delta["refusal"].as_str(), events);
        for (place, call) in delta["tool_calls"].as_array().into_iter().flatten().enumerate() {
            let place = call["index"].as_u64().unwrap_or(place as u64);
            self.push_call(place, call, events)?;
        }
        for (name, value) in choice.as_object().into_iter().flatten() {
            if !matches!(name.as_str(), "index" | "delta" | "finish_reason" | "error") {
                self.keep(name, value);
            }
        }
        for (name, value) in delta.as_object().into_iter().flatten() {
            if !is_told(name) {
                self.keep(name, value);
            }
        }
        if let Some(word) = choice["finish_reason"].as_str().filter(|word| !word.is_empty()) {
            self.finish = Some(finish(word));
        }
        Ok(())
    }

    /// Keeps an unknown field for the end; lists grow.
    fn keep(&mut self, name: &str, value: &Value) {
        match (self.beside.get_mut(name), value) {
            (_, Value::Null) => {}
            (_, Value::Array(items)) if items.is_empty() => {}
            (Some(Value::Array(whole)), Value::Array(items)) => whole.extend(items.iter().cloned()),
            _ => drop(self.beside.insert(name.to_owned(), value.clone())),
        }
    }

    fn say(&mut self, said: Said, piece: Option<&str>, events: &mut Vec<Bytes>) {
        if let Some(piece) = piece.filter(|piece| !piece.is_empty()) {
            self.close_latest(events);
            self.writer.say(said, piece, events);
        }
    }

    fn push_call(&mut self, place: u64, piece: &Value, events: &mut Vec<Bytes>) -> Result<(), ReplyFault> {
        let function = &piece["function"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (name, arguments) = (text(&function["name"]), text(&function["arguments"]));
        let call = self.calls.entry(place).or_default();
        if call.id.is_empty() {
            call.id = text(&piece["id"]);
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
        match call.place {
            Some(item) => self.writer.say_arguments(item, &arguments, events),
            None if !name.is_empty() => self.begin_call(place, &name, events),
            None => {}
        }
        Ok(())
    }

    fn begin_call(&mut self, place: u64, name: &str, events: &mut Vec<Bytes>) {
        self.close_latest(events);
        let Some(call) = self.calls.get_mut(&place) else { return };
        // Some send none, and the result has to name its call.
        let id = if call.id.is_empty() { call_id(self.writer.id(), place) } else { call.id.clone() };
        let item = self.writer.begin_call(&id, name, events);
        call.place = Some(item);
        self.latest = Some(place);
        self.writer.say_arguments(item, &call.arguments, events);
    }

    /// Ends the call that began last, if nothing of it is missing.
    fn close_latest(&mut self, events: &mut Vec<Bytes>) {
        let latest = self.latest.take().and_then(|place| self.calls.get_mut(&place));
        if let Some(call) = latest.filter(|call| call.is_whole())
            && let Some(item) = call.place
        {
            call.closed = true;
            self.writer.end_call(item, events);
        }
    }

    fn stop(&mut self, events: &mut Vec<Bytes>) {
        self.state = State::Done;
        let nameless: Vec<_> =
            self.calls.iter().filter(|(_, call)| call.place.is_none()).map(|(place, _)| *place).collect();
        for place in nameless {
            self.begin_call(place, "", events);
        }
        let usage = usage::to_responses(self.usage.take());
        self.writer.end(self.finish.as_ref(), usage, std::mem::take(&mut self.beside), events);
    }
}

/// Fields of a delta that are told as they come, or skipped.
fn is_told(name: &str) -> bool {
    matches!(
        name,
        "role"
            | "content"
            | "reasoning_content"
            | "reasoning"
            | "refusal"
            | "phase"
            | "tool_calls"
            | "function_call"
            | "audio"
    )
}

#[cfg(test)]
mod tests;

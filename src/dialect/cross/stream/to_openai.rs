//! From Anthropic's events to OpenAI's chunks.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{data, error_to_openai, finish_for_openai, says_more};
use crate::chat::Finish;
use crate::dialect::anthropic::reply::usage;
use crate::dialect::openai::reply::{ReplyFault, Stamp, TERMINAL};

/// Converts one stream. After a fault, an error event or the end it gives nothing any more.
///
/// The first chunk holds the role, the usage comes in a chunk of its own before `[DONE]`, and only
/// when it is wanted.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "what was asked, and what was seen: any may come with any")]
pub struct ToOpenAi {
    id: String,
    created: u64,
    include_usage: bool,
    model: String,
    usage: Map<String, Value>,
    /// What stood in the message beside its own fields.
    beside: Map<String, Value>,
    /// How many tool calls began.
    called: usize,
    /// Tool calls by the index of their block.
    calls: BTreeMap<u64, Call>,
    begun: bool,
    finished: bool,
    skipped: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Done,
    Failed,
}

/// A tool call, under way.
#[derive(Debug)]
struct Call {
    /// Its place among the calls.
    number: usize,
    /// Its input as the block's start had it; used when no delta comes.
    input: Value,
    /// A delta came.
    told: bool,
}

impl ToOpenAi {
    /// For a completion of this id and time.
    pub fn new(stamp: &Stamp<'_>, include_usage: bool) -> Self {
        Self {
            id: stamp.id.to_owned(),
            created: stamp.created,
            include_usage,
            model: String::new(),
            usage: Map::new(),
            beside: Map::new(),
            called: 0,
            calls: BTreeMap::new(),
            begun: false,
            finished: false,
            skipped: false,
            state: State::Open,
        }
    }

    /// The data of the chunks that one event's data stands for; the last ones are `[DONE]`, or an
    /// error.
    pub fn push(&mut self, event: &[u8]) -> Result<Vec<Bytes>, ReplyFault> {
        if self.state != State::Open {
            return Ok(Vec::new());
        }
        self.convert(event).inspect_err(|_| self.state = State::Failed)
    }

    fn convert(&mut self, event: &[u8]) -> Result<Vec<Bytes>, ReplyFault> {
        let event: Value = serde_json::from_slice(event)
            .map_err(|error| ReplyFault::Malformed(format!("not an event: {error}")))?;
        let mut chunks = Vec::new();
        let events = ["type", "message", "index", "content_block", "delta", "usage", "error"];
        self.skipped |= says_more(&event, &events);
        match event["type"].as_str() {
            Some("message_start") => self.start(&event["message"], &mut chunks),
            Some("content_block_start") => self.start_block(&event, &mut chunks),
            Some("content_block_delta") => self.grow(&event, &mut chunks),
            Some("content_block_stop") => self.stop_block(&event, &mut chunks),
            Some("message_delta") => self.finish(&event, &mut chunks),
            Some("message_stop") if self.begun => self.stop(&mut chunks),
            Some("message_stop") => {
                return Err(ReplyFault::Malformed("the stream ended without an answer".to_owned()));
            }
            Some("error") => {
                self.state = State::Failed;
                chunks.push(error_to_openai(&event["error"]));
            }
            Some("ping") => {}
            Some(_) => self.skipped = true,
            None => return Err(ReplyFault::Malformed("an event without a type".to_owned())),
        }
        Ok(chunks)
    }

    /// What is still to be said where the connection ends: nothing, but after a stop reason the
    /// rest that `message_stop` would have brought.
    pub fn end(&mut self) -> Vec<Bytes> {
        let mut chunks = Vec::new();
        if self.state == State::Open && self.finished {
            self.stop(&mut chunks);
        }
        chunks
    }

    /// The terminal event was seen.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// An error event or a fault was seen.
    pub fn has_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// Something was left out, so what was told must not be kept as the whole answer.
    pub fn has_skipped(&self) -> bool {
        self.skipped
    }

    fn start(&mut self, message: &Value, chunks: &mut Vec<Bytes>) {
        for (name, value) in message.as_object().into_iter().flatten() {
            match name.as_str() {
                "id" | "type" | "role" | "stop_reason" | "stop_sequence" => {}
                "content" => self.skipped |= value.as_array().is_some_and(|blocks| !blocks.is_empty()),
                "model" => value.as_str().unwrap_or_default().clone_into(&mut self.model),
                "usage" => self.count(value),
                _ => drop(self.beside.insert(name.clone(), value.clone())),
            }
        }
        self.begin(chunks);
    }

    /// The role, once.
    fn begin(&mut self, chunks: &mut Vec<Bytes>) {
        if !self.begun {
            self.begun = true;
            chunks.push(self.delta(&json!({ "role": "assistant", "content": "" })));
        }
    }

    fn start_block(&mut self, event: &Value, chunks: &mut Vec<Bytes>) {
        self.begin(chunks);
        let block = &event["content_block"];
        match block["type"].as_str() {
            Some("text") => {
                self.skipped |= says_more(block, &["type", "text"]);
                self.say("content", &block["text"], chunks);
            }
            Some("thinking") => {
                self.skipped |= says_more(block, &["type", "thinking"]);
                self.say("reasoning_content", &block["thinking"], chunks);
            }
            Some("tool_use") => {
                self.skipped |= says_more(block, &["type", "id", "name", "input"]);
                let number = self.called;
                self.called += 1;
                let call = json!({
                    "index": number, "id": block["id"], "type": "function",
                    "function": { "name": block["name"], "arguments": "" },
                });
                chunks.push(self.delta(&json!({ "tool_calls": [call] })));
                let input = block["input"].clone();
                self.calls.insert(index(event), Call { number, input, told: false });
            }
            _ => self.skipped = true,
        }
    }

    fn grow(&mut self, event: &Value, chunks: &mut Vec<Bytes>) {
        let delta = &event["delta"];
        self.skipped |= says_more(delta, &["type", "text", "thinking", "partial_json"]);
        match delta["type"].as_str() {
            Some("text_delta") => self.say("content", &delta["text"], chunks),
            Some("thinking_delta") => self.say("reasoning_content", &delta["thinking"], chunks),
            Some("input_json_delta") => {
                let part = delta["partial_json"].as_str().unwrap_or_default();
                if let Some(call) = self.calls.get_mut(&index(event)).filter(|_| !part.is_empty()) {
                    call.told = true;
                    let number = call.number;
                    chunks.push(self.arguments(number, part));
                }
            }
            _ => self.skipped = true,
        }
    }

    /// A call whose input did not come in deltas has it from its start: mostly an empty object.
    fn stop_block(&mut self, event: &Value, chunks: &mut Vec<Bytes>) {
        if let Some(call) = self.calls.get_mut(&index(event)).filter(|call| !call.told) {
            call.told = true;
            let input = if call.input.is_null() { json!({}) } else { call.input.take() };
            let number = call.number;
            chunks.push(self.arguments(number, &input.to_string()));
        }
    }

    fn finish(&mut self, event: &Value, chunks: &mut Vec<Bytes>) {
        self.begin(chunks);
        self.count(&event["usage"]);
        let delta = &event["delta"];
        for (name, value) in delta.as_object().into_iter().flatten() {
            match name.as_str() {
                "stop_reason" | "stop_sequence" => {}
                _ if value.is_null() && self.beside.contains_key(name) => {}
                _ => drop(self.beside.insert(name.clone(), value.clone())),
            }
        }
        let Some(word) = delta["stop_reason"].as_str().filter(|word| !word.is_empty()) else { return };
        self.finished = true;
        let mut finish = Finish::from_stop_reason(word);
        finish_for_openai(&mut finish);
        let mut choice = json!({ "index": 0, "delta": {}, "finish_reason": finish_reason(&finish) });
        if delta["stop_sequence"].is_string() {
            choice["stop_sequence"] = delta["stop_sequence"].clone();
        }
        let mut chunk = self.chunk(&json!([choice]));
        for (name, value) in std::mem::take(&mut self.beside) {
            if chunk.get(&name).is_none() {
                chunk[name] = value;
            }
        }
        chunks.push(data(&chunk));
    }

    fn stop(&mut self, chunks: &mut Vec<Bytes>) {
        self.state = State::Done;
        if self.include_usage && !self.usage.is_empty() {
            let mut chunk = self.chunk(&json!([]));
            chunk["usage"] = usage::to_openai(std::mem::take(&mut self.usage).into());
            chunks.push(data(&chunk));
        }
        chunks.push(Bytes::from_static(TERMINAL));
    }

    fn count(&mut self, told: &Value) {
        if let Some(told) = told.as_object() {
            usage::replace(&mut self.usage, told);
        }
    }

    fn say(&self, field: &str, text: &Value, chunks: &mut Vec<Bytes>) {
        if text.as_str().is_some_and(|text| !text.is_empty()) {
            chunks.push(self.delta(&json!({ field: text })));
        }
    }

    fn arguments(&self, number: usize, part: &str) -> Bytes {
        self.delta(&json!({ "tool_calls": [{ "index": number, "function": { "arguments": part } }] }))
    }

    fn delta(&self, delta: &Value) -> Bytes {
        data(&self.chunk(&json!([{ "index": 0, "delta": delta, "finish_reason": null }])))
    }

    fn chunk(&self, choices: &Value) -> Value {
        json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created,
            "model": self.model, "choices": choices,
        })
    }
}

fn index(event: &Value) -> u64 {
    event["index"].as_u64().unwrap_or_default()
}

fn finish_reason(finish: &Finish) -> &str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::ContentFilter => "content_filter",
        Finish::Other(word) => word,
    }
}

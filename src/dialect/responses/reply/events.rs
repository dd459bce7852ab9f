//! The events of one response, written as it is said.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::items::{self, COMPLETED, IN_PROGRESS, INCOMPLETE};
use super::whole::{End, Envelope};
use super::{Echo, Stamp};
use crate::chat::Finish;

/// Writes the data of events, numbered, into the list it is given.
///
/// A stored answer and one that comes in chat completions' chunks are told by this one writer, so
/// they cannot differ. Thoughts and the message end when something else begins, calls when their
/// caller says so, everything at the end.
#[derive(Debug)]
pub(in crate::dialect) struct EventWriter {
    envelope: Envelope,
    model: String,
    phase: Option<String>,
    /// The number of the next event.
    sequence: u64,
    items: Vec<Item>,
    /// The message or thoughts that grow now.
    open: Option<usize>,
}

/// What grows piece by piece, other than a call's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dialect) enum Said {
    /// Readable thoughts.
    Thoughts,
    /// The answer.
    Text,
    /// Why there is none.
    Refusal,
}

#[derive(Debug)]
struct Item {
    id: String,
    kind: Kind,
    /// The item as its last event gave it; `None` while it grows.
    done: Option<Value>,
}

#[derive(Debug)]
enum Kind {
    Reasoning(String),
    /// Parts in their order, each once begun.
    Message(Vec<(Said, String)>),
    Call {
        call_id: String,
        name: String,
        arguments: String,
    },
}

impl EventWriter {
    /// For a response of this id and time.
    pub(in crate::dialect) fn new(stamp: &Stamp<'_>, echo: Echo) -> Self {
        Self {
            envelope: Envelope::new(stamp, echo),
            model: String::new(),
            phase: None,
            sequence: 0,
            items: Vec::new(),
            open: None,
        }
    }

    /// The label of its message, from the next event on.
    pub(in crate::dialect) fn set_phase(&mut self, phase: &str) {
        self.phase = Some(phase.to_owned()).filter(|phase| !phase.is_empty());
    }

    /// The id of the response.
    pub(in crate::dialect) fn id(&self) -> &str {
        &self.envelope.id
    }

    /// The number of events written.
    pub(in crate::dialect) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The response begins.
    pub(in crate::dialect) fn begin(&mut self, model: &str, events: &mut Vec<Bytes>) {
        model.clone_into(&mut self.model);
        let response = self.envelope.begun(model);
        self.event("response.created", json!({ "response": response }), events);
        self.event("response.in_progress", json!({ "response": response }), events);
    }

    /// A piece of text; an empty one says nothing.
    pub(in crate::dialect) fn say(&mut self, said: Said, piece: &str, events: &mut Vec<Bytes>) {
        if piece.is_empty() {
            return;
        }
        let place = self.place_for(said, events);
        let part = match &mut self.items[place].kind {
            Kind::Message(parts) => {
                if let Some((_, text)) = parts.last_mut() {
                    *text += piece;
                }
                parts.len().saturating_sub(1)
            }
            Kind::Reasoning(text) => {
                *text += piece;
                0
            }
            Kind::Call { .. } => return,
        };
        let mut fields = json!({ "content_index": part, "delta": piece });
        if said == Said::Text {
            fields["logprobs"] = json!([]);
        }
        self.item_event(said.names().0, place, fields, events);
    }

    /// A call begins; what is said so far ends. Gives the place of the call.
    pub(in crate::dialect) fn begin_call(
        &mut self,
        call_id: &str,
        name: &str,
        events: &mut Vec<Bytes>,
    ) -> usize {
        self.close(COMPLETED, events);
        let kind =
            Kind::Call { call_id: call_id.to_owned(), name: name.to_owned(), arguments: String::new() };
        self.add("fc", kind, events)
    }

    /// A piece of a call's arguments.
    pub(in crate::dialect) fn say_arguments(&mut self, place: usize, piece: &str, events: &mut Vec<Bytes>) {
        if let Some(Item { kind: Kind::Call { arguments, .. }, .. }) = self.items.get_mut(place)
            && !piece.is_empty()
        {
            *arguments += piece;
            let name = "response.function_call_arguments.delta";
            self.item_event(name, place, json!({ "delta": piece }), events);
        }
    }

    /// A call is whole.
    pub(in crate::dialect) fn end_call(&mut self, place: usize, events: &mut Vec<Bytes>) {
        self.end_item(place, COMPLETED, events);
    }

    /// The response ends; `finish` is `None` when nobody said why.
    pub(in crate::dialect) fn end(
        &mut self,
        finish: Option<&Finish>,
        usage: Value,
        beside: Map<String, Value>,
        events: &mut Vec<Bytes>,
    ) {
        let cut = finish.is_none_or(|finish| finish.as_incomplete_reason().is_some());
        let last = self.items.len().saturating_sub(1);
        for place in 0..self.items.len() {
            let status = if cut && place == last { INCOMPLETE } else { COMPLETED };
            self.end_item(place, status, events);
        }
        self.open = None;
        let output = self.items.iter().filter_map(|item| item.done.clone()).collect();
        let response = self.envelope.ended(&self.model, End { finish, output, usage, beside });
        let name = if cut { "response.incomplete" } else { "response.completed" };
        self.event(name, json!({ "response": response }), events);
    }

    /// The item that grows by this, its part begun.
    fn place_for(&mut self, said: Said, events: &mut Vec<Bytes>) -> usize {
        if let Some(place) = self.open {
            match &self.items[place].kind {
                Kind::Reasoning(_) if said == Said::Thoughts => return place,
                Kind::Message(parts) if said != Said::Thoughts => {
                    if parts.last().is_none_or(|(kind, _)| *kind != said) {
                        self.end_part(place, events);
                        self.begin_part(place, said, events);
                    }
                    return place;
                }
                _ => self.close(COMPLETED, events),
            }
        }
        let place = match said {
            Said::Thoughts => self.add("rs", Kind::Reasoning(String::new()), events),
            Said::Text | Said::Refusal => self.add("msg", Kind::Message(Vec::new()), events),
        };
        self.open = Some(place);
        self.begin_part(place, said, events);
        place
    }

    fn add(&mut self, prefix: &str, kind: Kind, events: &mut Vec<Bytes>) -> usize {
        let place = self.items.len();
        let id = items::item_id(prefix, &self.envelope.id, place);
        let item = Item { id, kind, done: None };
        let begun = item.write(self.phase.as_deref(), IN_PROGRESS);
        self.items.push(item);
        self.event("response.output_item.added", json!({ "output_index": place, "item": begun }), events);
        place
    }

    fn begin_part(&mut self, place: usize, said: Said, events: &mut Vec<Bytes>) {
        let mut index = 0;
        if let Kind::Message(parts) = &mut self.items[place].kind {
            index = parts.len();
            parts.push((said, String::new()));
        }
        let fields = json!({ "content_index": index, "part": said.part("") });
        self.item_event("response.content_part.added", place, fields, events);
    }

    /// Ends the last part of an item.
    fn end_part(&mut self, place: usize, events: &mut Vec<Bytes>) {
        let (index, said, text) = match &self.items[place].kind {
            Kind::Reasoning(text) => (0, Said::Thoughts, text.clone()),
            Kind::Message(parts) => match parts.last() {
                Some((said, text)) => (parts.len() - 1, *said, text.clone()),
                None => return,
            },
            Kind::Call { .. } => return,
        };
        let mut fields = json!({ "content_index": index, said.field(): text });
        if said == Said::Text {
            fields["logprobs"] = json!([]);
        }
        self.item_event(said.names().1, place, fields, events);
        let fields = json!({ "content_index": index, "part": said.part(&text) });
        self.item_event("response.content_part.done", place, fields, events);
    }

    /// Ends what grows now.
    fn close(&mut self, status: &str, events: &mut Vec<Bytes>) {
        if let Some(place) = self.open.take() {
            self.end_item(place, status, events);
        }
    }

    /// Ends an item, unless it has ended.
    fn end_item(&mut self, place: usize, status: &str, events: &mut Vec<Bytes>) {
        let Some(item) = self.items.get(place).filter(|item| item.done.is_none()) else { return };
        if let Kind::Call { name, arguments, .. } = &item.kind {
            let fields = json!({ "name": name, "arguments": arguments });
            self.item_event("response.function_call_arguments.done", place, fields, events);
        } else {
            self.end_part(place, events);
        }
        let item = &mut self.items[place];
        let done = item.write(self.phase.as_deref(), status);
        item.done = Some(done.clone());
        self.event("response.output_item.done", json!({ "output_index": place, "item": done }), events);
    }

    fn item_event(&mut self, name: &str, place: usize, mut fields: Value, events: &mut Vec<Bytes>) {
        fields["item_id"] = self.items[place].id.as_str().into();
        fields["output_index"] = place.into();
        self.event(name, fields, events);
    }

    fn event(&mut self, name: &str, fields: Value, events: &mut Vec<Bytes>) {
        let mut event = Map::new();
        event.insert("type".to_owned(), name.into());
        event.insert("sequence_number".to_owned(), self.sequence.into());
        if let Value::Object(fields) = fields {
            event.extend(fields);
        }
        self.sequence += 1;
        events.push(Value::Object(event).to_string().into());
    }
}

impl Item {
    fn write(&self, phase: Option<&str>, status: &str) -> Value {
        match &self.kind {
            Kind::Reasoning(text) => {
                let parts = if text.is_empty() { Vec::new() } else { vec![items::reasoning_text(text)] };
                items::reasoning(&self.id, &parts, status)
            }
            Kind::Message(parts) => {
                let parts: Vec<_> = parts.iter().map(|(said, text)| said.part(text)).collect();
                items::message(&self.id, &parts, phase, status)
            }
            Kind::Call { call_id, name, arguments } => {
                items::function_call(&self.id, call_id, name, arguments, status)
            }
        }
    }
}

impl Said {
    /// The events of its growth and of its end.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Thoughts => ("response.reasoning_text.delta", "response.reasoning_text.done"),
            Self::Text => ("response.output_text.delta", "response.output_text.done"),
            Self::Refusal => ("response.refusal.delta", "response.refusal.done"),
        }
    }

    /// The field that holds all of it.
    fn field(self) -> &'static str {
        if self == Self::Refusal { "refusal" } else { "text" }
    }

    fn part(self, text: &str) -> Value {
        match self {
            Self::Thoughts => items::reasoning_text(text),
            Self::Text => items::output_text(text),
            Self::Refusal => items::refusal_part(text),
        }
    }
}

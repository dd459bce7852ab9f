//! An answer as a legal event stream.

use std::borrow::Borrow;
use std::iter;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::assemble::grows;
use super::{Stamp, TERMINAL, frame, usage, write};
use crate::chat::ChatReply;

/// Bytes of text in one event: several events for a long answer, so that it is sent as the
/// client reads, and few enough that framing costs nothing.
const PIECE: usize = 2048;

/// The events of an answer, framed, `[DONE]` included: role, then content in pieces, then tool
/// calls and what else the message held, then the finish reason, then the usage when asked for.
///
/// `reply` may be owned, borrowed or shared. Events are made one by one, as they are asked for.
pub fn render_stream<R: Borrow<ChatReply>>(
    reply: R,
    stamp: &Stamp<'_>,
    include_usage: bool,
) -> impl Iterator<Item = Bytes> + use<R> {
    render_chunks(reply, stamp, include_usage)
        .chain(iter::once(Bytes::from_static(TERMINAL)))
        .map(|data| frame(&data))
}

/// The data of the events of [`render_stream`], without frames and terminal.
pub fn render_chunks<R: Borrow<ChatReply>>(
    reply: R,
    stamp: &Stamp<'_>,
    include_usage: bool,
) -> impl Iterator<Item = Bytes> + use<R> {
    let head = Head::of(reply.borrow(), stamp);
    let usage = usage::View::of(reply.borrow(), stamp.cached)
        .filter(|_| include_usage)
        .map(|usage| head.usage(&usage));
    let plan = plan(reply.borrow());
    plan.into_iter().map(move |part| head.chunk(reply.borrow(), &part)).chain(usage)
}

/// What one event carries.
enum Part {
    /// The role, and the fields of the message that are there but empty.
    Role,
    /// Text of `Extra::message`'s field, or of the content itself, from one byte to another.
    Text { field: Option<String>, from: usize, to: usize },
    /// The fields of the message that do not come in parts: tool calls and the like.
    Rest,
    /// The finish reason, with what stood beside the message.
    Finish,
}

fn plan(reply: &ChatReply) -> Vec<Part> {
    let mut plan = vec![Part::Role];
    // Reasoning and refusals come before the content, as the models send them.
    for (name, value) in &reply.extra.message {
        if let Some(text) = value.as_str().filter(|_| grows(name)) {
            plan.extend(pieces(text).map(|(from, to)| Part::Text { field: Some(name.clone()), from, to }));
        }
    }
    plan.extend(pieces(&reply.text).map(|(from, to)| Part::Text { field: None, from, to }));
    if reply.extra.message.iter().any(is_rest) {
        plan.push(Part::Rest);
    }
    plan.push(Part::Finish);
    plan
}

fn is_rest((name, value): (&String, &Value)) -> bool {
    !(value.is_null() || value.is_string() && grows(name))
}

fn is_scalar(value: &Value) -> bool {
    !(value.is_array() || value.is_object())
}

/// The borders of pieces of at most `PIECE` bytes, none of which cuts a character.
fn pieces(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut from = 0;
    iter::from_fn(move || {
        let to = text.floor_char_boundary(from + PIECE);
        let piece = (from < to).then_some((from, to));
        from = to;
        piece
    })
}

/// What every event of a stream begins with, serialised once: an object left open.
struct Head(Vec<u8>);

impl Head {
    fn of(reply: &ChatReply, stamp: &Stamp<'_>) -> Self {
        #[derive(Serialize)]
        struct Fields<'a> {
            id: &'a str,
            object: &'a str,
            created: u64,
            model: &'a str,
        }
        let mut head = Self(Vec::new());
        let object = "chat.completion.chunk";
        let fields = Fields { id: stamp.id, object, created: stamp.created, model: &reply.model };
        write(&mut head.0, &fields);
        head.0.pop();
        // Fingerprints and tiers stand in every chunk; lists and objects (citations) in the last.
        for (name, value) in reply.extra.reply.iter().filter(|(_, value)| is_scalar(value)) {
            if *name != usage::KEY {
                field(&mut head.0, name, value);
            }
        }
        head
    }

    fn chunk(&self, reply: &ChatReply, part: &Part) -> Bytes {
        match part {
            Part::Role => {
                let mut delta = Map::new();
                delta.insert("role".to_owned(), json!("assistant"));
                delta.insert("content".to_owned(), json!(""));
                for (name, value) in &reply.extra.message {
                    if value.is_null() || value.as_str() == Some("") && grows(name) {
                        delta.insert(name.clone(), value.clone());
                    }
                }
                self.delta(&delta)
            }
            Part::Text { field: None, from, to } => self.delta(&Text("content", &reply.text[*from..*to])),
            Part::Text { field: Some(name), from, to } => {
                let text = reply.extra.message.get(name).and_then(Value::as_str).unwrap_or_default();
                self.delta(&Text(name, &text[*from..*to]))
            }
            Part::Rest => {
                let rest = reply.extra.message.iter().filter(|field| is_rest(*field));
                self.delta(&rest.map(|(name, value)| (name, indexed(name, value))).collect::<Fields<'_>>())
            }
            Part::Finish => self.finish(reply),
        }
    }

    fn delta(&self, delta: &impl Serialize) -> Bytes {
        let mut chunk = self.open(PIECE + PIECE / 4);
        chunk.extend_from_slice(br#","choices":[{"index":0,"delta":"#);
        write(&mut chunk, delta);
        chunk.extend_from_slice(br#","finish_reason":null}]}"#);
        chunk.into()
    }

    fn finish(&self, reply: &ChatReply) -> Bytes {
        let mut chunk = self.open(64);
        for (name, value) in reply.extra.reply.iter().filter(|(_, value)| !is_scalar(value)) {
            if *name != usage::KEY {
                field(&mut chunk, name, value);
            }
        }
        chunk.extend_from_slice(br#","choices":[{"index":0,"delta":{}"#);
        for (name, value) in &reply.extra.choice {
            field(&mut chunk, name, value);
        }
        field(&mut chunk, "finish_reason", reply.finish.as_wire());
        chunk.extend_from_slice(b"}]}");
        chunk.into()
    }

    fn usage(&self, usage: &usage::View<'_>) -> Bytes {
        let mut chunk = self.open(128);
        chunk.extend_from_slice(br#","choices":[]"#);
        field(&mut chunk, usage::KEY, usage);
        chunk.push(b'}');
        chunk.into()
    }

    fn open(&self, room: usize) -> Vec<u8> {
        let mut chunk = Vec::with_capacity(self.0.len() + room);
        chunk.extend_from_slice(&self.0);
        chunk
    }
}

/// One field of a delta.
struct Text<'a>(&'a str, &'a str);

impl Serialize for Text<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(iter::once((self.0, self.1)))
    }
}

/// Several fields of a delta.
type Fields<'a> = std::collections::BTreeMap<&'a String, Value>;

/// Tool calls carry their place in a delta.
fn indexed(name: &str, value: &Value) -> Value {
    let mut value = value.clone();
    if let ("tool_calls", Value::Array(calls)) = (name, &mut value) {
        for (index, call) in calls.iter_mut().enumerate() {
            if let Value::Object(call) = call {
                call.insert("index".to_owned(), index.into());
            }
        }
    }
    value
}

fn field<T: Serialize + ?Sized>(chunk: &mut Vec<u8>, name: &str, value: &T) {
    chunk.push(b',');
    write(chunk, name);
    chunk.push(b':');
    write(chunk, value);
}

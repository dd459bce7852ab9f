//! An answer as a legal event stream.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::whole::{MessageView, beside, comes_last, stop_reason, stop_sequence};
use super::{Stamp, TERMINAL, blocks, frame, usage, write};
use crate::chat::ChatReply;

/// Bytes of text in one event, as in OpenAI's streams.
const PIECE: usize = 2048;

/// The events of an answer, framed and named, `message_stop` included.
pub fn render_stream(reply: &ChatReply, stamp: &Stamp<'_>) -> impl Iterator<Item = Bytes> + use<> {
    render_events(reply, stamp).into_iter().map(|data| frame(&data))
}

/// The data of the events of [`render_stream`]: the message without its end, each block with its
/// deltas, the end, the terminal.
pub fn render_events(reply: &ChatReply, stamp: &Stamp<'_>) -> Vec<Bytes> {
    #[derive(Serialize)]
    struct Start<'a> {
        r#type: &'static str,
        message: MessageView<'a>,
    }
    let message = MessageView { reply, stamp, content: &[], ended: false };
    let mut events = vec![write(&Start { r#type: "message_start", message })];
    for (index, block) in blocks::write(reply, stamp.id).iter().enumerate() {
        write_block(&mut events, index, block);
    }
    events.push(write(&end(reply, stamp)));
    events.push(Bytes::from_static(TERMINAL));
    events
}

/// Texts come in pieces, after an empty block that says what they are; so does a tool's input.
fn write_block(events: &mut Vec<Bytes>, index: usize, block: &Value) {
    let mut begun = block.clone();
    let (kind, field, text) = match block["type"].as_str() {
        Some("thinking") => {
            begun["thinking"] = "".into();
            ("thinking_delta", "thinking", block["thinking"].as_str().unwrap_or_default().to_owned())
        }
        Some("tool_use") => {
            begun["input"] = json!({});
            let input = &block["input"];
            let input = input.as_str().map_or_else(|| input.to_string(), str::to_owned);
            ("input_json_delta", "partial_json", input)
        }
        _ => {
            begun["text"] = "".into();
            ("text_delta", "text", block["text"].as_str().unwrap_or_default().to_owned())
        }
    };
    events.push(write(&json!({ "type": "content_block_start", "index": index, "content_block": begun })));
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE));
        let delta = json!({ "type": kind, field: piece });
        events.push(write(&json!({ "type": "content_block_delta", "index": index, "delta": delta })));
        rest = more;
    }
    events.push(write(&json!({ "type": "content_block_stop", "index": index })));
}

/// The stop reason, and the whole usage: its counts are totals.
fn end(reply: &ChatReply, stamp: &Stamp<'_>) -> Value {
    let mut delta = Map::new();
    delta.insert("stop_reason".to_owned(), stop_reason(reply).into());
    delta.insert("stop_sequence".to_owned(), stop_sequence(reply).cloned().unwrap_or_default());
    for (name, value) in beside(reply).filter(|(name, _)| comes_last(name)) {
        delta.insert(name.clone(), value.clone());
    }
    json!({ "type": "message_delta", "delta": delta, "usage": usage::view(reply, stamp.cached) })
}

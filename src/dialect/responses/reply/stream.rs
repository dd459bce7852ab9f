//! An answer as a legal event stream.

use bytes::Bytes;

use super::events::{EventWriter, Said};
use super::items::{Call, Parts};
use super::whole::beside;
use super::{Echo, Stamp, frame, usage};
use crate::chat::ChatReply;

/// Bytes of text in one event, as in the streams of chat completions.
const PIECE: usize = 2048;

/// The events of an answer, framed and named; the last is `response.completed` or
/// `response.incomplete`.
pub fn render_stream(
    reply: &ChatReply,
    stamp: &Stamp<'_>,
    echo: &Echo,
) -> impl Iterator<Item = Bytes> + use<> {
    render_events(reply, stamp, echo).into_iter().map(|data| frame(&data))
}

/// The data of the events of [`render_stream`].
pub fn render_events(reply: &ChatReply, stamp: &Stamp<'_>, echo: &Echo) -> Vec<Bytes> {
    let Parts { thoughts, text, refusal, phase, calls } = Parts::of(reply, stamp.id);
    let mut events = Vec::new();
    let mut writer = EventWriter::new(stamp, echo.clone());
    writer.set_phase(phase.unwrap_or_default());
    writer.begin(&reply.model, &mut events);
    for (said, text) in [(Said::Thoughts, thoughts), (Said::Text, text), (Said::Refusal, refusal)] {
        for piece in pieces(text) {
            writer.say(said, piece, &mut events);
        }
    }
    let last = calls.len();
    for (number, Call { id, name, arguments }) in calls.into_iter().enumerate() {
        let place = writer.begin_call(&id, name, &mut events);
        for piece in pieces(arguments) {
            writer.say_arguments(place, piece, &mut events);
        }
        // The last one ends with the response, and knows then whether it was cut.
        if number + 1 < last {
            writer.end_call(place, &mut events);
        }
    }
    let usage = usage::view(reply, stamp.cached);
    writer.end(Some(&reply.finish), usage, beside(reply), &mut events);
    events
}

/// Pieces of at most `PIECE` bytes, none of which cuts a character.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(PIECE));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

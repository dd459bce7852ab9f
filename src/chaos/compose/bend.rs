//! Faults of time, of the connection and of bytes: an answer that was right is bent.

use std::iter;
use std::time::Duration;

use bytes::Bytes;

use super::{Circumstances, FILLER, coding, scaled};
use crate::chaos::answer::Kind;
use crate::chaos::draft::{Draft, End, Framing, Part};
use crate::chaos::mode::{Coding, Cut, Empty, Length, Mode};

/// One write of a large body.
const BLOCK: usize = 256 << 10;

/// What is neither content nor an event: a comment. For a body that is not a stream, white
/// space, which JSON allows before its first character.
const COMMENT: &[u8] = b": keep-alive\n\n";
const PING: &[u8] = b"event: ping\ndata: {\"type\":\"ping\"}\n\n";
const SPACE: &[u8] = b"\n";

/// Bends a success as the mode says; most modes leave it as it is.
pub(super) fn bend(mode: &Mode, mut draft: Draft, around: &Circumstances<'_>) -> Draft {
    let streamed = draft.head.as_ref().is_some_and(|head| head.framing == Framing::Chunked);
    if streamed {
        let pace = if let Mode::Pace(gap) = mode { *gap } else { around.pace };
        draft.parts.iter_mut().filter(|part| part.kind == Kind::Content).for_each(|part| part.wait = pace);
    }
    match mode {
        Mode::SlowHeaders(pause) => {
            if let Some(head) = &mut draft.head {
                head.pause = *pause;
            }
        }
        Mode::Silent(Some(delay)) => {
            if let Some(first) = draft.parts.first_mut() {
                first.wait += *delay;
            }
        }
        Mode::Silent(None) => hang(&mut draft, 0),
        Mode::Contention { capacity, base } => {
            let load = f64::from(u32::try_from(around.under_way).unwrap_or(u32::MAX)) / f64::from(*capacity);
            draft.wait += scaled(*base, load.max(1.0));
        }
        Mode::KeepaliveOnly { every } => {
            let ping =
                draft.parts.first().is_some_and(|part| part.bytes.starts_with(b"event: message_start"));
            let comment = if !streamed {
                SPACE
            } else if ping {
                PING
            } else {
                COMMENT
            };
            // An Anthropic stream begins with its message_start, and pings come after it.
            draft.parts.truncate(usize::from(ping));
            draft.frame_as(Framing::Chunked);
            draft
                .parts
                .push(Part::new(Kind::Start, Bytes::from_static(comment)).after(*every).times(u64::MAX));
        }
        Mode::RoleOnly { every } => match draft.parts.last_mut().filter(|_| streamed) {
            Some(empty) => *empty = empty.clone().after(*every).times(u64::MAX),
            None => hang(&mut draft, 0),
        },
        Mode::Stall { after, pause: None } => {
            let place = draft.place(*after);
            hang(&mut draft, place);
        }
        Mode::Stall { after, pause: Some(pause) } => {
            let place = draft.place(*after);
            if let Some(part) = draft.parts.get_mut(place) {
                part.wait += *pause;
            }
        }
        Mode::Eof { after, cut } => {
            end_early(&mut draft, *after, *cut);
            draft.measure();
        }
        Mode::Fin { after } => break_off(&mut draft, *after, End::Close),
        Mode::Reset { after: Some(after) } => break_off(&mut draft, *after, End::Reset),
        Mode::Empty(Empty::Body) => {
            draft.parts.clear();
            draft.measure();
        }
        Mode::InvalidUtf8 => {
            fill(&mut draft, &[Part::new(Kind::Content, Bytes::from_static(b"caf\xc3\x28 \xff"))]);
        }
        Mode::ContentLength(length) => misstate(&mut draft, *length),
        Mode::Split(size) => split(&mut draft, *size),
        Mode::Headers { count, size } => {
            let value = "a".repeat(*size);
            (0..*count).for_each(|number| draft.header(&format!("x-{number}"), value.as_str()));
        }
        Mode::Encoding(coding) => coding::encode(&mut draft, *coding),
        Mode::Endless { gap } => {
            draft.frame_as(Framing::Chunked);
            repeat(&mut draft, streamed, b"endless ", u64::MAX, *gap);
        }
        Mode::Huge(size) => grow(&mut draft, streamed, *size),
        Mode::GzipBomb { size } => {
            grow(&mut draft, streamed, *size);
            coding::encode(&mut draft, Coding::Gzip);
        }
        _ => {}
    }
    draft
}

/// Says nothing more from this part on.
fn hang(draft: &mut Draft, place: usize) {
    draft.parts.truncate(place);
    draft.finished = false;
    draft.end = End::Hang;
}

/// The connection ends at this piece of content, in the middle of the body.
fn break_off(draft: &mut Draft, after: usize, end: End) {
    draft.parts.truncate(draft.place(after));
    draft.finished = false;
    draft.end = end;
}

/// The body ends at this piece of content, as if that were all of it.
fn end_early(draft: &mut Draft, after: usize, cut: Cut) {
    let place = draft.place(after);
    let broken = draft.parts.get(place).cloned();
    match cut {
        Cut::Event => draft.parts.truncate(place),
        Cut::Line => {
            draft.parts.truncate(place);
            let half = broken.map(|part| Part { bytes: part.bytes.slice(..part.bytes.len() / 2), ..part });
            draft.parts.extend(half);
        }
        Cut::Char => {
            fill(draft, &[Part::new(Kind::Done, Bytes::from_static(b"caf\xc3"))]);
            let end = draft.parts.iter().position(|part| part.kind == Kind::Done);
            draft.parts.truncate(end.map_or(draft.parts.len(), |end| end + 1));
        }
    }
}

/// Puts parts where the filler stands, which may be torn between two.
fn fill(draft: &mut Draft, filling: &[Part]) {
    let find = |part: &Part| part.bytes.windows(FILLER.len()).position(|window| window == FILLER.as_bytes());
    if !draft.parts.iter().any(|part| find(part).is_some()) {
        draft.parts = vec![Part::new(Kind::Content, draft.bytes())];
    }
    let Some((place, at)) =
        draft.parts.iter().enumerate().find_map(|(place, part)| Some((place, find(part)?)))
    else {
        return;
    };
    let torn = &draft.parts[place];
    let before = Part { kind: Kind::Start, bytes: torn.bytes.slice(..at), ..torn.clone() };
    let after = Part::new(Kind::Finish, torn.bytes.slice(at + FILLER.len()..));
    let filled: Vec<_> = iter::once(before).chain(filling.iter().cloned()).chain([after]).collect();
    draft.parts.splice(place..=place, filled);
    draft.measure();
}

/// Repeats a text inside of the content, or the event that carries the content.
fn repeat(draft: &mut Draft, streamed: bool, text: &[u8], times: u64, gap: Duration) {
    if !streamed {
        fill(draft, &[Part::new(Kind::Content, text.to_vec()).times(times).after(gap)]);
        return;
    }
    let place = draft.place(0);
    let after = draft.parts.split_off(place + 1);
    let before = draft.parts.drain(..place).collect::<Vec<_>>();
    fill(draft, &[Part::new(Kind::Content, text.to_vec())]);
    let event = Part::new(Kind::Content, draft.bytes()).times(times).after(gap);
    draft.parts = [before, vec![event], after].concat();
}

/// Content of this size, or a little more.
fn grow(draft: &mut Draft, streamed: bool, size: u64) {
    let block = u64::try_from(BLOCK).unwrap_or(u64::MAX).min(size).max(1);
    let text = vec![b'a'; usize::try_from(block).unwrap_or(BLOCK)];
    repeat(draft, streamed, &text, size.div_ceil(block), Duration::ZERO);
}

fn misstate(draft: &mut Draft, length: Length) {
    let right = draft.length();
    match length {
        Length::Long => {
            draft.frame_as(Framing::Length(right + right / 2 + 1));
            draft.end = End::Close;
        }
        Length::Short => draft.frame_as(Framing::Length(right / 2)),
        Length::Both => draft.frame_as(Framing::Both(right)),
    }
}

fn split(draft: &mut Draft, size: usize) {
    let cut = |part: &Part| -> Vec<Part> {
        let pieces = (0..part.bytes.len()).step_by(size);
        let mut pieces: Vec<_> = pieces
            .map(|at| Part::new(part.kind, part.bytes.slice(at..(at + size).min(part.bytes.len()))))
            .collect();
        pieces.iter_mut().take(1).for_each(|first| first.wait = part.wait);
        pieces
    };
    draft.parts = draft.parts.iter().flat_map(cut).collect();
}

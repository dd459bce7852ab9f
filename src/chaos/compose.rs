//! From a mode and what was asked to a draft of the answer.

mod bend;
mod coding;

use std::time::Duration;

use bytes::Bytes;

use super::answer::{Answer, Event, Kind, Shape};
use super::asked::{Asked, Dialect};
use super::draft::{Draft, End, Part};
use super::mode::{Chunks, Cut, Done, Empty, Form, Mode, Status};
use super::refusal::{self, http_date, relative};
use super::script::{Content, Draw};
use crate::clock::Timestamp;

/// Stands in the content where a fault puts something that is no text.
const FILLER: &str = "(filler)";

/// What an attempt meets beside its mode.
#[derive(Debug)]
pub(super) struct Circumstances<'a> {
    /// The attempt's number, from 1.
    pub(super) number: u64,
    pub(super) now: Timestamp,
    /// Attempts under way, this one included.
    pub(super) under_way: usize,
    /// The attempt before, and its number.
    pub(super) previous: Option<(Asked, u64)>,
    pub(super) content: &'a Content,
    pub(super) pace: Duration,
}

/// The draft of an answer to `asked`.
pub(super) fn compose(draw: &mut Draw, asked: &Asked, around: &Circumstances<'_>) -> Draft {
    let mode = draw.mode.clone();
    let mut draft = of_mode(&mode, draw, asked, around);
    let id = match asked.dialect {
        Dialect::OpenAi => "x-request-id",
        Dialect::Anthropic => "request-id",
    };
    draft.header("date", http_date(clock(&mode, around.now)));
    draft.header(id, format!("req_{}", around.number));
    draft
}

/// The time that the answer's clock shows.
fn clock(mode: &Mode, now: Timestamp) -> Timestamp {
    match mode {
        Mode::Date { ahead: true, by } => now.after(*by),
        Mode::Date { ahead: false, by } => now.before(*by),
        Mode::Latency { then: mode, .. } | Mode::Header { mode, .. } => clock(mode, now),
        _ => now,
    }
}

fn of_mode(mode: &Mode, draw: &mut Draw, asked: &Asked, around: &Circumstances<'_>) -> Draft {
    let now = around.now;
    match mode {
        Mode::Latency { median, sigma, then } => {
            let mut draft = of_mode(then, draw, asked, around);
            draft.wait += scaled(*median, draw.log_normal(*sigma));
            draft
        }
        Mode::Header { name, value, mode } => {
            let mut draft = of_mode(mode, draw, asked, around);
            draft.header(name, relative(value, now));
            draft
        }
        Mode::Close | Mode::CloseAtAccept => Draft::silence(End::Close),
        Mode::Reset { after: None } => Draft::silence(End::Reset),
        Mode::Refuse { pause } => Draft::silence(End::Refuse(*pause)),
        Mode::Http2(_) => {
            let told = "this mode needs HTTP/2 with prior knowledge\n";
            Draft::whole(505, "text/plain", told)
        }
        Mode::Early(code) => {
            let mut draft = refusal::status(&Status::of(*code), asked.dialect, now);
            draft.header("connection", "close");
            draft.end = End::Close;
            draft
        }
        Mode::Status(status) => refusal::status(status, asked.dialect, now),
        Mode::Error(error) => refusal::provider_error(*error, error.status(), now),
        Mode::ErrorIn200(error) => {
            refusal::provider_error(error.unwrap_or(refusal::overload(asked.dialect)), 200, now)
        }
        Mode::SseError { error, .. } if !asked.stream => {
            refusal::provider_error(error.unwrap_or(refusal::overload(asked.dialect)), 200, now)
        }
        Mode::Redirect(location) => {
            let mut draft = Draft::whole(302, "text/html", "<html><body>Moved</body></html>");
            draft.header("location", location);
            draft
        }
        mode => bend::bend(mode, success(mode, asked, around), around),
    }
}

/// The answer, with its content bent as the mode says.
fn success(mode: &Mode, asked: &Asked, around: &Circumstances<'_>) -> Draft {
    let answer = answer(mode, asked, around);
    let form = match mode {
        Mode::Form(form) => Some(*form),
        _ => None,
    };
    let mut draft = if asked.stream {
        let mut events = answer.events();
        disorder(mode, &answer, &mut events);
        let mut draft = Draft::stream(&events, form);
        draft.header("cache-control", "no-cache");
        draft
    } else {
        let mut body = answer.whole();
        if *mode == Mode::HalfJson {
            body.truncate(floor(&body, body.len() / 2));
        }
        Draft::whole(200, "application/json", body)
    };
    if form == Some(Form::Bom) {
        draft.parts.insert(0, Part::new(Kind::Start, Bytes::from_static(b"\xef\xbb\xbf")));
        draft.measure();
    }
    draft
}

fn answer(mode: &Mode, asked: &Asked, around: &Circumstances<'_>) -> Answer {
    let (other, number);
    let (asked, number) = match (mode, &around.previous) {
        (Mode::Swapped, Some((previous, earlier))) => {
            // What was asked then, in the form that is asked for now.
            other = Asked { dialect: asked.dialect, stream: asked.stream, ..previous.clone() };
            number = *earlier;
            (&other, number)
        }
        (Mode::Swapped, None) => {
            other = Asked { text: "another question".to_owned(), ..asked.clone() };
            (&other, 0)
        }
        _ => (asked, around.number),
    };
    let content = match around.content {
        Content::Echo if !asked.text.is_empty() => asked.text.clone(),
        Content::Fixed(text) => text.clone(),
        _ => format!("answer {number}"),
    };
    let mut answer = Answer::new(asked, number, around.now, &content);
    match mode {
        Mode::Empty(Empty::Choices) => answer.shape = Shape::EmptyList,
        Mode::Empty(Empty::Missing) => answer.shape = Shape::NoList,
        Mode::Empty(Empty::Content) | Mode::RoleOnly { .. } => answer.pieces.clear(),
        Mode::Finish(reason) => answer.finish = (reason != "null").then(|| reason.clone()),
        Mode::WrongModel(model) => answer.model.clone_from(model),
        Mode::Chunks(Chunks::NoUsage) => answer.usage = false,
        Mode::LongLine(size) => {
            answer.pieces = vec!["a".repeat(*size)];
        }
        Mode::InvalidUtf8 | Mode::Endless { .. } | Mode::Huge(_) | Mode::GzipBomb { .. } => {
            answer.pieces = vec![FILLER.to_owned()];
        }
        Mode::Eof { after, cut: Cut::Char } => {
            answer.pieces.truncate(*after);
            answer.pieces.push(FILLER.to_owned());
        }
        _ => {}
    }
    answer
}

/// Faults among the events of a stream.
fn disorder(mode: &Mode, answer: &Answer, events: &mut Vec<Event>) {
    let of_kind = |events: &[Event], kind| -> Vec<usize> {
        (0..events.len()).filter(|place| events[*place].kind == kind).collect()
    };
    let content = of_kind(events, Kind::Content);
    match (mode, content.as_slice()) {
        (Mode::HalfJson, [first, ..]) => {
            let data = &mut events[*first].data;
            data.truncate(floor(data, data.len() / 2));
        }
        (Mode::Chunks(Chunks::Duplicate), [first, ..]) => events.insert(*first, events[*first].clone()),
        (Mode::Chunks(Chunks::Reordered), [first, second, ..]) => events.swap(*first, *second),
        (Mode::Chunks(Chunks::Late), [.., last]) => {
            let late = events.remove(*last);
            let finish = of_kind(events, Kind::Finish);
            events.insert(finish.last().map_or(events.len(), |place| place + 1), late);
        }
        (Mode::RoleOnly { .. }, _) => {
            events.retain(|event| event.kind == Kind::Start);
            events.push(answer.piece(""));
        }
        (Mode::Done(Done::Twice), _) => events.extend(events.last().cloned()),
        (Mode::Done(Done::ThenMore), _) => events.push(answer.piece(" and more")),
        (Mode::Done(Done::Missing), _) => events.retain(|event| event.kind != Kind::Done),
        (Mode::SseError { after, error, done }, content) => {
            let terminal = events.last().cloned();
            let place = after.map_or(0, |after| content.get(after).or(content.last()).copied().unwrap_or(0));
            events.truncate(place);
            events.push(refusal::event(error.unwrap_or(refusal::overload(answer.dialect)), answer.dialect));
            events.extend(terminal.filter(|_| *done));
        }
        _ => {}
    }
}

/// The last place between two characters that is not after `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|place| text.is_char_boundary(*place)).unwrap_or(0)
}

/// A duration times a factor, a day at most.
fn scaled(duration: Duration, factor: f64) -> Duration {
    const DAY: Duration = Duration::from_hours(24);
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).map_or(DAY, |scaled| scaled.min(DAY))
}

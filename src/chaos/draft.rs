//! An answer about to become bytes, in the form in which faults bend it.
//!
//! A fault is a change of this value, and not code beside a socket: so what a mode does can be
//! read in one place, and told from what the server does for all of them.

use std::time::Duration;

use bytes::Bytes;

use super::answer::{Event, Kind};
use super::mode::Form;

/// A head, parts of a body, and an end.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// Before the first byte.
    pub(super) wait: Duration,
    /// Without one, not a byte is said.
    pub(super) head: Option<Head>,
    pub(super) parts: Vec<Part>,
    /// The body ends as its framing says.
    pub(super) finished: bool,
    pub(super) end: End,
}

#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) framing: Framing,
    /// Between the status line and the rest.
    pub(super) pause: Duration,
}

/// How the body's length is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// By a content length: this one, whatever the length is.
    Length(u64),
    Chunked,
    /// Chunked, with a content length beside it.
    Both(u64),
}

/// Bytes that are sent together.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) kind: Kind,
    /// Before it; before each repetition too.
    pub(super) wait: Duration,
    pub(super) bytes: Bytes,
    pub(super) times: u64,
}

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It serves the next request.
    Keep,
    Close,
    /// It stays open, and silent, until the caller leaves.
    Hang,
    Reset,
    /// It is reset, and for this long nobody listens.
    Refuse(Duration),
}

impl Part {
    pub(super) fn new(kind: Kind, bytes: impl Into<Bytes>) -> Self {
        Self { kind, wait: Duration::ZERO, bytes: bytes.into(), times: 1 }
    }

    /// The same again and again.
    pub(super) fn times(self, times: u64) -> Self {
        Self { times, ..self }
    }

    pub(super) fn after(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    fn length(&self) -> u64 {
        u64::try_from(self.bytes.len()).unwrap_or(u64::MAX).saturating_mul(self.times)
    }
}

impl Draft {
    /// Not a byte, and then the end.
    pub(super) fn silence(end: End) -> Self {
        Self { wait: Duration::ZERO, head: None, parts: Vec::new(), finished: false, end }
    }

    /// A body of known length. It has two parts, its halves, so that it can break between them.
    pub(super) fn whole(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let mut body: Bytes = body.into();
        let first = body.split_to(body.len() / 2);
        let halves = [first, body].into_iter().filter(|half| !half.is_empty());
        let mut draft = Self::headed(status, content_type);
        draft.parts = halves.map(|half| Part::new(Kind::Content, half)).collect();
        draft.measure();
        draft
    }

    /// An event stream.
    pub(super) fn stream(events: &[Event], form: Option<Form>) -> Self {
        let mut draft = Self::headed(200, "text/event-stream; charset=utf-8");
        draft.parts = events.iter().map(|event| Part::new(event.kind, frame(event, form))).collect();
        draft.frame_as(Framing::Chunked);
        draft
    }

    fn headed(status: u16, content_type: &str) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        let head = Head { status, headers, framing: Framing::Length(0), pause: Duration::ZERO };
        Self { head: Some(head), finished: true, ..Self::silence(End::Keep) }
    }

    /// Adds a header.
    pub(super) fn header(&mut self, name: &str, value: impl Into<String>) {
        if let Some(head) = &mut self.head {
            head.headers.push((name.to_owned(), value.into()));
        }
    }

    pub(super) fn frame_as(&mut self, framing: Framing) {
        if let Some(head) = &mut self.head {
            head.framing = framing;
        }
    }

    /// Bytes of the body.
    pub(super) fn length(&self) -> u64 {
        self.parts.iter().map(Part::length).fold(0, u64::saturating_add)
    }

    /// Makes a content length right again.
    pub(super) fn measure(&mut self) {
        if let Some(Head { framing: Framing::Length(_), .. }) = self.head {
            self.frame_as(Framing::Length(self.length()));
        }
    }

    /// The place of a piece of content among the parts: of the last one when there are fewer.
    pub(super) fn place(&self, after: usize) -> usize {
        let mut places = (0..self.parts.len()).filter(|place| self.parts[*place].kind == Kind::Content);
        let last = places.clone().next_back().unwrap_or(self.parts.len());
        places.nth(after).unwrap_or(last)
    }

    /// All bytes of the body, repetitions left out.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.parts.iter().flat_map(|part| part.bytes.iter().copied()).collect()
    }
}

/// An event as lines.
fn frame(event: &Event, form: Option<Form>) -> Vec<u8> {
    let (newline, space) = match form {
        Some(Form::Crlf) => ("\r\n", " "),
        Some(Form::Cr) => ("\r", " "),
        Some(Form::NoSpace) => ("\n", ""),
        _ => ("\n", " "),
    };
    let mut lines = String::new();
    let mut line = |name: &str, value: &str| {
        for text in [name, ":", space, value, newline] {
            lines.push_str(text);
        }
    };
    if let Some(name) = event.name {
        line("event", name);
    }
    let data = match form {
        // A comma between two members is a place where JSON allows a line end.
        Some(Form::MultiLine) => event.data.replace(",\"", ",\n\""),
        _ => event.data.clone(),
    };
    data.split('\n').for_each(|data| line("data", data));
    lines.push_str(newline);
    lines.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(data: &str) -> Event {
        Event { kind: Kind::Content, name: Some("delta"), data: data.to_owned() }
    }

    fn framed(form: Option<Form>) -> String {
        String::from_utf8(frame(&event(r#"{"a":1,"b":2}"#), form)).unwrap()
    }

    #[test]
    fn an_event_takes_every_form_that_the_standard_allows() {
        assert_eq!(framed(None), "event: delta\ndata: {\"a\":1,\"b\":2}\n\n");
        assert_eq!(framed(Some(Form::Crlf)), "event: delta\r\ndata: {\"a\":1,\"b\":2}\r\n\r\n");
        assert_eq!(framed(Some(Form::Cr)), "event: delta\rdata: {\"a\":1,\"b\":2}\r\r");
        assert_eq!(framed(Some(Form::NoSpace)), "event:delta\ndata:{\"a\":1,\"b\":2}\n\n");
        assert_eq!(framed(Some(Form::MultiLine)), "event: delta\ndata: {\"a\":1,\ndata: \"b\":2}\n\n");
    }

    #[test]
    fn a_place_beyond_the_last_piece_of_content_is_the_last_one() {
        let event = |kind| Event { kind, ..event("{}") };
        let kinds = [Kind::Start, Kind::Content, Kind::Content, Kind::Finish];
        let stream = Draft::stream(&kinds.map(event), None);
        assert_eq!([0, 1, 2, 99].map(|after| stream.place(after)), [1, 2, 2, 2]);
        let whole = Draft::whole(200, "text/plain", "ab");
        assert_eq!([0, 1, 2].map(|after| whole.place(after)), [0, 1, 1]);
        assert_eq!(Draft::whole(200, "text/plain", "").place(3), 0);
    }
}

//! From a draft to the bytes of HTTP/1.1, in the order in which they are sent.
//!
//! Written by hand, because an HTTP library exists to prevent most of what is sent here.

use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;

use super::draft::{Draft, End, Framing, Head, Part};

/// What is sent, and then what becomes of the connection.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) end: End,
}

/// Bytes, as often as told, after a pause each time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) wait: Duration,
    pub(super) bytes: Bytes,
    pub(super) times: u64,
}

impl Plan {
    /// The plan that carries out a draft.
    pub(super) fn of(draft: Draft) -> Self {
        let mut steps = vec![Step::after(draft.wait, Bytes::new())];
        let chunked = draft.head.as_ref().is_some_and(|head| !matches!(head.framing, Framing::Length(_)));
        if let Some(head) = &draft.head {
            let (first, rest) = lines(head);
            if head.pause.is_zero() {
                steps.push(Step::after(Duration::ZERO, first + &rest));
            } else {
                steps.push(Step::after(Duration::ZERO, first));
                steps.push(Step::after(head.pause, rest));
            }
        }
        for Part { wait, bytes, times, .. } in draft.parts.into_iter().filter(|part| !part.bytes.is_empty()) {
            let bytes = if chunked { chunk(&bytes) } else { bytes };
            steps.push(Step { wait, bytes, times });
        }
        if chunked && draft.finished {
            steps.push(Step::after(Duration::ZERO, Bytes::from_static(b"0\r\n\r\n")));
        }
        Self { steps, end: draft.end }
    }
}

impl Step {
    pub(super) fn after(wait: Duration, bytes: impl Into<Bytes>) -> Self {
        Self { wait, bytes: bytes.into(), times: 1 }
    }
}

/// The status line, and the lines after it.
fn lines(head: &Head) -> (String, String) {
    let reason = match head.status {
        200 => "OK",
        302 => "Found",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "Scripted",
    };
    let first = format!("HTTP/1.1 {} {reason}\r\n", head.status);
    let mut rest = String::new();
    let mut line = |name: &str, value: &str| {
        for text in [name, ": ", value, "\r\n"] {
            rest.push_str(text);
        }
    };
    for (name, value) in &head.headers {
        line(name, value);
    }
    if let Framing::Length(length) | Framing::Both(length) = head.framing {
        line("content-length", &length.to_string());
    }
    if let Framing::Chunked | Framing::Both(_) = head.framing {
        line("transfer-encoding", "chunked");
    }
    rest.push_str("\r\n");
    (first, rest)
}

fn chunk(bytes: &[u8]) -> Bytes {
    let mut head = String::new();
    // Writing into a string cannot fail.
    let _ = write!(head, "{:x}\r\n", bytes.len());
    [head.as_bytes(), bytes, b"\r\n"].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::answer::Kind;

    fn sent(draft: Draft) -> String {
        let plan = Plan::of(draft);
        let bytes: Vec<u8> = plan.steps.iter().flat_map(|step| step.bytes.iter().copied()).collect();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_body_is_framed_by_its_length_or_in_chunks() {
        let mut draft = Draft::whole(200, "text/plain", "hello");
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n";
        assert_eq!(sent(draft.clone()), format!("{head}content-length: 5\r\n\r\nhello"));
        draft.frame_as(Framing::Chunked);
        let chunks = "2\r\nhe\r\n3\r\nllo\r\n";
        assert_eq!(sent(draft.clone()), format!("{head}transfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n"));
        draft.finished = false;
        assert!(sent(draft).ends_with(chunks));
    }

    #[test]
    fn a_slow_head_is_cut_after_the_status_line() {
        let mut draft = Draft::whole(200, "text/plain", "hello");
        if let Some(head) = &mut draft.head {
            head.pause = Duration::from_secs(5);
        }
        let plan = Plan::of(draft);
        assert_eq!(plan.steps[1].bytes, "HTTP/1.1 200 OK\r\n");
        assert_eq!(plan.steps[2].wait, Duration::from_secs(5));
    }

    #[test]
    fn silence_is_not_a_byte() {
        assert_eq!(sent(Draft::silence(End::Reset)), "");
        let empty = Part::new(Kind::Content, "");
        let mut draft = Draft::whole(200, "text/plain", "");
        draft.parts.push(empty);
        draft.frame_as(Framing::Chunked);
        assert!(sent(draft).ends_with("\r\n\r\n0\r\n\r\n"), "an empty part must not end the body");
    }
}

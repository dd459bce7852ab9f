//! Failures of HTTP/2, for callers who speak it with prior knowledge.
//!
//! Answering properly would take header compression; these failures need none, since they do
//! not depend on what was asked. So a rule with a selector never fits here, and a mode that is
//! no failure of HTTP/2 tells the caller to use HTTP/1.1.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};

use super::draft::End;
use super::mode::{Http2, Mode};
use super::request::PREFACE;
use super::socket::Socket;
use super::stage::Stage;
use super::wire::{Plan, Step};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;
const HTTP_1_1_REQUIRED: u32 = 13;

/// A frame's head, and its payload at most, since we allow no more.
const HEAD: usize = 9;
const LARGEST: usize = 1 << 14;

/// `:status 200` from the static table, then `content-type: text/event-stream` as a literal.
const OK: &[u8] = b"\x88\x0f\x10\x11text/event-stream";

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Bytes,
}

/// Serves a connection that begins with the preface.
pub(super) async fn serve(mut socket: Socket, stage: &Arc<Stage>) {
    socket.inbox.advance(PREFACE.len());
    if !socket.say(&frame(SETTINGS, 0, 0, &[])).await {
        return;
    }
    while let Some(frame) = read(&mut socket).await {
        let answer = match (frame.kind, frame.flags & ACK) {
            (SETTINGS, 0) => self::frame(SETTINGS, ACK, 0, &[]),
            (PING, 0) => self::frame(PING, ACK, 0, &frame.payload),
            (HEADERS, _) => {
                if attempt(&mut socket, stage, frame.stream).await == Some(End::Keep) {
                    continue;
                }
                return socket.close().await;
            }
            (GOAWAY, _) => return,
            _ => continue,
        };
        if !socket.say(&answer).await {
            return;
        }
    }
}

async fn attempt(socket: &mut Socket, stage: &Arc<Stage>, stream: u32) -> Option<End> {
    if stage.down().is_some() {
        return None;
    }
    let running = stage.begin("", "");
    let mode = stage.draw("", "", true).mode;
    running.meets(&mode);
    let (bytes, status, end) = match mode {
        Mode::Http2(Http2::Goaway) => (goaway(0, NO_ERROR), None, End::Close),
        Mode::Http2(Http2::Refused) => (reset(stream, REFUSED_STREAM), None, End::Keep),
        Mode::Http2(Http2::Reset) => {
            let head = frame(HEADERS, END_HEADERS, stream, OK);
            let body = frame(DATA, 0, stream, b": begun\n\n");
            ([head, body, reset(stream, INTERNAL_ERROR)].concat(), Some(200), End::Keep)
        }
        _ => (goaway(0, HTTP_1_1_REQUIRED), None, End::Close),
    };
    let plan = Plan { steps: vec![Step::after(Duration::ZERO, bytes)], end };
    let stayed = socket.carry_out(&plan, &running.sent).await;
    running.note(|attempt| {
        attempt.status = status;
        attempt.client_closed = !stayed;
    });
    stayed.then_some(end)
}

fn goaway(last: u32, error: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), error.to_be_bytes()].concat())
}

fn reset(stream: u32, error: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &error.to_be_bytes())
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

async fn read(socket: &mut Socket) -> Option<Frame> {
    while socket.inbox.len() < HEAD {
        if !socket.fill().await {
            return None;
        }
    }
    let mut head = socket.inbox.split_to(HEAD);
    let length = usize::try_from(head.get_uint(3)).ok().filter(|length| *length <= LARGEST)?;
    let (kind, flags, stream) = (head.get_u8(), head.get_u8(), head.get_u32() & (u32::MAX >> 1));
    while socket.inbox.len() < length {
        if !socket.fill().await {
            return None;
        }
    }
    Some(Frame { kind, flags, stream, payload: socket.inbox.split_to(length).freeze() })
}

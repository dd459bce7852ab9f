//! What the upstream does to one request.
//!
//! Why a closed list and not a script of bytes: each mode is a failure that providers have shown,
//! under a name that a scenario file, a test and a report of a bad day can share.

mod catalogue;
mod display;
mod parse;
mod text;
mod words;

use std::time::Duration;

use thiserror::Error;

use super::provider_error::ProviderError;

pub(super) use text::{cut, quote, unquote};
pub use words::{Chunks, Coding, Cut, Done, Empty, Form, Http2, Length, Page};

/// A failure, or the lack of one.
///
/// The text form is the name, then its parameters, separated by colons: the examples below. A
/// value that holds `:`, `;`, `|` or `=` stands in quotes. Durations are as in `1m 30s`, sizes
/// as in `64MiB`; a mode that bends another takes that one's text as its last parameter.
/// `after` counts pieces of content; an answer that is not streamed has two, its halves, and an
/// `after` beyond the last piece means the last.
#[derive(Clone, Debug, PartialEq)]
pub enum Mode {
    /// `ok`: the answer.
    Ok,

    /// `latency:200ms`, `latency:200ms:sigma=0.5`, `latency:60s:status:529`: the head comes late.
    Latency {
        /// The delay; with a sigma, the median of a log-normal distribution.
        median: Duration,
        /// Of the logarithm; 0 is always the median.
        sigma: f64,
        /// What comes then.
        then: Box<Mode>,
    },
    /// `slow-headers:5s`: a status line at once, the rest late, so that a timer on the first byte is fooled.
    SlowHeaders(Duration),
    /// `silent`, `silent:5s`: a head at once, the first byte of the body late or never.
    Silent(Option<Duration>),
    /// `pace:50ms`: the pause before each piece of content.
    Pace(Duration),
    /// `contention:capacity=20:base=200ms`: late instead of failing, the more so the more requests
    /// are under way: base × max(1, under way ÷ capacity), as shared processors behave.
    Contention {
        /// Requests under way that do not yet disturb each other.
        capacity: u32,
        /// The delay up to then.
        base: Duration,
    },

    /// `keepalive-only:every=1s`: comments (pings, white space) and never content.
    KeepaliveOnly {
        /// The pause before each.
        every: Duration,
    },
    /// `role-only:every=1s`: a role, then empty deltas and never content.
    RoleOnly {
        /// The pause before each.
        every: Duration,
    },
    /// `stall:after=3:for=30s`, `stall:after=3`: a pause in mid-answer, or silence for ever.
    Stall {
        /// Pieces of content before it.
        after: usize,
        /// How long; for ever without.
        pause: Option<Duration>,
    },

    /// `eof:after=3:cut=line`: an early end that HTTP takes for a good one.
    Eof {
        /// Pieces of content before it.
        after: usize,
        /// What is cut through.
        cut: Cut,
    },
    /// `fin:after=3`: the connection closes within the body.
    Fin {
        /// Pieces of content before it.
        after: usize,
    },
    /// `reset`, `reset:after=3`: a TCP reset, before the head or within the body.
    Reset {
        /// Pieces of content before it; before the head without.
        after: Option<usize>,
    },
    /// `close`: the request is read, and the connection closes without a byte.
    Close,
    /// `close-at-accept`: the connection closes as soon as it is open.
    CloseAtAccept,
    /// `refuse:for=1s`: a reset, then nobody listens; open connections are reset at their next request.
    Refuse {
        /// How long.
        pause: Duration,
    },
    /// `stale`: a connection answers once, and closes when it is used again.
    Stale,
    /// `h2:goaway`: on HTTP/2 with prior knowledge; an HTTP/1 request is told so with a 505.
    Http2(Http2),
    /// `no-continue`: `expect: 100-continue` is never answered; whoever sends the body all the same is answered.
    NoContinue,
    /// `early:413`: an error while the body is still under way, and the connection closes. Drawn by a
    /// rule that names a model, it comes after the body, which tells the model.
    Early(u16),

    /// `status:429:retry-after=2`: an error in the caller's dialect.
    Status(Status),
    /// `error:gemini-quota`, also `quota:gemini`: an error in a provider's own shape.
    Error(ProviderError),
    /// `error-in-200`, `error-in-200:openai-quota`: the same under a status that says all is well.
    ErrorIn200(Option<ProviderError>),
    /// `sse-error:first`, `sse-error:after=3:error=openai-quota:done`: an error as an event. An answer that
    /// is not streamed is an error in 200.
    SseError {
        /// Pieces of content before it; the very first event without.
        after: Option<usize>,
        /// Which; an overload in the caller's dialect without.
        error: Option<ProviderError>,
        /// Whether the terminal event follows.
        done: bool,
    },
    /// `redirect`, `redirect:http://10.0.0.1/`: a 302, by default to where clouds keep credentials.
    Redirect(String),

    /// `empty:choices`: a success without an answer.
    Empty(Empty),
    /// `finish:length`: a finish reason; `null` is none, `tool_calls` brings a tool call along.
    Finish(String),
    /// `half-json`: JSON cut in the middle, in a body of the right length or in one event.
    HalfJson,
    /// `invalid-utf8`: bytes in the content that are no text.
    InvalidUtf8,
    /// `wrong-model`, `wrong-model:other`: the answer names another model.
    WrongModel(String),
    /// `swapped`: the answer to the attempt before this one.
    Swapped,
    /// `date:+1h`, `date:-1h`: a clock that is off, in the `date` header.
    Date {
        /// In the future.
        ahead: bool,
        /// By how much.
        by: Duration,
    },

    /// `content-length:long`: a length that is not that of the body.
    ContentLength(Length),
    /// `encoding:gzip`: a body encoded though nobody asked for it, well or badly.
    Encoding(Coding),
    /// `gzip-bomb:size=64MiB`: about a thousandth of that on the wire.
    GzipBomb {
        /// Once unpacked.
        size: u64,
    },
    /// `crlf`: event streams as the standard allows them and few write them; of these `bom` alone
    /// touches an answer that is not streamed.
    Form(Form),
    /// `split:1`: chunks and writes of that many bytes.
    Split(usize),
    /// `long-line:1MiB`: content of that size in one event.
    LongLine(usize),
    /// `endless:gap=10ms`: content without end.
    Endless {
        /// The pause before each piece.
        gap: Duration,
    },
    /// `huge:1GiB`: content of that size, and then a good end.
    Huge(u64),
    /// `headers:count=10000:size=8B`: more headers than anyone needs.
    Headers {
        /// How many.
        count: usize,
        /// The size of each one's value.
        size: usize,
    },
    /// `chunks:late`: events that come twice, in another order, or after the end. Streams alone,
    /// but for `no-usage`.
    Chunks(Chunks),
    /// `done:twice`: a stream's terminal event, which is more or less than it should be.
    Done(Done),

    /// `square:on=10s:off=20s:mode=status:529`, `flap:5s:status:529`: in bursts, the first at once;
    /// `ok` in between. Counted from when the script was set.
    Square {
        /// How long a burst lasts.
        on: Duration,
        /// How long the quiet after it lasts.
        off: Duration,
        /// What happens in a burst.
        mode: Box<Mode>,
    },
    /// `percent:30:status:529`, `percent:30:for=60s:status:529`: a part of the attempts, drawn from the seed.
    Percent {
        /// How many of a hundred.
        percent: f64,
        /// Counted from when the script was set; for ever without.
        span: Option<Duration>,
        /// What happens to them.
        mode: Box<Mode>,
    },
    /// `header:x-ratelimit-reset-requests=soon:ok`: one more header on another mode's answer, its
    /// value as in [`Status::headers`].
    Header {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
        /// The mode.
        mode: Box<Mode>,
    },
}

/// An error status and what comes with it: `status:529:message=busy:retry-after=2`.
///
/// What is not given is what OpenAI or Anthropic send with that status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The status, of three digits.
    pub status: u16,
    /// `code=slow_down`: the nested code.
    pub code: Option<String>,
    /// `type=insufficient_quota`: the nested type.
    pub kind: Option<String>,
    /// `message=…`
    pub message: Option<String>,
    /// `body=html`: another kind of body.
    pub page: Option<Page>,
    /// Any other name is a header. In a value, `date+30s` is an HTTP date 30 s from now,
    /// `rfc3339-30s` a time stamp 30 s ago, `unix+30s` and `unix-ms+30s` are the time since 1970.
    pub headers: Vec<(String, String)>,
}

impl Status {
    /// The status alone.
    pub fn of(status: u16) -> Self {
        Self { status, code: None, kind: None, message: None, page: None, headers: Vec::new() }
    }
}

/// A text that is no mode.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("mode `{mode}`: {reason}")]
pub struct ModeError {
    pub(super) mode: String,
    pub(super) reason: String,
}

impl Mode {
    /// Whether it strikes before a request is read.
    pub(super) fn strikes_at_accept(&self) -> bool {
        matches!(self, Self::CloseAtAccept | Self::Refuse { .. })
    }
}

#[cfg(test)]
pub(super) mod tests;

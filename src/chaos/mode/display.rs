//! From mode to text: the shortest that reads back as the same mode.

use std::fmt;

use super::text::{quote, write_duration as time, write_held, write_pair, write_size};
use super::{Mode, Status};

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::Latency { median, sigma, then } => {
                write!(f, "latency:{}", time(*median))?;
                if *sigma > 0.0 {
                    write!(f, ":sigma={sigma}")?;
                }
                if **then == Self::Ok { Ok(()) } else { write!(f, ":{then}") }
            }
            Self::SlowHeaders(delay) => write!(f, "slow-headers:{}", time(*delay)),
            Self::Silent(None) => f.write_str("silent"),
            Self::Silent(Some(delay)) => write!(f, "silent:{}", time(*delay)),
            Self::Pace(gap) => write!(f, "pace:{}", time(*gap)),
            Self::Contention { capacity, base } => {
                write!(f, "contention:capacity={capacity}:base={}", time(*base))
            }
            Self::KeepaliveOnly { every } => write!(f, "keepalive-only:every={}", time(*every)),
            Self::RoleOnly { every } => write!(f, "role-only:every={}", time(*every)),
            Self::Stall { after, pause: None } => write!(f, "stall:after={after}"),
            Self::Stall { after, pause: Some(pause) } => {
                write!(f, "stall:after={after}:for={}", time(*pause))
            }
            Self::Eof { after, cut } => write!(f, "eof:after={after}:cut={}", cut.word()),
            Self::Fin { after } => write!(f, "fin:after={after}"),
            Self::Reset { after: None } => f.write_str("reset"),
            Self::Reset { after: Some(after) } => write!(f, "reset:after={after}"),
            Self::Close => f.write_str("close"),
            Self::CloseAtAccept => f.write_str("close-at-accept"),
            Self::Refuse { pause } => write!(f, "refuse:for={}", time(*pause)),
            Self::Stale => f.write_str("stale"),
            Self::Http2(fault) => write!(f, "h2:{}", fault.word()),
            Self::NoContinue => f.write_str("no-continue"),
            Self::Early(status) => write!(f, "early:{status}"),
            Self::Status(status) => status.fmt(f),
            Self::Error(error) => write!(f, "error:{}", error.name()),
            Self::ErrorIn200(None) => f.write_str("error-in-200"),
            Self::ErrorIn200(Some(error)) => write!(f, "error-in-200:{}", error.name()),
            Self::SseError { after, error, done } => {
                f.write_str("sse-error")?;
                match after {
                    None => f.write_str(":first")?,
                    Some(after) => write!(f, ":after={after}")?,
                }
                if let Some(error) = error {
                    write!(f, ":error={}", error.name())?;
                }
                if *done { f.write_str(":done") } else { Ok(()) }
            }
            Self::Redirect(location) => write!(f, "redirect:{}", quote(location)),
            Self::Empty(empty) => write!(f, "empty:{}", empty.word()),
            Self::Finish(reason) => write!(f, "finish:{}", quote(reason)),
            Self::HalfJson => f.write_str("half-json"),
            Self::InvalidUtf8 => f.write_str("invalid-utf8"),
            Self::WrongModel(model) => write!(f, "wrong-model:{}", quote(model)),
            Self::Swapped => f.write_str("swapped"),
            Self::Date { ahead, by } => write!(f, "date:{}{}", if *ahead { '+' } else { '-' }, time(*by)),
            Self::ContentLength(length) => write!(f, "content-length:{}", length.word()),
            Self::Encoding(coding) => write!(f, "encoding:{}", coding.word()),
            Self::GzipBomb { size } => write!(f, "gzip-bomb:size={}", write_size(*size)),
            Self::Form(form) => f.write_str(form.word()),
            Self::Split(size) => write!(f, "split:{size}"),
            Self::LongLine(size) => write!(f, "long-line:{}", write_held(*size)),
            Self::Endless { gap } => write!(f, "endless:gap={}", time(*gap)),
            Self::Huge(size) => write!(f, "huge:{}", write_size(*size)),
            Self::Headers { count, size } => {
                write!(f, "headers:count={count}:size={}", write_held(*size))
            }
            Self::Chunks(chunks) => write!(f, "chunks:{}", chunks.word()),
            Self::Done(done) => write!(f, "done:{}", done.word()),
            Self::Square { on, off, mode } => {
                write!(f, "square:on={}:off={}:mode={mode}", time(*on), time(*off))
            }
            Self::Percent { percent, span, mode } => {
                write!(f, "percent:{percent}")?;
                if let Some(span) = span {
                    write!(f, ":for={}", time(*span))?;
                }
                write!(f, ":{mode}")
            }
            Self::Header { name, value, mode } => {
                f.write_str("header")?;
                write_pair(f, name, value)?;
                write!(f, ":{mode}")
            }
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status:{}", self.status)?;
        let fields = [("code", &self.code), ("type", &self.kind), ("message", &self.message)];
        for (name, value) in fields {
            if let Some(value) = value {
                write_pair(f, name, value)?;
            }
        }
        if let Some(page) = self.page {
            write_pair(f, "body", page.word())?;
        }
        self.headers.iter().try_for_each(|(name, value)| write_pair(f, name, value))
    }
}

//! From text to mode.

use std::str::FromStr;
use std::time::Duration;

use super::text::{Reader, Reason, cut, duration, held, number, real, size, status, unquote};
use super::{Chunks, Coding, Cut, Done, Empty, Form, Http2, Length, Mode, ModeError, Page, Status};
use crate::chaos::provider_error::ProviderError;

/// Modes within modes; more is a mistake, and could be a way to exhaust the stack.
const DEEPEST: usize = 8;

/// Between two keep-alives, unless told otherwise: as providers do.
const KEEPALIVE: Duration = Duration::from_secs(1);

/// Where a redirect leads, unless told otherwise: where clouds keep credentials.
const METADATA: &str = "http://169.254.169.254/latest/meta-data/iam/security-credentials/";

impl FromStr for Mode {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read(text, DEEPEST).map_err(|reason| ModeError { mode: text.trim().to_owned(), reason })
    }
}

fn read(text: &str, depth: usize) -> Result<Mode, Reason> {
    let (name, mut reader) = Reader::split(text.trim());
    let mode = match wrapper(name, &mut reader, depth)? {
        Some(mode) => mode,
        None => match plain(name, &mut reader)? {
            Some(mode) => mode,
            None => worded(name, &mut reader)?.ok_or_else(|| format!("there is no mode `{name}`"))?,
        },
    };
    reader.end()?;
    Ok(mode)
}

/// The modes that bend another.
fn wrapper(name: &str, reader: &mut Reader<'_>, depth: usize) -> Result<Option<Mode>, Reason> {
    let inner = |reader: &mut Reader<'_>| {
        let Some(rest) = reader.rest() else { return Ok(None) };
        let depth = depth.checked_sub(1).ok_or("modes within modes within modes")?;
        let mode = match cut(rest, &['=']) {
            (name, Some(mode)) if name.trim() == "mode" => mode,
            _ => rest,
        };
        read(mode, depth).map(|mode| Some(Box::new(mode)))
    };
    let needed = |reader: &mut Reader<'_>| inner(reader)?.ok_or("the mode is missing".to_owned());
    Ok(Some(match name {
        "latency" => {
            let median = reader.value("the latency", duration)?;
            let sigma = reader.options(&["sigma"]).get("sigma", |text| real(text, 5.0))?;
            let then = inner(reader)?.unwrap_or_else(|| Box::new(Mode::Ok));
            Mode::Latency { median, sigma: sigma.unwrap_or(0.0), then }
        }
        "square" => {
            let options = reader.options(&["on", "off"]);
            let (on, off) = (options.need("on", duration)?, options.need("off", duration)?);
            Mode::Square { on, off, mode: needed(reader)? }
        }
        "flap" => {
            let half = reader.value("the half period", duration)?;
            Mode::Square { on: half, off: half, mode: needed(reader)? }
        }
        "percent" => {
            let percent = reader.value("the percentage", |text| real(text, 100.0))?;
            let span = reader.options(&["for"]).get("for", duration)?;
            Mode::Percent { percent, span, mode: needed(reader)? }
        }
        "header" => {
            let (name, value) = reader.pair(is_token).ok_or("name=value is missing")?;
            Mode::Header { name: name.to_owned(), value, mode: needed(reader)? }
        }
        _ => return Ok(None),
    }))
}

/// The modes whose parameters are numbers.
fn plain(name: &str, reader: &mut Reader<'_>) -> Result<Option<Mode>, Reason> {
    Ok(Some(match name {
        "ok" => Mode::Ok,
        "slow-headers" => Mode::SlowHeaders(reader.value("the delay", duration)?),
        "silent" => Mode::Silent(reader.part().map(|part| duration(&unquote(part))).transpose()?),
        "pace" => Mode::Pace(reader.value("the pause", duration)?),
        "contention" => {
            let options = reader.options(&["capacity", "base"]);
            let capacity = options.need("capacity", number::<std::num::NonZeroU32>)?.get();
            Mode::Contention { capacity, base: options.need("base", duration)? }
        }
        "keepalive-only" => Mode::KeepaliveOnly { every: every(reader)? },
        "role-only" => Mode::RoleOnly { every: every(reader)? },
        "stall" => {
            let options = reader.options(&["after", "for"]);
            Mode::Stall { after: options.need("after", number)?, pause: options.get("for", duration)? }
        }
        "eof" => {
            let options = reader.options(&["after", "cut"]);
            let cut = options.get("cut", |text| word(text, Cut::from_word))?.unwrap_or(Cut::Event);
            Mode::Eof { after: options.need("after", number)?, cut }
        }
        "fin" => Mode::Fin { after: reader.options(&["after"]).need("after", number)? },
        "reset" => Mode::Reset { after: reader.options(&["after"]).get("after", number)? },
        "close" => Mode::Close,
        "close-at-accept" => Mode::CloseAtAccept,
        "refuse" => Mode::Refuse { pause: reader.options(&["for"]).need("for", duration)? },
        "stale" => Mode::Stale,
        "no-continue" => Mode::NoContinue,
        "early" => Mode::Early(reader.value("the status", status)?),
        "half-json" => Mode::HalfJson,
        "invalid-utf8" => Mode::InvalidUtf8,
        "swapped" => Mode::Swapped,
        "gzip-bomb" => {
            Mode::GzipBomb { size: reader.options(&["size"]).get("size", size)?.unwrap_or(64 << 20) }
        }
        "split" => Mode::Split(reader.value("the size", number::<std::num::NonZeroUsize>)?.get()),
        "long-line" => Mode::LongLine(reader.value("the size", held)?),
        "endless" => {
            Mode::Endless { gap: reader.options(&["gap"]).get("gap", duration)?.unwrap_or_default() }
        }
        "huge" => Mode::Huge(reader.value("the size", size)?),
        "headers" => {
            let options = reader.options(&["count", "size"]);
            Mode::Headers {
                count: options.get("count", held)?.unwrap_or(1),
                size: options.get("size", held)?.unwrap_or(8),
            }
        }
        _ => return Ok(None),
    }))
}

/// The modes whose parameters are words.
fn worded(name: &str, reader: &mut Reader<'_>) -> Result<Option<Mode>, Reason> {
    if let Some(form) = Form::from_word(name) {
        return Ok(Some(Mode::Form(form)));
    }
    Ok(Some(match name {
        "h2" => Mode::Http2(reader.value("goaway, refused or reset", |text| word(text, Http2::from_word))?),
        "status" => Mode::Status(error_status(reader)?),
        "error" => Mode::Error(reader.value("the error", provider_error)?),
        "quota" => Mode::Error(
            reader.value("the provider", |provider| provider_error(&format!("{provider}-quota")))?,
        ),
        "error-in-200" => {
            Mode::ErrorIn200(reader.part().map(|part| provider_error(&unquote(part))).transpose()?)
        }
        "sse-error" => sse_error(reader)?,
        "redirect" => Mode::Redirect(reader.rest().map_or_else(|| METADATA.to_owned(), unquote)),
        "empty" => Mode::Empty(reader.value("what is empty", |text| word(text, Empty::from_word))?),
        "finish" => Mode::Finish(reader.value("the finish reason", |text| Ok(text.to_owned()))?),
        "wrong-model" => Mode::WrongModel(reader.part().map_or_else(|| "another-model".to_owned(), unquote)),
        "date" => reader.value("by how much", |text| match text.split_at_checked(1) {
            Some((sign @ ("+" | "-"), by)) => Ok(Mode::Date { ahead: sign == "+", by: duration(by)? }),
            _ => Err(format!("`{text}` is neither +… nor -…")),
        })?,
        "content-length" => {
            Mode::ContentLength(reader.value("long, short or both", |text| word(text, Length::from_word))?)
        }
        "encoding" => Mode::Encoding(reader.value("the coding", |text| word(text, Coding::from_word))?),
        "chunks" => Mode::Chunks(reader.value("the disorder", |text| word(text, Chunks::from_word))?),
        "done" => {
            Mode::Done(reader.value("twice, then-more or missing", |text| word(text, Done::from_word))?)
        }
        _ => return Ok(None),
    }))
}

fn error_status(reader: &mut Reader<'_>) -> Result<Status, Reason> {
    let mut error = Status::of(reader.value("the status", status)?);
    while let Some((name, value)) = reader.pair(is_token) {
        match name {
            "code" => error.code = Some(value),
            "type" => error.kind = Some(value),
            "message" => error.message = Some(value),
            "body" => error.page = Some(word(&value, Page::from_word)?),
            _ => error.headers.push((name.to_owned(), value)),
        }
    }
    Ok(error)
}

fn sse_error(reader: &mut Reader<'_>) -> Result<Mode, Reason> {
    let (mut after, mut error, mut done) = (None, None, false);
    while let Some(part) = reader.part() {
        match part.split_once('=') {
            None if part == "first" => after = None,
            None if part == "done" => done = true,
            Some(("after", text)) => after = Some(number(text)?),
            Some(("error", text)) => error = Some(provider_error(text)?),
            _ => return Err(format!("`{part}` is not understood")),
        }
    }
    Ok(Mode::SseError { after, error, done })
}

fn every(reader: &mut Reader<'_>) -> Result<Duration, Reason> {
    Ok(reader.options(&["every"]).get("every", duration)?.unwrap_or(KEEPALIVE))
}

fn word<T>(text: &str, find: impl Fn(&str) -> Option<T>) -> Result<T, Reason> {
    find(text).ok_or_else(|| format!("`{text}` is not among the words allowed here"))
}

fn provider_error(name: &str) -> Result<ProviderError, Reason> {
    ProviderError::named(name).ok_or_else(|| format!("there is no provider error `{name}`"))
}

/// What may be a header's name.
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

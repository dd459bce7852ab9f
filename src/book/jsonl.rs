//! JSONL: an object a line. Empty lines are passed over; unknown fields are an error, so that a
//! field that was spelt wrongly is not lost in silence.

use std::io::{self, BufRead};

use super::cell::shortened;
use super::record::{Draft, Record, is_blank};
use super::skipped::Reason;
use super::source::{Bounded, Found, Source};
use super::write::WriteError;

/// The objects of a file.
pub(super) struct Objects<R> {
    source: Source<R>,
    line: Bounded,
}

impl<R: BufRead> Objects<R> {
    pub(super) fn new(source: Source<R>) -> Self {
        Self { source, line: Bounded::default() }
    }

    /// What the next line that is not empty holds.
    pub(super) fn next(&mut self) -> Option<Found> {
        loop {
            self.line.clear();
            let draft = match self.source.take_line(|piece| self.line.push(piece)) {
                Ok(false) => return None,
                Ok(true) => match self.line.text() {
                    Ok(line) if is_blank(line) => continue,
                    line => line.and_then(draft),
                },
                Err(error) => Err(error.into()),
            };
            let line = self.source.line();
            return Some(Found { line, last_line: line, draft });
        }
    }
}

fn draft(line: &str) -> Result<Draft, Reason> {
    // Fields without names would be taken in their order.
    if !line.trim_start().starts_with('{') {
        return Err(Reason::Json("is no JSON object".to_owned()));
    }
    // A record is one line: which one is said by the reader, for the file.
    serde_json::from_str(line).map_err(|error: serde_json::Error| {
        let said = error.to_string();
        let place = said.rfind(" at line 1 column ").unwrap_or(said.len());
        let (what, place) = said.split_at(place);
        Reason::Json(shortened(what) + &place.replace("line 1 ", ""))
    })
}

/// Adds the record's line to `out`.
pub(super) fn write(record: &Record, out: &mut Vec<u8>) -> Result<(), WriteError> {
    serde_json::to_writer(&mut *out, record).map_err(io::Error::from)?;
    out.push(b'\n');
    Ok(())
}

//! Writes one record.

use super::fence::Fences;
use super::lines::{Key, needs_escape};
use super::parse::SEPARATOR;
use crate::book::cell::{written_duration, written_list};
use crate::book::record::Record;
use crate::book::write::{Unwritable, WriteError};

/// Adds the record to `out`, without an empty line behind it.
pub(in crate::book) fn write(record: &Record, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let mut lines = vec![format!("## {}", record.question())];
    let mut meta = |key: Key, value: &str| lines.push(format!("{}: {value}", key.name()));
    record.aliases().iter().for_each(|alias| meta(Key::Also, alias));
    if !record.tags().is_empty() {
        meta(Key::Tags, &written_list(record.tags(), SEPARATOR, ", "));
    }
    if let Some(ttl) = record.ttl() {
        meta(Key::Ttl, &written_duration(ttl));
    }
    if record.pinned() {
        meta(Key::Pinned, "yes");
    }
    let looks_like_metadata = record.answer().lines().next().and_then(Key::of).is_some();
    if lines.len() == 1 && looks_like_metadata {
        lines.push(format!("{}: no", Key::Pinned.name()));
    }
    if lines.iter().any(|line| line.contains('\n')) {
        return Err(Unwritable::SeveralLines.into());
    }
    for line in lines {
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    let mut fences = Fences::default();
    let mut answer = (1..).zip(record.answer().split('\n')).peekable();
    while let Some((number, line)) = answer.next() {
        out.push(b'\n');
        let last = answer.peek().is_none();
        if fences.is_text(line.as_bytes(), number) && needs_escape(line, last) {
            out.push(b'\\');
        }
        out.extend_from_slice(line.as_bytes());
    }
    out.push(b'\n');
    fences.check().map_err(|_| Unwritable::Fence.into())
}

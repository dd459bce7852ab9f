//! Reads one record: a heading, metadata, the answer.

use super::fence::Fences;
use super::lines::{Key, is_title, unescaped};
use crate::book::cell::{duration, list, yes};
use crate::book::record::{Draft, is_blank};
use crate::book::skipped::Reason;

/// Parts tags.
pub(super) const SEPARATOR: char = ',';

/// The record in this text, whose first line is the heading; `number` is that line's.
pub(super) fn parse(text: &str, number: u64) -> Result<Draft, Reason> {
    let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let mut lines = (number..).zip(lines).peekable();
    let mut draft = Draft::default();
    if let Some((_, heading)) = lines.next() {
        heading.strip_prefix("##").unwrap_or(heading).clone_into(&mut draft.question);
    }
    let mut given = Vec::new();
    while let Some((key, value)) = lines.peek().and_then(|(_, line)| Key::of(line)) {
        lines.next();
        if key != Key::Also && given.contains(&key) {
            return Err(Reason::Twice(key.name()));
        }
        given.push(key);
        match key {
            Key::Also => draft.aliases.push(value.to_owned()),
            Key::Tags => draft.tags = list(key.name(), value, SEPARATOR)?,
            Key::Ttl => draft.ttl = duration(key.name(), value)?,
            Key::Pinned => draft.pinned = yes(key.name(), value)?,
        }
    }
    let mut lines = lines.skip_while(|(_, line)| is_blank(line)).peekable();
    let first = lines.peek().and_then(|(_, line)| Key::of(line));
    if let Some((key, _)) = first.filter(|_| given.is_empty()) {
        return Err(Reason::Misplaced(key.name()));
    }
    draft.answer = answer(lines);
    Ok(draft)
}

/// The answer in these lines: without backslashes before what is no heading, and without the titles
/// at its end.
fn answer<'a>(lines: impl Iterator<Item = (u64, &'a str)>) -> String {
    let mut fences = Fences::default();
    let mut answer = String::new();
    let mut kept = 0;
    for (number, line) in lines {
        let text = fences.is_text(line.as_bytes(), number);
        answer.push_str(if text { unescaped(line) } else { line });
        if !(text && (is_title(line.as_bytes()) || is_blank(line))) {
            kept = answer.len();
        }
        answer.push('\n');
    }
    answer.truncate(kept);
    answer
}

//! The grammar that all modes share: parts between colons, values in quotes where they must be.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::str::FromStr;
use std::time::Duration;

/// Cuts at the first of `at` that is not in quotes; `None` when there is none.
pub(in crate::chaos) fn cut<'a>(text: &'a str, at: &[char]) -> (&'a str, Option<&'a str>) {
    let mut quoted = false;
    for (position, character) in text.char_indices() {
        if character == '"' {
            quoted = !quoted;
        } else if !quoted && at.contains(&character) {
            return (&text[..position], Some(&text[position + character.len_utf8()..]));
        }
    }
    (text, None)
}

/// The value that a text stands for, its quotes removed.
pub(in crate::chaos) fn unquote(text: &str) -> String {
    let text = text.trim();
    match text.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => text.to_owned(),
    }
}

/// The text that stands for a value, in quotes where it must be.
pub(in crate::chaos) fn quote(value: &str) -> Cow<'_, str> {
    let plain = |c: char| !matches!(c, ':' | ';' | '|' | '=' | '"' | '*' | '#') && !c.is_whitespace();
    if !value.is_empty() && value.chars().all(plain) {
        return value.into();
    }
    format!("\"{}\"", value.replace('"', "\"\"")).into()
}

/// Why a parameter cannot be read.
pub(super) type Reason = String;

/// Reads parameters from left to right.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    rest: Option<&'a str>,
}

impl<'a> Reader<'a> {
    /// The name, and a reader of what follows it.
    pub(super) fn split(text: &'a str) -> (&'a str, Self) {
        let (name, rest) = cut(text, &[':']);
        (name.trim(), Self { rest })
    }

    /// All that was not read.
    pub(super) fn rest(&mut self) -> Option<&'a str> {
        self.rest.take()
    }

    /// The next part.
    pub(super) fn part(&mut self) -> Option<&'a str> {
        let (part, rest) = cut(self.rest.take()?, &[':']);
        self.rest = rest;
        Some(part.trim())
    }

    /// The next part, when it is `name=value`, and `wanted` wants the name.
    pub(super) fn pair(&mut self, wanted: impl Fn(&str) -> bool) -> Option<(&'a str, String)> {
        let before = self.rest;
        let part = self.part()?;
        if let (name, Some(value)) = cut(part, &['='])
            && wanted(name.trim())
        {
            return Some((name.trim(), unquote(value)));
        }
        self.rest = before;
        None
    }

    /// The parts that follow and are `name=value` with one of `names`, in any order.
    pub(super) fn options(&mut self, names: &[&str]) -> Options<'a> {
        Options(std::iter::from_fn(|| self.pair(|name| names.contains(&name))).collect())
    }

    /// A value that has no name.
    pub(super) fn value<T>(
        &mut self,
        what: &str,
        read: impl Fn(&str) -> Result<T, Reason>,
    ) -> Result<T, Reason> {
        let part = self.part().ok_or_else(|| format!("{what} is missing"))?;
        read(&unquote(part))
    }

    /// Refuses what is left.
    pub(super) fn end(self) -> Result<(), Reason> {
        self.rest.map_or(Ok(()), |rest| Err(format!("`{rest}` is not understood")))
    }
}

/// Values by name.
#[derive(Debug)]
pub(super) struct Options<'a>(Vec<(&'a str, String)>);

impl Options<'_> {
    /// The value, when it was given.
    pub(super) fn get<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, Reason>,
    ) -> Result<Option<T>, Reason> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| read(value)).transpose()
    }

    /// The value, which must be given.
    pub(super) fn need<T>(&self, name: &str, read: impl Fn(&str) -> Result<T, Reason>) -> Result<T, Reason> {
        self.get(name, read)?.ok_or_else(|| format!("{name}=… is missing"))
    }
}

/// A number of the type that is asked for.
pub(super) fn number<T: FromStr>(text: &str) -> Result<T, Reason> {
    text.parse().map_err(|_| format!("`{text}` is not a number that is allowed here"))
}

/// A number that is not negative and not more than `most`.
pub(super) fn real(text: &str, most: f64) -> Result<f64, Reason> {
    let value: f64 = number(text)?;
    if (0.0..=most).contains(&value) {
        return Ok(value);
    }
    Err(format!("`{text}` is not between 0 and {most}"))
}

/// A status of three digits.
pub(super) fn status(text: &str) -> Result<u16, Reason> {
    let status = number(text)?;
    if (200..=999).contains(&status) {
        return Ok(status);
    }
    Err(format!("`{text}` is not a status from 200 to 999"))
}

/// `200ms`, `1m 30s`. A year is long enough, and far from where adding to an instant overflows.
pub(super) fn duration(text: &str) -> Result<Duration, Reason> {
    const YEAR: Duration = Duration::from_hours(365 * 24);
    match humantime::parse_duration(text) {
        Ok(duration) if duration <= YEAR => Ok(duration),
        Ok(_) => Err(format!("`{text}` is more than a year")),
        Err(error) => Err(format!("`{text}` is not a duration ({error})")),
    }
}

/// What [`duration`] reads, without spaces.
pub(super) fn write_duration(duration: Duration) -> String {
    humantime::format_duration(duration).to_string().replace(' ', "")
}

const UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// `64MiB`, 64 GiB at most; a bare number is bytes.
pub(super) fn size(text: &str) -> Result<u64, Reason> {
    sized(text, 1 << 36)
}

/// The same for what is held in memory: 256 MiB at most.
pub(super) fn held(text: &str) -> Result<usize, Reason> {
    sized(text, 1 << 28).and_then(|size| usize::try_from(size).map_err(|error| error.to_string()))
}

fn sized(text: &str, most: u64) -> Result<u64, Reason> {
    let (digits, factor) = UNITS
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))
        .unwrap_or((text, 1));
    let count: u64 = number(digits.trim())?;
    count.checked_mul(factor).filter(|size| *size <= most).ok_or_else(|| format!("`{text}` is too large"))
}

/// What [`size`] reads.
pub(super) fn write_size(size: u64) -> String {
    let (unit, factor) = UNITS.iter().find(|(_, factor)| size.is_multiple_of(*factor)).unwrap_or(&UNITS[3]);
    format!("{}{unit}", size / factor)
}

/// What [`held`] reads.
pub(super) fn write_held(size: usize) -> String {
    u64::try_from(size).map_or_else(|_| size.to_string(), write_size)
}

/// Writes `:name=value`, the value in quotes where it must be.
pub(super) fn write_pair(f: &mut fmt::Formatter<'_>, name: &str, value: &str) -> fmt::Result {
    f.write_char(':')?;
    f.write_str(name)?;
    f.write_char('=')?;
    f.write_str(&quote(value))
}

//! CSV: a row a record, beneath a heading that names the columns in any order and any case.
//!
//! Cells are parted by commas and quoted as in RFC 4180; a quoted cell may have several lines. Rows
//! are told apart here, for two reasons: a row is never held beyond its limit, and a quote that is
//! out of place is seen. The crate would read on as if it were text, and what lies between two such
//! quotes would become an answer. A quote that is not closed takes what follows with it, up to the
//! next quote: the reason says from which line to which, and nothing of it is read.

use std::io::{self, BufRead, Read};

use csv::{ReaderBuilder, StringRecord, Terminator};
use thiserror::Error;

use super::cell::{duration, list, shortened, written_duration, written_list, yes};
use super::read::OpenProblem;
use super::record::{Draft, Record};
use super::skipped::Reason;
use super::source::{Bounded, Found, Source};
use super::write::WriteError;

const SEPARATOR: char = '|';

/// A column a book may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Question,
    Answer,
    Aliases,
    Tags,
    Ttl,
    Pinned,
}

impl Column {
    const ALL: [Self; 6] = [Self::Question, Self::Answer, Self::Aliases, Self::Tags, Self::Ttl, Self::Pinned];

    fn name(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Answer => "answer",
            Self::Aliases => "aliases",
            Self::Tags => "tags",
            Self::Ttl => "ttl",
            Self::Pinned => "pinned",
        }
    }
}

/// Why the rows of a table cannot be understood.
#[derive(Debug, Error)]
pub enum HeadingError {
    /// There is none.
    #[error("there is no heading")]
    Missing,
    /// It is too long, no text or quoted wrongly.
    #[error("the heading: {0}")]
    Broken(Reason),
    /// A column that no book has; its cells would be lost in silence.
    #[error("the heading has a column {0:?}: question, answer, aliases, tags, ttl and pinned are allowed")]
    Unknown(String),
    /// A column that every book has.
    #[error("the heading has no column {0:?}")]
    Lacks(&'static str),
    /// Nobody knows which of the two counts.
    #[error("the heading names the column {0:?} twice")]
    Twice(&'static str),
}

/// The rows of a file.
pub(super) struct Rows<R> {
    source: Source<R>,
    columns: Vec<Column>,
    row: Bounded,
}

impl<R: BufRead> Rows<R> {
    /// Reads the heading.
    pub(super) fn try_new(source: Source<R>) -> Result<Self, OpenProblem> {
        let mut rows = Self { source, columns: Vec::new(), row: Bounded::default() };
        let (_, read) = rows.next_row()?.ok_or(HeadingError::Missing)?;
        let cells = read.and_then(|()| cells(&rows.row)).map_err(HeadingError::Broken)?;
        rows.columns = columns(&cells)?;
        Ok(rows)
    }

    /// What the next row that is not empty holds.
    pub(super) fn next(&mut self) -> Option<Found> {
        let (line, draft) = match self.next_row() {
            Ok(None) => return None,
            Ok(Some((line, read))) => (line, read.and_then(|()| draft(&self.columns, &cells(&self.row)?))),
            Err(error) => (self.source.line(), Err(error.into())),
        };
        Some(Found { line, last_line: self.source.line(), draft })
    }

    /// Takes the next row that is not empty: its first line, and whether it can be parted in cells.
    fn next_row(&mut self) -> io::Result<Option<(u64, Result<(), Reason>)>> {
        loop {
            self.row.clear();
            let mut quotes = Quotes::default();
            let mut begun = None;
            loop {
                let more = self.source.take_line(|piece| {
                    quotes.read(piece);
                    self.row.push(piece);
                })?;
                if !more {
                    return Ok(begun.map(|line| (line, Err(Reason::OpenQuote))));
                }
                let line = *begun.get_or_insert(self.source.line());
                if quotes.at == At::Quoted {
                    continue;
                }
                if quotes.stray {
                    return Ok(Some((line, Err(Reason::StrayQuote))));
                }
                if !self.row.kept().is_empty() {
                    return Ok(Some((line, Ok(()))));
                }
                break;
            }
        }
    }
}

/// Where in a row a byte stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    /// At the beginning of a cell.
    #[default]
    Begin,
    /// In one without quotes; there a quote is text.
    Plain,
    /// Between quotes: line endings and commas are text.
    Quoted,
    /// Behind a quote that closes the cell, or is the first of two.
    Closing,
    /// Behind the return that ends a row.
    Return,
}

/// Follows the quotes through a row.
#[derive(Debug, Default)]
struct Quotes {
    at: At,
    /// Whether text came behind a closing quote.
    stray: bool,
}

impl Quotes {
    fn read(&mut self, piece: &[u8]) {
        for byte in piece {
            self.at = match (self.at, byte) {
                (At::Quoted, b'"') => At::Closing,
                (At::Quoted, _) | (At::Begin | At::Closing, b'"') => At::Quoted,
                (At::Closing, b'\r') => At::Return,
                (At::Return, b'\n') | (At::Begin | At::Plain | At::Closing, b',' | b'\n') => At::Begin,
                (At::Begin | At::Plain, _) => At::Plain,
                (At::Closing | At::Return, _) => {
                    self.stray = true;
                    At::Plain
                }
            };
        }
    }
}

/// The cells of a row.
fn cells(row: &Bounded) -> Result<Vec<String>, Reason> {
    // The crate takes a byte order mark away, and would from every row; behind an empty line it does not.
    let row = b"\n".chain(row.text()?.as_bytes());
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        // A return within a row is text: where rows end is known.
        .terminator(Terminator::Any(b'\n'))
        .from_reader(row);
    let mut cells = StringRecord::new();
    reader.read_record(&mut cells).map_err(io::Error::from)?;
    Ok(cells.iter().map(str::to_owned).collect())
}

fn columns(cells: &[String]) -> Result<Vec<Column>, HeadingError> {
    let mut columns = Vec::new();
    for cell in cells {
        let name = cell.trim();
        let column = Column::ALL.into_iter().find(|column| column.name().eq_ignore_ascii_case(name));
        let column = column.ok_or_else(|| HeadingError::Unknown(shortened(name)))?;
        if columns.contains(&column) {
            return Err(HeadingError::Twice(column.name()));
        }
        columns.push(column);
    }
    for needed in [Column::Question, Column::Answer] {
        if !columns.contains(&needed) {
            return Err(HeadingError::Lacks(needed.name()));
        }
    }
    Ok(columns)
}

fn draft(columns: &[Column], cells: &[String]) -> Result<Draft, Reason> {
    if cells.len() != columns.len() {
        return Err(Reason::Cells { row: cells.len(), heading: columns.len() });
    }
    let mut draft = Draft::default();
    for (column, cell) in columns.iter().zip(cells) {
        let name = column.name();
        match column {
            Column::Question => draft.question.clone_from(cell),
            Column::Answer => draft.answer.clone_from(cell),
            Column::Aliases => draft.aliases = list(name, cell, SEPARATOR)?,
            Column::Tags => draft.tags = list(name, cell, SEPARATOR)?,
            Column::Ttl => draft.ttl = duration(name, cell)?,
            Column::Pinned => draft.pinned = yes(name, cell)?,
        }
    }
    Ok(draft)
}

/// Adds the heading to `out`, with all columns.
pub(super) fn write_heading(out: &mut Vec<u8>) -> io::Result<()> {
    write_row(&Column::ALL.map(Column::name), out)
}

/// Adds the record's row to `out`.
pub(super) fn write(record: &Record, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let row = Column::ALL.map(|column| match column {
        Column::Question => record.question().to_owned(),
        Column::Answer => record.answer().to_owned(),
        Column::Aliases => written_list(record.aliases(), SEPARATOR, "|"),
        Column::Tags => written_list(record.tags(), SEPARATOR, "|"),
        Column::Ttl => record.ttl().map(written_duration).unwrap_or_default(),
        Column::Pinned => if record.pinned() { "yes" } else { "" }.to_owned(),
    });
    Ok(write_row(&row, out)?)
}

fn write_row(row: &[impl AsRef<[u8]>], out: &mut Vec<u8>) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(row)?;
    writer.flush()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Where quotes are in place, rows end where the crate ends them.
        #[test]
        fn rows_are_those_of_the_crate(text in "[\",\na ]{0,30}") {
            let mut rows = Vec::new();
            let source = Source::try_new(text.as_bytes()).unwrap();
            let mut found = Rows { source, columns: Vec::new(), row: Bounded::default() };
            while let Some((_, read)) = found.next_row().unwrap() {
                prop_assume!(read.is_ok());
                rows.push(cells(&found.row).unwrap());
            }
            let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
            let expected: Result<Vec<_>, _> = reader.records().collect();
            let expected = expected.unwrap();
            let expected = expected.iter().map(|row| row.iter().map(str::to_owned).collect::<Vec<_>>());
            prop_assert_eq!(rows, expected.collect::<Vec<_>>());
        }
    }
}

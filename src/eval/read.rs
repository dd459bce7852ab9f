//! Reads labelled sets: tab-separated text with a heading that names the columns.
//!
//! A row that was read wrongly would be a wrong figure that nobody sees, so whatever is not as it
//! should be is an error with file and line. Nothing is quoted or escaped: a cell is all between
//! two tabs.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::pairs::Pair;
use super::stream::Question;

/// Why a set cannot be read.
#[derive(Debug, Error)]
#[error("{}{}: {problem}", path.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// Where in it, from 1; none when the file as a whole is meant.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a set.
#[derive(Debug, Error)]
pub enum Problem {
    /// The file is missing or cannot be read.
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
    /// The line is no text.
    #[error("is not UTF-8")]
    NotText,
    /// The heading lacks a column.
    #[error("the heading has no column {missing:?}, only {found:?}")]
    NoColumn {
        /// Which one.
        missing: &'static str,
        /// Those it has.
        found: Vec<String>,
    },
    /// The heading names a column twice.
    #[error("the heading names the column {0:?} twice")]
    Twice(&'static str),
    /// The row has more or fewer columns than the heading.
    #[error("the row has {row} columns, the heading {heading}")]
    Columns {
        /// In the row.
        row: usize,
        /// In the heading.
        heading: usize,
    },
    /// The label is neither 0 nor 1.
    #[error("the label is {0:?}, not 0 or 1")]
    Label(String),
    /// A stream's question without a class, which no hit could be told right by.
    #[error("the class is empty")]
    NoClass,
    /// There is a heading at most.
    #[error("has no rows")]
    Empty,
}

/// Reads pairs: the columns `a`, `b` and `label` (1: one answer serves both, else 0), and `kind`
/// and `source` where there are any.
pub fn read_pairs(path: &Path) -> Result<Vec<Pair>, ReadError> {
    read(path, &["a", "b", "label"], &["kind", "source"], |cells| {
        let [a, b, label, kind, source] = cells;
        let same = match label.as_str() {
            "1" => true,
            "0" => false,
            _ => return Err(Problem::Label(label)),
        };
        Ok(Pair { a, b, same, kind, source })
    })
}

/// Reads a stream in order of arrival: the columns `class` and `text`, and `source` where there is
/// one.
pub fn read_stream(path: &Path) -> Result<Vec<Question>, ReadError> {
    read(path, &["class", "text"], &["source"], |cells| {
        let [class, text, source] = cells;
        if class.is_empty() { Err(Problem::NoClass) } else { Ok(Question { class, text, source }) }
    })
}

/// Reads all rows; `row` gets the cells of the `needed` columns and then of the `others`, empty
/// where the heading has no such column.
fn read<const N: usize, T>(
    path: &Path,
    needed: &[&'static str],
    others: &[&'static str],
    row: impl Fn([String; N]) -> Result<T, Problem>,
) -> Result<Vec<T>, ReadError> {
    let at = |line: Option<usize>| move |problem| ReadError { path: path.to_owned(), line, problem };
    let bytes = std::fs::read(path).map_err(|error| at(None)(error.into()))?;
    let text = str::from_utf8(&bytes).map_err(|error| {
        at(Some(bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count()))(Problem::NotText)
    })?;
    // Some editors put a byte order mark before the first column's name.
    let mut lines = text.trim_start_matches('\u{feff}').lines().zip(1..);
    let Some((heading, _)) = lines.next() else { return Err(at(None)(Problem::Empty)) };
    let heading: Vec<&str> = heading.split('\t').collect();
    let places = places(&heading, needed, others).map_err(at(Some(1)))?;
    let mut rows = Vec::new();
    for (line, number) in lines.filter(|(line, _)| !line.is_empty()) {
        let cells: Vec<&str> = line.split('\t').collect();
        if cells.len() != heading.len() {
            let problem = Problem::Columns { row: cells.len(), heading: heading.len() };
            return Err(at(Some(number))(problem));
        }
        let cell = |column: usize| places.get(column).copied().flatten().and_then(|place| cells.get(place));
        let cells = std::array::from_fn(|column| cell(column).map_or_else(String::new, ToString::to_string));
        rows.push(row(cells).map_err(at(Some(number)))?);
    }
    if rows.is_empty() { Err(at(None)(Problem::Empty)) } else { Ok(rows) }
}

/// Where in the heading each column stands.
fn places(
    heading: &[&str],
    needed: &[&'static str],
    others: &[&'static str],
) -> Result<Vec<Option<usize>>, Problem> {
    let columns = needed.iter().chain(others);
    let place = |column: &&'static str| {
        let mut found = heading.iter().enumerate().filter(|(_, name)| *name == column);
        let place = found.next().map(|(index, _)| index);
        if found.next().is_some() {
            return Err(Problem::Twice(column));
        }
        if place.is_none() && needed.contains(column) {
            let found = heading.iter().map(|name| (*name).to_owned()).collect();
            return Err(Problem::NoColumn { missing: column, found });
        }
        Ok(place)
    };
    columns.map(place).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    /// What reading a file of these bytes as pairs, and as a stream, gives.
    fn read_both(bytes: &[u8]) -> (Result<Vec<Pair>, String>, Result<Vec<Question>, String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set.tsv");
        fs::write(&path, bytes).unwrap();
        let said = |error: ReadError| error.to_string().replace(&path.display().to_string(), "set.tsv");
        (read_pairs(&path).map_err(said), read_stream(&path).map_err(said))
    }

    fn pairs(text: &str) -> Result<Vec<Pair>, String> {
        read_both(text.as_bytes()).0
    }

    fn stream(text: &str) -> Result<Vec<Question>, String> {
        read_both(text.as_bytes()).1
    }

    #[test]
    fn reads_columns_by_name() {
        let read =
            pairs("kind\tlabel\tb\ta\tsource\tnote\nflip\t0\tto b\tfrom a\tmine\t-\n\nx\t1\t\"q\"\t问\t\t\n");
        let first = Pair {
            a: "from a".into(),
            b: "to b".into(),
            same: false,
            kind: "flip".into(),
            source: "mine".into(),
        };
        let second =
            Pair { a: "问".into(), b: "\"q\"".into(), same: true, kind: "x".into(), source: String::new() };
        assert_eq!(read.unwrap(), [first, second]);

        let read =
            stream("idx\tclass\ttext\tsource\r\n7\tfaq:1\thow?\tfaq\r\n3\tfaq:1\thow so?\tfaq\r\n").unwrap();
        let question =
            |text: &str| Question { class: "faq:1".into(), text: text.into(), source: "faq".into() };
        assert_eq!(read, [question("how?"), question("how so?")], "in the file's order");
    }

    #[test]
    fn kind_and_source_may_be_left_out() {
        let pair = Pair { a: "x".into(), b: "y".into(), same: true, ..Pair::default() };
        assert_eq!(pairs("a\tb\tlabel\nx\ty\t1").unwrap(), [pair]);
        let question = Question { class: "c".into(), text: "x".into(), ..Question::default() };
        assert_eq!(stream("\u{feff}class\ttext\nc\tx").unwrap(), [question]);
    }

    #[test]
    fn errors_name_file_line_and_what_is_wrong() {
        for (text, expected) in [
            ("a\tb\tlabel\nx\ty\tyes", "set.tsv, line 2: the label is \"yes\", not 0 or 1"),
            ("a\tb\tlabel\nx\ty\t1\n\nx\ty\t", "set.tsv, line 4: the label is \"\", not 0 or 1"),
            ("a\tb\tlabel\nx\ty\t1\nx\ty", "set.tsv, line 3: the row has 2 columns, the heading 3"),
            ("a\tb\tlabel\nx\ty\tz\t1", "set.tsv, line 2: the row has 4 columns, the heading 3"),
            ("a\tlabel\nx\t1", "set.tsv, line 1: the heading has no column \"b\", only [\"a\", \"label\"]"),
            ("a\tb\ta\tlabel\nx\ty\tz\t1", "set.tsv, line 1: the heading names the column \"a\" twice"),
            ("a\tb\tlabel\n", "set.tsv: has no rows"),
            ("", "set.tsv: has no rows"),
        ] {
            assert_eq!(pairs(text).unwrap_err(), expected, "{text:?}");
        }
        assert_eq!(stream("class\ttext\n\tx").unwrap_err(), "set.tsv, line 2: the class is empty");
        let not_text = read_both(b"class\ttext\na\tb\n\xff\tx\n").1.unwrap_err();
        assert_eq!(not_text, "set.tsv, line 3: is not UTF-8");
        let missing = read_stream(Path::new("no/such/file.tsv")).unwrap_err();
        assert!(missing.to_string().starts_with("no/such/file.tsv: "), "{missing}");
    }

    proptest! {
        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_both(&bytes);
        }

        #[test]
        fn what_was_written_is_read(rows in prop::collection::vec(
            ("[^\t\r\n]{0,12}", "[^\t\r\n]{0,12}", any::<bool>(), "[a-z_]{0,6}"), 1..20,
        )) {
            let line = |(a, b, same, kind): &(String, String, bool, String)| {
                format!("{a}\t{b}\t{}\t{kind}\tx\n", u8::from(*same))
            };
            let text: String = rows.iter().map(line).collect();
            let read = pairs(&format!("a\tb\tlabel\tkind\tsource\n{text}")).unwrap();
            let read = read.into_iter().map(|pair| (pair.a, pair.b, pair.same, pair.kind));
            prop_assert!(read.eq(rows));
        }
    }
}

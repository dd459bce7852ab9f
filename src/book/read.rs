//! Reads a book, record by record.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;

use super::csv::{HeadingError, Rows};
use super::form::{Form, UnknownForm};
use super::jsonl::Objects;
use super::markdown::Sections;
use super::record::{Record, words};
use super::skipped::{Reason, Skipped};
use super::source::{Found, Source};

/// Something and the line it begins on, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered<T> {
    /// The line.
    pub line: u64,
    /// What begins there.
    pub item: T,
}

/// Why a book cannot be opened.
#[derive(Debug, Error)]
#[error("{}: {problem}", path.display())]
pub struct OpenError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub problem: OpenProblem,
}

/// What is wrong with the file as a whole.
#[derive(Debug, Error)]
pub enum OpenProblem {
    /// Its name does not tell the form, and nobody else did.
    #[error("{0}; --format names it")]
    Form(#[from] UnknownForm),
    /// It is a table whose heading cannot be understood.
    #[error("{0}")]
    Heading(#[from] HeadingError),
    /// It is missing or cannot be read.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
}

/// The records of a book in the file's order, and what is passed over between them.
///
/// A record that cannot be trusted never stops the rest. Only a file that cannot be read on does:
/// [`Reason::ends_the_file`]. A question that comes again is passed over, the first one counts; its
/// aliases are not looked at.
pub struct Reader<R> {
    drafts: Drafts<R>,
    /// Where each question was first; 16 bytes of its SHA-256 stand for it.
    seen: HashMap<[u8; 16], u64>,
    ended: bool,
}

enum Drafts<R> {
    Csv(Rows<R>),
    Jsonl(Objects<R>),
    Markdown(Sections<R>),
}

impl Reader<BufReader<File>> {
    /// Opens a file. Its form is the one told, else what its extension says.
    pub fn open(path: &Path, form: Option<Form>) -> Result<Self, OpenError> {
        let open = || {
            let form = form.map_or_else(|| Form::of(path), Ok)?;
            let file = File::open(path)?;
            Self::try_new(form, BufReader::new(file))
        };
        open().map_err(|problem| OpenError { path: path.to_owned(), problem })
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads what comes of `input`. Reads the heading already, if the form has one.
    pub fn try_new(form: Form, input: R) -> Result<Self, OpenProblem> {
        let source = Source::try_new(input)?;
        let drafts = match form {
            Form::Csv => Drafts::Csv(Rows::try_new(source)?),
            Form::Jsonl => Drafts::Jsonl(Objects::new(source)),
            Form::Markdown => Drafts::Markdown(Sections::new(source)),
        };
        Ok(Self { drafts, seen: HashMap::new(), ended: false })
    }

    fn next_found(&mut self) -> Option<Found> {
        match &mut self.drafts {
            Drafts::Csv(rows) => rows.next(),
            Drafts::Jsonl(objects) => objects.next(),
            Drafts::Markdown(sections) => sections.next(),
        }
    }

    /// Marks the question as seen on this line; an error if it was before.
    fn see(&mut self, record: &Record, line: u64) -> Result<(), Reason> {
        let mut hash = [0; 16];
        hash.copy_from_slice(&Sha256::digest(words(record.question()))[..16]);
        match self.seen.entry(hash) {
            Entry::Occupied(first) => Err(Reason::Repeated { first_line: *first.get() }),
            Entry::Vacant(place) => {
                place.insert(line);
                Ok(())
            }
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Numbered<Record>, Skipped>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let Some(Found { line, last_line, draft }) = self.next_found() else {
            self.ended = true;
            return None;
        };
        let record = draft.and_then(|draft| Ok(Record::try_new(draft)?));
        let record = record.and_then(|record| self.see(&record, line).map(|()| record));
        self.ended = record.as_ref().err().is_some_and(Reason::ends_the_file);
        Some(record.map(|item| Numbered { line, item }).map_err(|reason| Skipped { line, last_line, reason }))
    }
}

impl<R: BufRead> std::iter::FusedIterator for Reader<R> {}

impl<R> std::fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("questions", &self.seen.len()).finish_non_exhaustive()
    }
}

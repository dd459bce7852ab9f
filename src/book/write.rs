//! Writes a book, record by record.

use std::io::{self, Write};

use thiserror::Error;

use super::form::Form;
use super::record::Record;
use super::{MAX_RECORD, csv, jsonl, markdown};

/// Writes records that a [`super::Reader`] of the same form gives back equal, in order.
///
/// It does not look for questions that were written before: of those the reader takes the first.
#[derive(Debug)]
pub struct Writer<W> {
    form: Form,
    output: W,
    /// The record on its way: it is written whole or not at all.
    record: Vec<u8>,
    begun: bool,
}

/// Why a record was not written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The form cannot express it. Nothing of it was written, and the next may follow.
    #[error("{0}")]
    Unwritable(#[from] Unwritable),
    /// The output failed; what it holds now is not known.
    #[error("cannot be written: {0}")]
    Failed(#[from] io::Error),
}

/// What a form cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unwritable {
    /// No reader would take it.
    #[error("the record is longer than {MAX_RECORD} bytes as it is written")]
    TooLong,
    /// Markdown: they stand on one line.
    #[error("the question or an alias has several lines")]
    SeveralLines,
    /// Markdown: the next question would be read as code.
    #[error("the answer has a code fence that is not closed, or seems not to be")]
    Fence,
}

impl<W: Write> Writer<W> {
    /// Begins a book; writes the heading, if the form has one.
    pub fn try_new(form: Form, mut output: W) -> io::Result<Self> {
        let mut record = Vec::new();
        if form == Form::Csv {
            csv::write_heading(&mut record)?;
            output.write_all(&record)?;
        }
        Ok(Self { form, output, record, begun: false })
    }

    /// Writes a record.
    pub fn write(&mut self, record: &Record) -> Result<(), WriteError> {
        self.record.clear();
        match self.form {
            Form::Csv => csv::write(record, &mut self.record),
            Form::Jsonl => jsonl::write(record, &mut self.record),
            Form::Markdown => {
                if self.begun {
                    self.record.push(b'\n');
                }
                markdown::write(record, &mut self.record)
            }
        }?;
        // One byte is the empty line that another record may put behind this one.
        if self.record.len() >= MAX_RECORD {
            return Err(Unwritable::TooLong.into());
        }
        self.output.write_all(&self.record)?;
        self.begun = true;
        Ok(())
    }

    /// Flushes, and gives the output back.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }
}

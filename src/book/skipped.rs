//! What was passed over in a book, and why.

use std::fmt;
use std::io;

use thiserror::Error;

use super::MAX_RECORD;
use super::record::InvalidRecord;

/// A part of the file that holds no record that can be trusted.
#[derive(Debug)]
pub struct Skipped {
    /// Its first line, from 1.
    pub line: u64,
    /// Its last line.
    pub last_line: u64,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, last_line, reason } = self;
        if line == last_line {
            write!(f, "line {line}: {reason}")
        } else {
            write!(f, "lines {line} to {last_line}: {reason}")
        }
    }
}

/// Why a record was passed over.
#[derive(Debug, Error)]
pub enum Reason {
    /// It is not kept in memory to be read.
    #[error("is longer than {MAX_RECORD} bytes")]
    TooLong,
    /// The bytes are no text.
    #[error("is not UTF-8")]
    NotText,
    /// Question, answer or time to live cannot be.
    #[error("{0}")]
    Invalid(#[from] InvalidRecord),
    /// The question was read before, but for white space. The first one counts.
    #[error("the question stands on line {first_line} already")]
    Repeated {
        /// Where it was first.
        first_line: u64,
    },
    /// A value cannot be read.
    #[error("{field} is {value:?}: {allowed}")]
    Value {
        /// Which column or line of metadata.
        field: &'static str,
        /// What it says.
        value: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// CSV: the row has more or fewer cells than the heading.
    #[error("the row has {row} cells, the heading {heading}")]
    Cells {
        /// In the row.
        row: usize,
        /// In the heading.
        heading: usize,
    },
    /// CSV: nobody knows where the cell ends.
    #[error("text follows a closing quote; a quote within a quoted cell is written twice")]
    StrayQuote,
    /// CSV: everything up to the end of the file is in this cell.
    #[error("a quoted cell is not closed up to the end of the file")]
    OpenQuote,
    /// JSONL: the line is no object, or not one of these fields.
    #[error("{0}")]
    Json(String),
    /// Markdown: a line of metadata that may stand only once.
    #[error("there is a second `{0}:` line")]
    Twice(&'static str),
    /// Markdown: nobody knows whether it is metadata or the answer's first line.
    #[error(
        "`{0}:` stands beneath an empty line: put it directly beneath the heading, \
         or, if the answer begins with it, put `Pinned: no` there"
    )]
    Misplaced(&'static str),
    /// Markdown: everything up to the end of the file is in this block of code.
    #[error("the code fence on line {0} is not closed up to the end of the file")]
    OpenFence(u64),
    /// Markdown: a fence opens in one that holds a heading: the first was probably not closed, and
    /// the answer would hold the next question.
    #[error("the code fence on line {outer} holds a `## ` line, and another fence opens on line {inner}")]
    NestedFence {
        /// The one that seems not to be closed.
        outer: u64,
        /// The one that opens in it.
        inner: u64,
    },
    /// The file cannot be read on. Nothing comes after this.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

impl Reason {
    /// A word for each kind, for counting.
    pub fn label(&self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::NotText => "not_text",
            Self::Invalid(_) => "invalid",
            Self::Repeated { .. } => "repeated",
            Self::Value { .. } => "value",
            Self::Cells { .. } => "cells",
            Self::StrayQuote | Self::OpenQuote => "quotes",
            Self::Json(_) => "json",
            Self::Twice(_) | Self::Misplaced(_) => "metadata",
            Self::OpenFence(_) | Self::NestedFence { .. } => "fence",
            Self::Unreadable(_) => "unreadable",
        }
    }

    /// Whether the file broke off here: what follows was not looked at, so the import is not done.
    pub fn ends_the_file(&self) -> bool {
        matches!(self, Self::Unreadable(_))
    }
}

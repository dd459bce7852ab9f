//! The pattern that finds a question.
//!
//! An operator writes it, but callers write what it is matched against, so it must not be
//! possible to make it slow. The `regex` crate never backtracks: a match takes time
//! proportional to the size of the compiled pattern times the length of the text
//! (<https://docs.rs/regex/1/regex/#untrusted-input>), and both are limited here.

use std::ops::Range;

use regex::{Regex, RegexBuilder};
use thiserror::Error;

/// The group that captures the question.
const GROUP: &str = "question";

/// The longest pattern, in bytes.
const PATTERN: usize = 1000;

/// The most a compiled pattern may take, in bytes. A class of all of Unicode, such as `\w`, takes
/// some ten thousand.
const COMPILED: usize = 128 * 1024;

/// The most the matcher may keep of what it worked out on the way, in bytes. When that is full it
/// begins anew, and goes over to a slower way of the same order.
const WORKED_OUT: usize = 1024 * 1024;

/// How deep groups may nest.
const NESTED: u32 = 32;

/// The longest text that is searched, in bytes; in a longer one the question is not found.
pub(super) const TEXT: usize = 256 * 1024;

/// A regular expression with one group, which captures the question:
/// `(?s)^.*\nQuestion: (?<question>.+)$`.
///
/// Compiled once, matched in linear time. Equal when it is written the same.
#[derive(Clone, Debug)]
pub struct QuestionPattern(Regex);

impl QuestionPattern {
    /// Compiles a pattern.
    pub fn try_new(pattern: &str) -> Result<Self, PatternError> {
        if pattern.len() > PATTERN {
            return Err(PatternError::TooLong(pattern.len()));
        }
        let regex = RegexBuilder::new(pattern)
            .size_limit(COMPILED)
            .dfa_size_limit(WORKED_OUT)
            .nest_limit(NESTED)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => PatternError::TooBig,
                error => PatternError::Syntax(in_a_line(&error.to_string())),
            })?;
        match regex.capture_names().skip(1).collect::<Vec<_>>()[..] {
            [Some(GROUP)] => Ok(Self(regex)),
            ref groups if groups.contains(&Some(GROUP)) => Err(PatternError::Groups(groups.len())),
            _ => Err(PatternError::NoGroup),
        }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Where the question stands in a text: what the first match captures, unless it is blank.
    /// `None` for a text of more than 256 KiB.
    pub fn find(&self, text: &str) -> Option<Range<usize>> {
        if text.len() > TEXT {
            return None;
        }
        let question = self.0.captures(text)?.name(GROUP)?;
        (!question.as_str().trim().is_empty()).then(|| question.range())
    }
}

impl PartialEq for QuestionPattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for QuestionPattern {}

/// The reason stands last in the crate's message, behind a drawing of where it is.
fn in_a_line(message: &str) -> String {
    let reason = message.lines().last().unwrap_or(message);
    reason.trim().trim_start_matches("error: ").to_owned()
}

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PatternError {
    /// Too many bytes.
    #[error("the pattern has {0} bytes: up to {PATTERN} are allowed")]
    TooLong(usize),
    /// Too much for a compiled one.
    #[error("the pattern takes more than {} KiB compiled: write shorter repetitions", COMPILED / 1024)]
    TooBig,
    /// Not a regular expression.
    #[error("the pattern is no regular expression: {0}")]
    Syntax(String),
    /// Nothing captures the question.
    #[error("the pattern has no group named {GROUP}: write (?<{GROUP}>…) around what is the question")]
    NoGroup,
    /// More than the question is captured.
    #[error("the pattern has {0} groups: one named {GROUP} is allowed, write the others as (?:…)")]
    Groups(usize),
}

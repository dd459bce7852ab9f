//! A question and its answer.

use std::collections::HashSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A record before it was looked at; also a line of JSONL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// What is asked.
    pub question: String,
    /// What is answered.
    pub answer: String,
    /// Other wordings of the question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Tags, by which answers are taken back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How long the answer may be served; the namespace's time where there is none.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Duration>,
    /// Whether it is to stay, whatever the cache learns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

/// A question and its answer, neither of them empty.
///
/// Texts are as written, but for what no reader would miss: lines end with `\n`; question, aliases
/// and tags have no space around them; an answer has no empty lines before it and no space after
/// it. Empty aliases and tags are left out, and so are aliases that repeat the question or each
/// other (but for white space), and repeated tags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Record(Draft);

/// What a record must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidRecord {
    /// Nothing is asked.
    #[error("the question is empty")]
    NoQuestion,
    /// Nothing is answered.
    #[error("the answer is empty")]
    NoAnswer,
    /// It would never be served.
    #[error("the ttl is 0")]
    NoTime,
}

impl Record {
    /// A record of this.
    pub fn try_new(draft: Draft) -> Result<Self, InvalidRecord> {
        let Draft { question, answer, aliases, tags, ttl, pinned } = draft;
        let question = trimmed(&question);
        if question.is_empty() {
            return Err(InvalidRecord::NoQuestion);
        }
        let answer = unframed(&line_feeds(&answer)).to_owned();
        if answer.is_empty() {
            return Err(InvalidRecord::NoAnswer);
        }
        if ttl.is_some_and(|ttl| ttl.is_zero()) {
            return Err(InvalidRecord::NoTime);
        }
        let mut wordings = HashSet::from([words(&question)]);
        let aliases = aliases.iter().map(|alias| trimmed(alias));
        let aliases = aliases.filter(|alias| !alias.is_empty() && wordings.insert(words(alias))).collect();
        let mut known = HashSet::new();
        let tags = tags.iter().map(|tag| trimmed(tag));
        let tags = tags.filter(|tag| !tag.is_empty() && known.insert(tag.clone())).collect();
        Ok(Self(Draft { question, answer, aliases, tags, ttl, pinned }))
    }

    /// What is asked.
    pub fn question(&self) -> &str {
        &self.0.question
    }

    /// What is answered.
    pub fn answer(&self) -> &str {
        &self.0.answer
    }

    /// Other wordings of the question.
    pub fn aliases(&self) -> &[String] {
        &self.0.aliases
    }

    /// Tags, by which answers are taken back.
    pub fn tags(&self) -> &[String] {
        &self.0.tags
    }

    /// How long the answer may be served, never 0; the namespace's time where there is none.
    pub fn ttl(&self) -> Option<Duration> {
        self.0.ttl
    }

    /// Whether it is to stay, whatever the cache learns.
    pub fn pinned(&self) -> bool {
        self.0.pinned
    }

    /// Its parts.
    pub fn into_draft(self) -> Draft {
        self.0
    }
}

/// What two texts share that differ in white space only.
pub(super) fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn trimmed(text: &str) -> String {
    line_feeds(text.trim())
}

/// The text without the empty lines before it and the space after it. The space before its first
/// word stays: it may be what makes a block of code.
fn unframed(text: &str) -> &str {
    let before = text.len() - text.trim_start().len();
    let start = text[..before].rfind('\n').map_or(0, |newline| newline + 1);
    text[start..].trim_end()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn draft(question: &str, answer: &str) -> Draft {
        Draft { question: question.into(), answer: answer.into(), ..Draft::default() }
    }

    #[test]
    fn texts_are_as_written_within_their_frame() {
        let record =
            Record::try_new(draft(" \tWhat\r\nis  it?\u{a0}\n", "\r\n \n   code\r\n\r\ntext \n ")).unwrap();
        assert_eq!(record.question(), "What\nis  it?");
        assert_eq!(record.answer(), "   code\n\ntext");
    }

    #[test]
    fn empty_ones_and_repeats_are_left_out() {
        let strings = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let aliases = strings(&["a  b", "", "a\nb ", "q", " ", "A b", "Q"]);
        let tags = strings(&["x", "", "x ", "X", "x  y", "x y"]);
        let record = Record::try_new(Draft { aliases, tags, ..draft("q", "x") }).unwrap();
        assert_eq!(record.aliases(), ["a  b", "A b", "Q"], "wordings differ in more than white space");
        assert_eq!(record.tags(), ["x", "X", "x  y", "x y"], "a tag is taken at its letters");
    }

    #[test]
    fn what_is_empty_is_no_record() {
        assert_eq!(Record::try_new(draft(" \n", "x")), Err(InvalidRecord::NoQuestion));
        assert_eq!(Record::try_new(draft("x", "\n\t \r\n")), Err(InvalidRecord::NoAnswer));
        let never = Draft { ttl: Some(Duration::ZERO), ..draft("x", "y") };
        assert_eq!(Record::try_new(never), Err(InvalidRecord::NoTime));
    }

    proptest! {
        #[test]
        fn a_record_made_of_a_records_parts_is_the_same(
            question in "[ \\PC\n\r]{0,20}", answer in "[ \\PC\n\r]{0,20}",
            aliases in prop::collection::vec("[ ab\n\r]{0,4}", 0..5),
        ) {
            if let Ok(record) = Record::try_new(Draft { aliases, ..draft(&question, &answer) }) {
                prop_assert_eq!(Record::try_new(record.clone().into_draft()), Ok(record));
            }
        }
    }
}

//! Where does the question stand in its turn?
//!
//! A prompt with retrieved documents puts a long context and a short question into one turn.
//! Taken as a whole, two questions about the same documents look alike to any encoder, and the
//! same question about other documents looks the same although its answer is not. So a namespace
//! says where the question stands. That alone is matched in other words; all the rest of the turn
//! becomes part of the scope, to the letter.
//!
//! Nothing of a turn is ever lost: question and context together hold every character of it, and
//! its place. A turn in which the question is not found is the question, as without a placement.

mod pattern;

use std::fmt;

use super::Question;
use super::json::Json;

pub use pattern::{PatternError, QuestionPattern};

/// Where the question stands: `{ pattern = "…" }` or `{ part = "last" }`; the whole turn is it
/// when the setting is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The whole turn is the question.
    #[default]
    Turn,
    /// What the pattern captures, in the last text part that it matches.
    Pattern(QuestionPattern),
    /// The last text part that is not blank.
    LastPart,
}

/// A turn, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// What may be asked in other words.
    pub question: Question,
    /// The rest.
    pub context: Context,
}

/// What stands around the question, by text parts of the turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context(Vec<Part>);

/// What of a text part is context.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Nothing: it is the question.
    None,
    /// All of it.
    All(String),
    /// What stands before the question, and after.
    Around(String, String),
}

impl Placement {
    /// What a pattern captures, or the `last` part; exactly one of the two.
    pub fn try_new(pattern: Option<&str>, part: Option<&str>) -> Result<Self, PlacementError> {
        match (pattern, part) {
            (Some(pattern), None) => Ok(Self::Pattern(QuestionPattern::try_new(pattern)?)),
            (None, Some("last")) => Ok(Self::LastPart),
            (None, Some(part)) => Err(PlacementError::Part(part.to_owned())),
            (Some(_), Some(_)) => Err(PlacementError::Both),
            (None, None) => Err(PlacementError::Neither),
        }
    }

    /// Takes a turn apart. Time is linear in the turn's length; see [`QuestionPattern`].
    pub fn place(&self, turn: Question) -> Placed {
        match self.find(&turn) {
            None => Placed { context: Context(vec![Part::None; turn.parts.len()]), question: turn },
            Some((part, range)) => {
                let question = turn.parts[part][range.clone()].to_owned();
                let mut context: Vec<Part> = turn.parts.into_iter().map(Part::All).collect();
                if let Part::All(text) = &context[part] {
                    let (before, after) = (&text[..range.start], &text[range.end..]);
                    context[part] = match (before, after) {
                        ("", "") => Part::None,
                        (before, after) => Part::Around(before.to_owned(), after.to_owned()),
                    };
                }
                Placed { question: Question { parts: vec![question] }, context: Context(context) }
            }
        }
    }

    /// In which part the question stands, and where.
    fn find(&self, turn: &Question) -> Option<(usize, std::ops::Range<usize>)> {
        let mut parts = turn.parts.iter().enumerate().rev();
        match self {
            Self::Turn => None,
            Self::Pattern(pattern) => parts.find_map(|(part, text)| Some((part, pattern.find(text)?))),
            Self::LastPart => {
                parts.find(|(_, text)| !text.trim().is_empty()).map(|(part, text)| (part, 0..text.len()))
            }
        }
    }
}

impl Context {
    /// The whole turn is the question.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|part| *part == Part::None)
    }

    /// The context for the scope: an array with, for each text part, `null`, its text, or its
    /// text before and after the question. Equal exactly when the contexts are.
    pub fn to_json(&self) -> Json {
        let text = |text: &String| Json::String(text.clone());
        Json::Array(
            self.0
                .iter()
                .map(|part| match part {
                    Part::None => Json::Null,
                    Part::All(all) => text(all),
                    Part::Around(before, after) => Json::Array(vec![text(before), text(after)]),
                })
                .collect(),
        )
    }
}

/// What is wrong with a placement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The pattern cannot be used.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// There is no such part.
    #[error("part = {0:?}: \"last\" is allowed")]
    Part(String),
    /// Two places.
    #[error("both pattern and part are set: one of them is allowed")]
    Both,
    /// No place.
    #[error("neither pattern nor part is set: {{ pattern = \"…\" }} or {{ part = \"last\" }} is allowed")]
    Neither,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn => f.write_str("the whole turn"),
            Self::Pattern(pattern) => write!(f, "what {:?} captures", pattern.as_str()),
            Self::LastPart => f.write_str("the last part"),
        }
    }
}

#[cfg(test)]
mod tests;

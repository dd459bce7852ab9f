//! An answer, before it takes a wire form.
//!
//! Both forms of both dialects are made from one value, so that a fault of the content (a wrong
//! model, an empty list) is written once and meets all four.

mod anthropic;
mod openai;

use crate::clock::Timestamp;

use super::asked::{Asked, Dialect};

/// Pieces that an answer is streamed in, at most; short ones have two characters each.
const PIECES: usize = 64;

/// What is said, by whom, and how it ends.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) dialect: Dialect,
    /// The attempt's number, which makes the id.
    pub(super) number: u64,
    pub(super) created: Timestamp,
    pub(super) model: String,
    /// The content as it is streamed.
    pub(super) pieces: Vec<String>,
    /// A finish reason in OpenAI's words.
    pub(super) finish: Option<String>,
    pub(super) shape: Shape,
    /// Whether a usage is given at all.
    pub(super) usage: bool,
    include_usage: bool,
    prompt_tokens: usize,
}

/// Whether the list of choices (Anthropic: of content blocks) is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Full,
    EmptyList,
    NoList,
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) kind: Kind,
    /// Anthropic's events have names.
    pub(super) name: Option<&'static str>,
    pub(super) data: String,
}

/// What an event, or a part of a body, carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Start,
    Content,
    Finish,
    Usage,
    Done,
}

impl Answer {
    /// Says `content` to who asked.
    pub(super) fn new(asked: &Asked, number: u64, created: Timestamp, content: &str) -> Self {
        Self {
            dialect: asked.dialect,
            number,
            created,
            model: asked.model.clone(),
            pieces: pieces(content),
            finish: Some("stop".to_owned()),
            shape: Shape::Full,
            usage: true,
            include_usage: asked.include_usage,
            prompt_tokens: asked.prompt_tokens,
        }
    }

    /// The body of an answer that is not streamed.
    pub(super) fn whole(&self) -> String {
        match self.dialect {
            Dialect::OpenAi => openai::whole(self),
            Dialect::Anthropic => anthropic::whole(self),
        }
    }

    /// The events of a stream, its terminal one included.
    pub(super) fn events(&self) -> Vec<Event> {
        match self.dialect {
            Dialect::OpenAi => openai::events(self),
            Dialect::Anthropic => anthropic::events(self),
        }
    }

    /// An event with a piece of content.
    pub(super) fn piece(&self, text: &str) -> Event {
        match self.dialect {
            Dialect::OpenAi => openai::piece(self, text),
            Dialect::Anthropic => anthropic::piece(text),
        }
    }

    fn text(&self) -> String {
        self.pieces.concat()
    }

    /// The finish reason is `tool_calls`: then there is a call.
    fn calls_a_tool(&self) -> bool {
        self.finish.as_deref() == Some("tool_calls")
    }
}

/// Cuts a content into pieces of whole characters.
fn pieces(content: &str) -> Vec<String> {
    let characters: Vec<char> = content.chars().collect();
    let length = characters.len().div_ceil(PIECES).max(2);
    characters.chunks(length).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_answers_stream_in_pieces_of_two_characters() {
        assert_eq!(pieces("answer 7"), ["an", "sw", "er", " 7"]);
        assert!(pieces("").is_empty());
    }

    proptest! {
        #[test]
        fn pieces_are_few_and_make_the_whole(content in any::<String>()) {
            let pieces = pieces(&content);
            prop_assert!(pieces.len() <= PIECES);
            prop_assert_eq!(pieces.concat(), content);
        }
    }
}

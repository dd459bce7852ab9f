//! A streamed answer of either dialect, put together from its events.

use super::openai::reply::ReplyFault;
use super::{Dialect, anthropic, openai, responses};
use crate::chat::{ChatReply, EventKind, Usage};

/// Puts the events of one stream together.
#[derive(Debug)]
pub enum Assembler {
    /// Of OpenAI's chunks; the terminal is none.
    OpenAi(openai::reply::Assembler),
    /// Of Anthropic's events, the terminal included.
    Anthropic(anthropic::reply::Assembler),
    /// Of a response's events, the terminal included.
    Responses(responses::reply::Assembler),
}

impl Assembler {
    /// For a stream in this dialect.
    pub fn new(dialect: Dialect) -> Self {
        match dialect {
            Dialect::OpenAi => Self::OpenAi(openai::reply::Assembler::default()),
            Dialect::Anthropic => Self::Anthropic(anthropic::reply::Assembler::default()),
            Dialect::Responses => Self::Responses(responses::reply::Assembler::default()),
        }
    }

    /// Takes the data of one event and says what it carries.
    pub fn push(&mut self, data: &[u8]) -> Result<EventKind, ReplyFault> {
        match self {
            Self::OpenAi(assembler) => assembler.push(data),
            Self::Anthropic(assembler) => assembler.push(data),
            Self::Responses(assembler) => assembler.push(data),
        }
    }

    /// What has come so far is the beginning of an answer.
    pub fn has_begun(&self) -> bool {
        match self {
            Self::OpenAi(assembler) => assembler.has_begun(),
            Self::Anthropic(assembler) => assembler.has_begun(),
            Self::Responses(assembler) => assembler.has_begun(),
        }
    }

    /// The reason why the answer ended was seen.
    pub fn has_finished(&self) -> bool {
        match self {
            Self::OpenAi(assembler) => assembler.has_finished(),
            Self::Anthropic(assembler) => assembler.has_finished(),
            Self::Responses(assembler) => assembler.has_finished(),
        }
    }

    /// What the answer cost, as far as it was told.
    pub fn usage(&self) -> Option<Usage> {
        match self {
            Self::OpenAi(assembler) => assembler.usage(),
            Self::Anthropic(assembler) => assembler.usage(),
            Self::Responses(assembler) => assembler.usage(),
        }
    }

    /// The whole answer; `None` when it is no single one, or leaves a doubt.
    pub fn finish(self) -> Option<ChatReply> {
        match self {
            Self::OpenAi(assembler) => assembler.finish(),
            Self::Anthropic(assembler) => assembler.finish(),
            Self::Responses(assembler) => assembler.finish(),
        }
    }
}

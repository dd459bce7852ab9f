//! A whole exchange from one dialect to another, whichever way it goes.

use bytes::Bytes;
use serde_json::Value;

use super::reply::{self, CrossFault};
use super::stream::{ToAnthropic, ToOpenAi};
use super::{Inexpressible, request};
use crate::dialect::Dialect;
use crate::dialect::openai::reply::{ReplyFault, Stamp};

impl Dialect {
    /// A request of the other dialect in this one.
    pub fn translate_request(self, body: &Value) -> Result<Value, Inexpressible> {
        match self {
            Self::OpenAi => request::to_openai(body),
            Self::Anthropic => request::to_anthropic(body),
        }
    }

    /// A whole answer of the other dialect in this one.
    pub fn translate_whole(self, body: &[u8], stamp: &Stamp<'_>) -> Result<Bytes, CrossFault> {
        match self {
            Self::OpenAi => reply::to_openai(body, stamp),
            Self::Anthropic => reply::to_anthropic(body, stamp),
        }
    }
}

/// Converts one stream into the dialect that a caller speaks.
#[derive(Debug)]
pub struct Translator(Way);

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one a stream, and it is not copied around")]
enum Way {
    ToOpenAi(ToOpenAi),
    ToAnthropic(ToAnthropic),
}

impl Translator {
    /// Into `dialect`, from the other one, with the usage told.
    pub fn new(dialect: Dialect, stamp: &Stamp<'_>) -> Self {
        Self(match dialect {
            Dialect::OpenAi => Way::ToOpenAi(ToOpenAi::new(stamp, true)),
            Dialect::Anthropic => Way::ToAnthropic(ToAnthropic::new(stamp)),
        })
    }

    /// The data of the events that one event's data stands for, the terminal's included.
    pub fn push(&mut self, data: &[u8]) -> Result<Vec<Bytes>, ReplyFault> {
        match &mut self.0 {
            Way::ToOpenAi(way) => way.push(data),
            Way::ToAnthropic(way) => way.push(data),
        }
    }

    /// Something had no words in the caller's dialect and was passed over, so that what was said is no
    /// whole answer to keep.
    pub fn has_skipped(&self) -> bool {
        match &self.0 {
            Way::ToOpenAi(way) => way.has_skipped(),
            Way::ToAnthropic(way) => way.has_skipped(),
        }
    }

    /// What is still to be said where the stream ends without its terminal.
    pub fn end(&mut self) -> Vec<Bytes> {
        match &mut self.0 {
            Way::ToOpenAi(way) => way.end(),
            Way::ToAnthropic(way) => way.end(),
        }
    }
}

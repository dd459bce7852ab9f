//! A whole exchange from one dialect to another, whichever way it goes.

use bytes::Bytes;
use serde_json::Value;

use super::reply::{self, CrossFault};
use super::responses::stream::ToResponses;
use super::stream::{ToAnthropic, ToOpenAi};
use super::{Inexpressible, request, responses};
use crate::dialect::Dialect;
use crate::dialect::openai::reply::{ReplyFault, Stamp};
use crate::dialect::responses::reply::Echo;

impl Dialect {
    /// A request of the other dialect in this one.
    pub fn translate_request(self, body: &Value) -> Result<Value, Inexpressible> {
        match self {
            Self::OpenAi => request::to_openai(body),
            Self::Anthropic => request::to_anthropic(body),
            Self::Responses => Err(Inexpressible::new("the request", "is not put as a response")),
        }
    }

    /// A whole answer of the other dialect in this one.
    pub fn translate_whole(self, body: &[u8], stamp: &Stamp<'_>) -> Result<Bytes, CrossFault> {
        match self {
            Self::OpenAi => reply::to_openai(body, stamp),
            Self::Anthropic => reply::to_anthropic(body, stamp),
            Self::Responses => responses::reply::to_responses(body, stamp, &Echo::default()),
        }
    }
}

/// Converts one stream into the dialect that a caller speaks.
#[derive(Debug)]
pub struct Translator(Way);

#[derive(Debug)]
enum Way {
    OpenAi(ToOpenAi),
    Anthropic(ToAnthropic),
    Responses(ToResponses),
}

impl Translator {
    /// Into `dialect`, from the other one (responses: from chat completions), with the usage told.
    pub fn new(dialect: Dialect, stamp: &Stamp<'_>) -> Self {
        Self(match dialect {
            Dialect::OpenAi => Way::OpenAi(ToOpenAi::new(stamp, true)),
            Dialect::Anthropic => Way::Anthropic(ToAnthropic::new(stamp)),
            Dialect::Responses => Way::Responses(ToResponses::new(stamp, &Echo::default())),
        })
    }

    /// Into responses, from chat completions, for a request that they repeat so.
    pub fn to_responses(stamp: &Stamp<'_>, echo: &Echo) -> Self {
        Self(Way::Responses(ToResponses::new(stamp, echo)))
    }

    /// The data of the events that one event's data stands for, the terminal's included.
    pub fn push(&mut self, data: &[u8]) -> Result<Vec<Bytes>, ReplyFault> {
        match &mut self.0 {
            Way::OpenAi(way) => way.push(data),
            Way::Anthropic(way) => way.push(data),
            Way::Responses(way) => way.push(data),
        }
    }

    /// Something had no words in the caller's dialect and was passed over, so that what was said is no
    /// whole answer to keep.
    pub fn has_skipped(&self) -> bool {
        match &self.0 {
            Way::OpenAi(way) => way.has_skipped(),
            Way::Anthropic(way) => way.has_skipped(),
            Way::Responses(_) => false,
        }
    }

    /// What is still to be said where the stream ends without its terminal.
    pub fn end(&mut self) -> Vec<Bytes> {
        match &mut self.0 {
            Way::OpenAi(way) => way.end(),
            Way::Anthropic(way) => way.end(),
            Way::Responses(way) => way.end(),
        }
    }
}

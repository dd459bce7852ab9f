//! Wire forms of a conversation and their canonical form; nothing else.

pub mod anthropic;
mod assembler;
mod canonical;
pub mod cross;
pub mod openai;
mod passage;
pub mod responses;

use bytes::Bytes;
use serde::Deserialize;
use uuid::Uuid;

use crate::chat::{Api, ChatReply, Usage};
use openai::reply::{ReplyFault, Stamp};
use responses::reply::Echo;

pub use assembler::Assembler;
pub use passage::Passage;

/// How requests and answers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// As OpenAI's chat completions.
    OpenAi,
    /// As Anthropic's messages.
    Anthropic,
    /// As OpenAI's responses.
    Responses,
}

impl From<Api> for Dialect {
    fn from(api: Api) -> Self {
        match api {
            Api::Chat | Api::Embeddings => Self::OpenAi,
            Api::Messages | Api::CountTokens => Self::Anthropic,
            Api::Responses => Self::Responses,
        }
    }
}

impl Dialect {
    /// The id of an answer, made of something unique.
    pub fn id(self, unique: Uuid) -> String {
        match self {
            Self::OpenAi => format!("chatcmpl-{}", unique.simple()),
            Self::Anthropic => format!("msg_{}", unique.simple()),
            Self::Responses => format!("{}{}", responses::OUR_IDS, unique.simple()),
        }
    }

    /// Reads a whole answer; `None` when it is no single one.
    pub fn parse_whole(self, body: &[u8]) -> Result<Option<ChatReply>, ReplyFault> {
        match self {
            Self::OpenAi => openai::reply::parse_whole(body),
            Self::Anthropic => anthropic::reply::parse_whole(body),
            Self::Responses => responses::reply::parse_whole(body),
        }
    }

    /// What a whole answer says it cost, also where it is no single one.
    pub fn usage_of(self, body: &[u8]) -> Option<Usage> {
        #[derive(Deserialize)]
        struct Metered {
            usage: serde_json::Map<String, serde_json::Value>,
        }
        let Metered { usage } = serde_json::from_slice(body).ok()?;
        let count = |name: &str| usage.get(name).and_then(serde_json::Value::as_u64);
        let (prompt, completion) = match self {
            Self::Anthropic => return anthropic::reply::usage::counts(&usage),
            Self::OpenAi => ("prompt_tokens", "completion_tokens"),
            Self::Responses => ("input_tokens", "output_tokens"),
        };
        Some(Usage { prompt_tokens: count(prompt)?, completion_tokens: count(completion)? })
    }

    /// An answer's body.
    pub fn render_whole(self, reply: &ChatReply, stamp: &Stamp<'_>) -> Bytes {
        match self {
            Self::OpenAi => openai::reply::render_whole(reply, stamp),
            Self::Anthropic => anthropic::reply::render_whole(reply, stamp),
            Self::Responses => responses::reply::render_whole(reply, stamp, &Echo::default()),
        }
    }

    /// The data of the events that an answer is streamed as, the terminal among them. Anthropic's
    /// always tell the usage.
    pub fn render_events(
        self,
        reply: ChatReply,
        stamp: &Stamp<'_>,
        include_usage: bool,
    ) -> Box<dyn Iterator<Item = Bytes> + Send> {
        match self {
            Self::OpenAi => {
                let terminal = Bytes::from_static(openai::reply::TERMINAL);
                Box::new(openai::reply::render_chunks(reply, stamp, include_usage).chain([terminal]))
            }
            Self::Anthropic => Box::new(anthropic::reply::render_events(&reply, stamp).into_iter()),
            Self::Responses => {
                Box::new(responses::reply::render_events(&reply, stamp, &Echo::default()).into_iter())
            }
        }
    }

    /// An answer as a stream, frame by frame as it goes on the wire.
    pub fn render_stream(self, reply: &ChatReply, stamp: &Stamp<'_>, include_usage: bool) -> Vec<Bytes> {
        match self {
            Self::OpenAi => openai::reply::render_stream(reply, stamp, include_usage).collect(),
            Self::Anthropic => anthropic::reply::render_stream(reply, stamp).collect(),
            Self::Responses => responses::reply::render_stream(reply, stamp, &Echo::default()).collect(),
        }
    }

    /// One event of a stream on the wire.
    pub fn frame(self, data: &[u8]) -> Bytes {
        match self {
            Self::OpenAi => openai::reply::frame(data),
            Self::Anthropic => anthropic::reply::frame(data),
            Self::Responses => responses::reply::frame(data),
        }
    }

    /// Whether an event's data is the one that ends a stream.
    pub fn is_terminal(self, data: &[u8]) -> bool {
        match self {
            Self::OpenAi => openai::reply::is_terminal(data),
            Self::Anthropic => anthropic::reply::is_terminal(data),
            Self::Responses => responses::reply::is_terminal(data),
        }
    }
}

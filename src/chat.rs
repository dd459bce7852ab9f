//! The canonical form of a conversation, in which all dialects meet.
//!
//! A request keeps the caller's own bytes beside what was understood of them: the key is made
//! from the understanding, the provider gets the bytes. So a field that nobody here has heard
//! of still reaches the model, and still tells two questions apart.

pub mod json;
pub mod placement;

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use http::HeaderMap;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use json::Json;
use placement::{Placed, Placement};

/// The call that a caller makes. What it gets is of the same form, whoever answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI's chat completions.
    #[default]
    Chat,
    /// Anthropic's messages.
    Messages,
    /// OpenAI's responses, of what only they can say: passed on, never kept. All else that comes by
    /// that call is put as chat completions.
    Responses,
    /// OpenAI's embeddings of a model that is none of ours: passed on, never kept.
    Embeddings,
    /// How many tokens a request of Anthropic's would take. No answer: passed on, never kept.
    CountTokens,
}

/// A chat request as its dialect understood it.
#[derive(Clone, Debug, Default)]
pub struct ChatRequest {
    /// The call that it came by.
    pub api: Api,
    /// What its dialect says in headers, for a provider that speaks it too.
    pub headers: HeaderMap,
    /// The caller's body, byte for byte.
    pub body: Bytes,
    /// Where in `body` the model's name stands as a JSON string, quotes included.
    pub model_span: Range<usize>,
    /// The model asked for.
    pub model: String,
    /// Everything that could change the answer except the question's text: the body without
    /// the fields that never reach the model, without the model's name, and with the text of
    /// the last user turn taken out (its place stays).
    pub scope: Json,
    /// The last user turn; `None` when the last turn is not the user's, or holds no text.
    pub question: Option<Question>,
    /// What stands around the question in its turn, and is no part of it; hard as the scope is.
    pub context: Option<Json>,
    /// It begins or goes on with what the provider keeps, so that no other answer can stand for its own.
    pub is_stateful: bool,
    /// The caller wants a stream.
    pub stream: bool,
    /// The caller wants the usage at the end of the stream.
    pub include_usage: bool,
}

impl ChatRequest {
    /// The request without these top-level fields; `None` when it has none of them. What was
    /// understood of it stays as it is.
    pub fn without(&self, fields: &[&str]) -> Option<Self> {
        fields.iter().find(|field| self.scope.get(field).is_some())?;
        let Fields(all) = serde_json::from_slice(&self.body).ok()?;
        let mut body = Vec::with_capacity(self.body.len());
        let mut model_span = 0..0;
        for (name, value) in all.iter().filter(|(name, _)| !fields.contains(&name.as_str())) {
            body.push(if body.is_empty() { b'{' } else { b',' });
            body.extend(serde_json::to_vec(name).unwrap_or_default());
            body.push(b':');
            if name == "model" {
                model_span = body.len()..body.len() + value.get().len();
            }
            body.extend_from_slice(value.get().as_bytes());
        }
        body.push(b'}');
        Some(Self { body: body.into(), model_span, ..self.clone() })
    }

    /// The request with the question taken out of its turn, as `placement` says.
    #[must_use]
    pub fn placed(mut self, placement: &Placement) -> Self {
        if let Some(turn) = self.question.take() {
            let Placed { question, context } = placement.place(turn);
            self.context = (!context.is_empty()).then(|| context.to_json());
            self.question = Some(question);
        }
        self
    }

    /// The body with only the model's name replaced.
    pub fn body_for(&self, model: &str) -> Bytes {
        if model == self.model {
            return self.body.clone();
        }
        let name = serde_json::to_string(model).unwrap_or_default();
        let mut body = Vec::with_capacity(self.body.len() + name.len());
        body.extend_from_slice(&self.body[..self.model_span.start]);
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(&self.body[self.model_span.end..]);
        body.into()
    }
}

/// The name of a scope's field as callers write it: what has no words in the terms that all dialects
/// meet in stands under a mark, NUL and the dialect's name.
pub fn plain_name(field: &str) -> &str {
    match field.strip_prefix('\0').and_then(|marked| marked.split_once(' ')) {
        Some((_, name)) => name,
        None => field,
    }
}

/// The fields of a JSON object, in their order and each as it is written.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// The text of the last user turn: the fuzzy part of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    parts: Vec<String>,
}

impl Question {
    /// A question made of the text parts of one turn; `None` when there is no text in them.
    pub fn try_new(parts: Vec<String>) -> Option<Self> {
        let has_text = parts.iter().any(|part| !part.trim().is_empty());
        has_text.then_some(Self { parts })
    }

    /// The parts as the caller sent them; their borders are part of the exact key.
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// The whole text, parts joined by a line break.
    pub fn text(&self) -> String {
        self.parts.join("\n")
    }
}

/// A complete answer, free of any dialect's framing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatReply {
    /// The model's name as the provider gave it.
    pub model: String,
    /// The text of the answer.
    pub text: String,
    /// Why the answer ended.
    pub finish: Finish,
    /// What it cost in tokens, when the provider said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Fields nobody here has heard of, kept so that a hit equals the miss it repeats.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl ChatReply {
    /// Whether it is a finished text and nothing besides: no tool call, no refusal, no thoughts.
    pub fn is_plain_text(&self) -> bool {
        let says = |value: &serde_json::Value| match value {
            serde_json::Value::Null => false,
            serde_json::Value::String(text) => !text.is_empty(),
            serde_json::Value::Array(items) => !items.is_empty(),
            _ => true,
        };
        self.finish == Finish::Stop && !self.text.trim().is_empty() && !self.extra.message.values().any(says)
    }
}

/// Unknown fields of a reply, by where they stood.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Extra {
    /// Beside `choices`; its `usage` holds what stood beside the token counts.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub reply: serde_json::Map<String, serde_json::Value>,
    /// Beside `message`.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub choice: serde_json::Map<String, serde_json::Value>,
    /// Beside `content`.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub message: serde_json::Map<String, serde_json::Value>,
}

impl Extra {
    /// Nothing unknown was seen.
    pub fn is_empty(&self) -> bool {
        self.reply.is_empty() && self.choice.is_empty() && self.message.is_empty()
    }
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model had said all it wanted to.
    Stop,
    /// The token limit cut it.
    Length,
    /// It asks the caller to run tools.
    ToolCalls,
    /// A filter cut it.
    ContentFilter,
    /// A reason of the provider's own.
    Other(String),
}

/// What an event of a streamed answer carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Something the caller waits for: text, a tool call, reasoning.
    Content,
    /// A sign that the model is at work on what comes all at once: thoughts that are not told, a tool's
    /// input.
    Working,
    /// Nothing but the usage (no choices).
    Usage,
    /// Anything else: a role, a finish reason, an empty delta.
    Other,
}

/// Token counts, in OpenAI's terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
}

/// About how many tokens a text has: four bytes each, as English has on average.
pub fn about_tokens(text: &str) -> u64 {
    text.len().div_ceil(4) as u64
}

impl Usage {
    /// Both together.
    pub fn total(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }
}

//! What an attempt asked for.

use serde::Deserialize;
use serde_json::Value;

/// Which protocol a path speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    OpenAi,
    Anthropic,
}

impl Dialect {
    /// By the end of the path, so that any base URL will do (`/openai/deployments/…` too).
    pub(super) fn of_path(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        if path.ends_with("/chat/completions") {
            return Some(Self::OpenAi);
        }
        path.ends_with("/messages").then_some(Self::Anthropic)
    }
}

/// The little of a request that its answer depends on.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) dialect: Dialect,
    pub(super) model: String,
    pub(super) stream: bool,
    /// OpenAI streams name their usage only when asked; Anthropic's always do.
    pub(super) include_usage: bool,
    /// The last text of the user.
    pub(super) text: String,
    /// Words in all messages: as good a number as any.
    pub(super) prompt_tokens: usize,
}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    model: String,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Value,
}

impl Asked {
    /// `None` when the body is no request of this dialect.
    pub(super) fn read(dialect: Dialect, body: &[u8]) -> Option<Self> {
        let wire: Wire = serde_json::from_slice(body).ok()?;
        let texts: Vec<_> = wire.messages.iter().map(|message| (message, text(&message.content))).collect();
        let last = texts.iter().rev().find(|(message, _)| message.role == "user");
        Some(Self {
            dialect,
            model: wire.model,
            stream: wire.stream.unwrap_or(false),
            include_usage: dialect == Dialect::Anthropic
                || wire.stream_options.is_some_and(|options| options.include_usage),
            text: last.map(|(_, text)| text.clone()).unwrap_or_default(),
            prompt_tokens: texts.iter().map(|(_, text)| text.split_whitespace().count()).sum(),
        })
    }

    /// Stands for a body that is no request, or that never came.
    pub(super) fn nothing(dialect: Dialect) -> Self {
        Self {
            dialect,
            model: String::new(),
            stream: false,
            include_usage: false,
            text: String::new(),
            prompt_tokens: 0,
        }
    }
}

/// Of a content that is a string, or a list of parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_dialects_say_model_stream_and_text() {
        let body = br#"{"model": "big-1", "stream": true, "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "One?"},
            {"role": "assistant", "content": "1"},
            {"role": "user", "content": [{"type": "text", "text": "And "}, {"type": "image"}, {"text": "two?"}]}]}"#;
        let asked = Asked::read(Dialect::OpenAi, body).unwrap();
        assert_eq!((asked.model.as_str(), asked.stream, asked.include_usage), ("big-1", true, false));
        assert_eq!((asked.text.as_str(), asked.prompt_tokens), ("And two?", 6));
        assert!(Asked::read(Dialect::Anthropic, body).unwrap().include_usage);
    }

    #[test]
    fn usage_is_included_when_asked() {
        let body = br#"{"messages": [], "stream": true, "stream_options": {"include_usage": true}}"#;
        assert!(Asked::read(Dialect::OpenAi, body).unwrap().include_usage);
    }

    #[test]
    fn what_is_no_request_is_none() {
        for body in [&b""[..], b"{", b"[]", br#"{"model": "big-1"}"#, br#"{"messages": 1}"#] {
            assert!(Asked::read(Dialect::OpenAi, body).is_none());
        }
    }

    #[test]
    fn the_path_says_the_dialect() {
        assert_eq!(Dialect::of_path("/v1/chat/completions"), Some(Dialect::OpenAi));
        assert_eq!(
            Dialect::of_path("/openai/deployments/d/chat/completions?api-version=1"),
            Some(Dialect::OpenAi)
        );
        assert_eq!(Dialect::of_path("/v1/messages"), Some(Dialect::Anthropic));
        assert_eq!(Dialect::of_path("/v1/models"), None);
    }
}

//! Streamed answers from one dialect to the other, event by event.
//!
//! Each converter takes the data of one event and gives the data of none or several. Nothing
//! waits longer than it must: texts, thoughts and tools' inputs go on as they come. What is
//! skipped, and why:
//!
//! - events, blocks and deltas of unknown types: both dialects say that new ones may come, and
//!   that a client passes over what it does not know;
//! - signatures and redacted thoughts, see [`super::reply`];
//! - citations and server tools: they come only when asked for, and a request that asks for them
//!   is not crossed;
//! - token probabilities, audio, annotations and the calls of `functions` as they were before
//!   tools, for the same reason.
//!
//! Each converter says of a stream whether it has skipped something that is not empty. Such an answer
//! is passed on and must not be stored: it would come back with a hole that nobody sees.

mod to_anthropic;
mod to_openai;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::chat::Finish;
use crate::dialect::anthropic::error;

pub use to_anthropic::ToAnthropic;
pub(super) use to_anthropic::{error_in, finish};
pub use to_openai::ToOpenAi;

/// Anthropic's reasons that OpenAI has a word for and the canonical form has not.
pub(super) fn finish_for_openai(finish: &mut Finish) {
    if matches!(finish, Finish::Other(word) if word == "model_context_window_exceeded") {
        *finish = Finish::Length;
    }
}

/// An error event of Anthropic's as one of OpenAI's. Words that both have stay; the others become
/// a code beside OpenAI's word for a fault that is not the caller's.
fn error_to_openai(error: &Value) -> Bytes {
    let (kind, message) = told(error);
    let ours = match kind {
        "invalid_request_error" | "authentication_error" | "permission_error" | "rate_limit_error" => kind,
        "not_found_error" | "request_too_large" => "invalid_request_error",
        _ => "server_error",
    };
    let code = Some(kind).filter(|kind| !kind.is_empty() && *kind != ours);
    data(&json!({ "error": { "message": message, "type": ours, "param": null, "code": code } }))
}

/// An error event of OpenAI's as one of Anthropic's, by its code, which is the narrower word and
/// may be an HTTP status, else by its type.
fn error_to_anthropic(error: &Value) -> Bytes {
    let (kind, message) = told(error);
    let code = &error["code"];
    let status =
        code.as_u64().or_else(|| code.as_str()?.parse().ok()).and_then(|code| u16::try_from(code).ok());
    let word = |word: &str| match word {
        "invalid_request_error" | "context_length_exceeded" | "content_filter" => {
            Some("invalid_request_error")
        }
        "authentication_error" | "invalid_api_key" => Some("authentication_error"),
        "insufficient_quota" | "billing_error" => Some("billing_error"),
        "permission_error" | "forbidden" => Some("permission_error"),
        "not_found_error" | "not_found" | "model_not_found" => Some("not_found_error"),
        "rate_limit_error" | "rate_limit_exceeded" => Some("rate_limit_error"),
        "overloaded_error" | "unavailable" | "service_unavailable" => Some("overloaded_error"),
        "timeout_error" | "timeout" | "deadline_exceeded" => Some("timeout_error"),
        _ => None,
    };
    let kind = match status {
        Some(status @ 400..) => error::kind(status),
        _ => code.as_str().and_then(word).or_else(|| word(kind)).unwrap_or("api_error"),
    };
    error::write(kind, message, None)
}

/// Type and message of an error object, or of the string that some send in its place.
pub(super) fn told(error: &Value) -> (&str, &str) {
    let message = error["message"].as_str().or(error.as_str()).unwrap_or("the provider reports an error");
    (error["type"].as_str().unwrap_or_default(), message)
}

/// Whether an object holds more than the `known` fields; `null`, empty texts and lists are nothing.
fn says_more(value: &Value, known: &[&str]) -> bool {
    let is_nothing = |value: &Value| {
        value.is_null() || value.as_str() == Some("") || value.as_array().is_some_and(Vec::is_empty)
    };
    let mut fields = value.as_object().into_iter().flatten();
    fields.any(|(name, value)| !(known.contains(&name.as_str()) || is_nothing(value)))
}

fn data(event: &Value) -> Bytes {
    event.to_string().into()
}

#[cfg(test)]
mod tests;

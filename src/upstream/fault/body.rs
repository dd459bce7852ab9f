//! The shapes in which providers say that they will not answer.
//!
//! An object inside `error`, a text inside `error`, an object at the top, an exception's name in a
//! header, an error inside an error, a list of one error, a page of a CDN: here all of them
//! become the same few fields.

use std::borrow::Cow;

use http::HeaderMap;
use serde_json::{Map, Value};

/// Of a body this much is looked at, in bytes. An error needs no more; a prompt that is quoted
/// back in one may.
const EXAMINED: usize = 64 * 1024;

/// Of a message this much is looked at, in bytes.
const MAX_MESSAGE: usize = 4 * 1024;

/// Of the words this many are kept, and of a list this many entries are looked at.
const MAX_WORDS: usize = 32;

/// Longer than any type or code, in bytes.
const MAX_WORD: usize = 128;

/// What an error body says.
#[derive(Debug, Default)]
pub(super) struct ErrorBody {
    /// Types, codes and reasons, the most specific first.
    pub(super) words: Vec<String>,
    /// A status inside the body, 400 or above: of an error inside a 200, or of what is wrapped.
    pub(super) status: Option<u16>,
    /// The text for people.
    pub(super) message: String,
    /// Google's `retryDelay`, as written.
    pub(super) retry_delay: Option<String>,
    /// It is markup: a page of a CDN or of a proxy.
    pub(super) is_page: bool,
}

/// Whether a body or an event with a success status holds an error in place of an answer. One of
/// more than 64 KiB does not: no error is that long.
pub fn holds_error(body: &[u8]) -> bool {
    let text = examined(body);
    let root = serde_json::from_str(&text).unwrap_or(Value::Null);
    object(&root).is_some_and(|root| !matches!(located(root), Place::Nowhere))
}

/// The text for people in an error's body, as the provider wrote it; `None` when there is none, or
/// only a page of whatever stands in between.
pub fn message(body: &[u8]) -> Option<String> {
    let error = ErrorBody::read(&HeaderMap::new(), body);
    Some(error.message).filter(|message| !error.is_page && !message.trim().is_empty())
}

impl ErrorBody {
    /// Reads any bytes; what is not understood is a message.
    pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Self {
        let mut error = Self::default();
        let text = examined(body);
        match serde_json::from_str::<Value>(&text) {
            Ok(root) => match object(&root) {
                Some(root) => error.root(root),
                None => error.message(&root),
            },
            Err(_) if text.starts_with('<') => error.is_page = true,
            Err(_) => error.text(&text),
        }
        // AWS names the exception beside the body.
        for name in headers.get_all("x-amzn-errortype") {
            error.word(&Value::from(name.to_str().unwrap_or_default()));
        }
        error
    }

    fn root(&mut self, root: &Map<String, Value>) {
        match located(root) {
            Place::Object(inner) => self.object(inner),
            Place::Exception(name, inner) => {
                self.word(&Value::from(name));
                self.object(inner);
            }
            Place::Text(text) => self.text(text),
            Place::Root | Place::Nowhere => {}
        }
        self.object(root);
    }

    /// One object's fields. Called for the inner object first: what is found first counts.
    fn object(&mut self, error: &Map<String, Value>) {
        match error.get("details") {
            Some(Value::Array(details)) => {
                details.iter().take(MAX_WORDS).for_each(|detail| self.google(detail));
            }
            Some(Value::Object(details)) => self.words_of(details, &["error_code", "code"]),
            _ => {}
        }
        if let Some(Value::Object(inner)) = error.get("innererror") {
            self.words_of(inner, &["code"]);
        }
        let metadata = error.get("metadata").and_then(Value::as_object);
        if let Some(metadata) = metadata {
            self.openrouter(metadata);
        }
        self.words_of(error, &["code", "status", "statusCode", "type", "error_type", "__type"]);
        for name in ["message", "detail"] {
            error.get(name).into_iter().for_each(|text| self.message(text));
        }
        // What a provider behind this one said never opens the message: the key that is refused
        // there is not ours.
        if let Some(raw) = metadata.and_then(|metadata| metadata.get("raw")) {
            self.message.push('\n');
            self.message(raw);
        }
    }

    /// One of Google's details: which quota, why, and when to come again.
    fn google(&mut self, detail: &Value) {
        let Some(detail) = detail.as_object() else { return };
        self.words_of(detail, &["reason"]);
        for violation in
            detail.get("violations").and_then(Value::as_array).into_iter().flatten().take(MAX_WORDS)
        {
            violation.get("quotaId").into_iter().for_each(|id| self.word(id));
        }
        if let (None, Some(Value::String(delay))) = (&self.retry_delay, detail.get("retryDelay")) {
            self.retry_delay = Some(first(delay, MAX_WORD).to_owned());
        }
    }

    /// Why OpenRouter refuses.
    fn openrouter(&mut self, metadata: &Map<String, Value>) {
        self.words_of(metadata, &["reason", "error_type", "limit_source"]);
        if metadata.contains_key("flagged_input") {
            self.word(&Value::from("flagged_input"));
        }
    }

    fn words_of(&mut self, object: &Map<String, Value>, names: &[&str]) {
        names.iter().filter_map(|name| object.get(*name)).for_each(|value| self.word(value));
    }

    /// Keeps a type or a code, or a status in its place.
    fn word(&mut self, value: &Value) {
        let word: Cow<'_, str> = match value {
            Value::String(word) => word.as_str().into(),
            Value::Number(number) => number.to_string().into(),
            _ => return,
        };
        // "com.amazonaws.bedrock#ThrottlingException:http://internal.amazon.com/…"
        let word = word.rsplit_once('#').map_or(&*word, |(_, name)| name);
        let word = word.split(':').next().unwrap_or_default().trim();
        if let Ok(status @ 100..=599) = word.parse() {
            if self.status.is_none() && status >= 400 {
                self.status = Some(status);
            }
        } else if !matches!(word, "" | "error" | "response.failed") && self.words.len() < MAX_WORDS {
            self.words.push(first(word, MAX_WORD).to_owned());
        }
    }

    fn message(&mut self, value: &Value) {
        match value {
            Value::Null => {}
            Value::String(text) => self.text(text),
            other => self.text(&other.to_string()),
        }
    }

    fn text(&mut self, text: &str) {
        let room = MAX_MESSAGE.saturating_sub(self.message.len());
        if !self.message.is_empty() {
            self.message.push('\n');
        }
        self.message.push_str(first(text, room));
    }
}

/// Where in an object the error is.
enum Place<'a> {
    Object(&'a Map<String, Value>),
    Exception(&'a str, &'a Map<String, Value>),
    Text(&'a str),
    Root,
    Nowhere,
}

fn located(root: &Map<String, Value>) -> Place<'_> {
    let response = root.get("response").and_then(|response| response.get("error"));
    let choice = root.get("choices").and_then(|choices| choices.get(0));
    let in_choice = choice.and_then(|choice| choice.get("error"));
    for error in [root.get("error"), response, in_choice].into_iter().flatten() {
        match error {
            Value::Object(inner) => return Place::Object(inner),
            Value::String(text) if !text.is_empty() => return Place::Text(text),
            _ => {}
        }
    }
    // An AWS event stream as JSON: {"throttlingException": {"message": "…"}}
    if let Some((name, Value::Object(inner))) = root.iter().next().filter(|_| root.len() == 1)
        && name.ends_with("Exception")
    {
        return Place::Exception(name, inner);
    }
    let is = |name, value| root.get(name).and_then(Value::as_str) == Some(value);
    let broke_off = choice.and_then(|choice| choice.get("finish_reason")).and_then(Value::as_str);
    let says_so = is("type", "error") || is("type", "response.failed") || is("object", "error");
    if says_so || broke_off == Some("error") || root.contains_key("__type") {
        Place::Root
    } else {
        Place::Nowhere
    }
}

/// The object, or the first of a list of objects.
fn object(root: &Value) -> Option<&Map<String, Value>> {
    match root {
        Value::Array(list) => list.first()?.as_object(),
        other => other.as_object(),
    }
}

/// The first part of a body as text, whatever its bytes.
fn examined(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(EXAMINED)]);
    text.trim_start_matches('\u{feff}').trim().to_owned()
}

fn first(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

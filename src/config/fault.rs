//! A value that cannot be read, in words: where, which key, what value, what is allowed.

use figment::value::Value;
use figment::{Error, Figment, Source};

/// One line for one fault.
pub(super) fn in_words(figment: &Figment, error: &Error) -> String {
    let key = error.path.join(".");
    let place = error.metadata.as_ref().map(|metadata| match &metadata.source {
        Some(Source::File(path)) => path.display().to_string(),
        _ if metadata.name.contains("environment") => "the environment".to_owned(),
        _ => "the config".to_owned(),
    });
    let value = figment.find_value(&key).ok().filter(|_| !is_secret(&key)).and_then(|value| shown(&value));
    match (place, value) {
        (Some(place), Some(value)) => format!("{place}: {key} = {value}: {}", error.kind),
        (Some(place), None) => format!("{place}: {key}: {}", error.kind),
        (None, _) if key.is_empty() => error.kind.to_string(),
        (None, _) => format!("{key}: {}", error.kind),
    }
}

/// A refused secret may be the secret itself, written where only a reference belongs.
fn is_secret(key: &str) -> bool {
    let last = key.rsplit('.').next().unwrap_or_default();
    ["api_key", "token"].contains(&last)
}

/// Single values only; a whole section would hide what is wrong with it.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Dict(..) | Value::Array(..) | Value::Empty(..) => None,
        value => serde_json::to_string(value).ok(),
    }
}

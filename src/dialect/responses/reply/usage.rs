//! The `usage` object, in chat completions' terms within and in responses' without.
//!
//! Both count the same; only the names differ. SDKs demand both details, so a count that nobody
//! told is 0 there.

use serde_json::{Map, Value};

use crate::chat::{ChatReply, Usage};

/// The key in `Extra::reply` for what stood beside the counts.
pub(in crate::dialect) const KEY: &str = "usage";

/// The details of either count: its name in chat completions, in responses, and what it has to hold.
const DETAILS: [(&str, &str, &[&str]); 2] = [
    ("prompt_tokens_details", "input_tokens_details", &["cache_write_tokens", "cached_tokens"]),
    ("completion_tokens_details", "output_tokens_details", &["reasoning_tokens"]),
];

/// Takes the counts out of a raw usage object of a response and leaves the rest in `extra`: what
/// chat completions have a name for under that, the rest as it was.
pub(super) fn take(raw: Value, extra: &mut Map<String, Value>) -> Option<Usage> {
    let (usage, rest) = match raw {
        Value::Object(mut fields) => match counts(&fields, "input_tokens", "output_tokens") {
            Some(usage) => {
                strip(&mut fields, usage, "input_tokens", "output_tokens");
                for (theirs, ours, _) in DETAILS {
                    if let Some(details) = fields.remove(ours) {
                        fields.insert(theirs.to_owned(), details);
                    }
                }
                (Some(usage), fields.into())
            }
            None => (None, Value::Object(fields)),
        },
        odd => (None, odd),
    };
    if !(rest.is_null() || rest.as_object().is_some_and(Map::is_empty)) {
        extra.insert(KEY.to_owned(), rest);
    }
    usage
}

/// The usage of a reply; `null` when the provider said nothing about it. `cached` marks it as the
/// rendering of chat completions does.
pub(super) fn view(reply: &ChatReply, cached: bool) -> Value {
    let rest = match (reply.extra.reply.get(KEY), reply.usage) {
        (None, None) => return Value::Null,
        (None, Some(_)) => Map::new(),
        (Some(Value::Object(rest)), _) => rest.clone(),
        (Some(odd), _) => return odd.clone(),
    };
    // Not understood, so it is what it was.
    let mut fields = match reply.usage {
        Some(usage) => from_counts(usage, rest),
        None => rest,
    };
    if cached {
        fields.insert("cached".to_owned(), true.into());
    }
    fields.into()
}

/// The counts of a response's usage.
pub(super) fn told(usage: &Map<String, Value>) -> Option<Usage> {
    counts(usage, "input_tokens", "output_tokens")
}

/// A usage object of a chat completion as one of a response.
pub(in crate::dialect) fn to_responses(raw: Value) -> Value {
    let Value::Object(mut fields) = raw else { return raw };
    let Some(usage) = counts(&fields, "prompt_tokens", "completion_tokens") else { return fields.into() };
    strip(&mut fields, usage, "prompt_tokens", "completion_tokens");
    from_counts(usage, fields).into()
}

fn counts(fields: &Map<String, Value>, prompt: &str, completion: &str) -> Option<Usage> {
    let count = |name: &str| fields.get(name).and_then(Value::as_u64);
    Some(Usage { prompt_tokens: count(prompt)?, completion_tokens: count(completion)? })
}

/// Takes out what the counts say. A total that is not their sum says more.
fn strip(fields: &mut Map<String, Value>, usage: Usage, prompt: &str, completion: &str) {
    fields.retain(|name, value| match name.as_str() {
        "total_tokens" => value.as_u64() != Some(usage.total()),
        name => name != prompt && name != completion,
    });
}

fn from_counts(usage: Usage, mut rest: Map<String, Value>) -> Map<String, Value> {
    let mut fields = Map::new();
    for ((theirs, ours, demanded), (name, count)) in DETAILS
        .into_iter()
        .zip([("input_tokens", usage.prompt_tokens), ("output_tokens", usage.completion_tokens)])
    {
        fields.insert(name.to_owned(), count.into());
        let mut details = match rest.remove(theirs) {
            Some(Value::Object(details)) => details,
            _ => Map::new(),
        };
        for name in demanded {
            if details.get(*name).is_none_or(Value::is_null) {
                details.insert((*name).to_owned(), 0.into());
            }
        }
        fields.insert(ours.to_owned(), details.into());
    }
    fields.insert("total_tokens".to_owned(), usage.total().into());
    fields.extend(rest);
    fields
}

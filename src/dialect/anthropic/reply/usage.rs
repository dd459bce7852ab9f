//! The `usage` object, in OpenAI's terms within and in Anthropic's without.
//!
//! Anthropic's `input_tokens` are only those that the prompt cache did not serve; OpenAI's
//! `prompt_tokens` are all, and the cached ones a detail of them. The second is what a prompt
//! costs in work, so it is what is kept: prompt = input + cache creation + cache read.

use serde_json::{Map, Value, json};

use crate::chat::{ChatReply, Usage};

/// The key in `Extra::reply` for what stood beside the counts.
pub(in crate::dialect) const KEY: &str = "usage";

const READ: &str = "cache_read_input_tokens";
const CREATION: &str = "cache_creation_input_tokens";

/// Takes the counts out of a raw usage object of Anthropic's and leaves the rest in `extra`: what
/// OpenAI has a name for under that, the rest as it was.
pub(super) fn take(raw: Value, extra: &mut Map<String, Value>) -> Option<Usage> {
    let Value::Object(mut fields) = raw else {
        if !raw.is_null() {
            extra.insert(KEY.to_owned(), raw);
        }
        return None;
    };
    let usage = counts(&fields);
    if usage.is_some() {
        fields.remove("input_tokens");
        fields.remove("output_tokens");
        detail(&mut fields, READ, None, "prompt_tokens_details", "cached_tokens");
        let thinking = Some("thinking_tokens");
        detail(
            &mut fields,
            "output_tokens_details",
            thinking,
            "completion_tokens_details",
            "reasoning_tokens",
        );
    }
    if !fields.is_empty() {
        extra.insert(KEY.to_owned(), fields.into());
    }
    usage
}

/// Counts of a later event: they are totals, and replace the earlier ones. `null` replaces nothing.
pub(in crate::dialect) fn replace(usage: &mut Map<String, Value>, later: &Map<String, Value>) {
    for (name, value) in later {
        if !(value.is_null() && usage.contains_key(name)) {
            usage.insert(name.clone(), value.clone());
        }
    }
}

/// The counts of a usage object of Anthropic's.
pub(in crate::dialect) fn counts(fields: &Map<String, Value>) -> Option<Usage> {
    let count = |name: &str| fields.get(name).and_then(Value::as_u64);
    let cached = count(READ).unwrap_or(0).saturating_add(count(CREATION).unwrap_or(0));
    let prompt_tokens = count("input_tokens")?.saturating_add(cached);
    Some(Usage { prompt_tokens, completion_tokens: count("output_tokens")? })
}

/// Moves a count from Anthropic's place to OpenAI's, when nothing else stands there.
fn detail(fields: &mut Map<String, Value>, name: &str, inner: Option<&str>, details: &str, detail: &str) {
    let count = match (fields.get(name), inner) {
        (Some(Value::Object(inside)), Some(inner)) if inside.len() == 1 => {
            inside.get(inner).and_then(Value::as_u64)
        }
        (Some(value), None) => value.as_u64(),
        _ => None,
    };
    if let Some(count) = count {
        let place = fields.entry(details).or_insert_with(|| json!({}));
        if let Value::Object(place) = place
            && !place.contains_key(detail)
        {
            place.insert(detail.to_owned(), count.into());
            fields.remove(name);
        }
    }
}

/// The usage of a reply in Anthropic's form. A message has to have one: without a word from the
/// provider the counts are 0. `cached` marks it as OpenAI's rendering does.
pub(super) fn view(reply: &ChatReply, cached: bool) -> Value {
    let rest = match reply.extra.reply.get(KEY) {
        Some(Value::Object(rest)) => rest.clone(),
        Some(odd) => return odd.clone(),
        None => Map::new(),
    };
    let mut fields = match reply.usage {
        Some(usage) => from_counts(usage, rest),
        // Not understood, so it is what it was.
        None if !rest.is_empty() => rest,
        None => from_counts(Usage::default(), rest),
    };
    if cached {
        fields.insert("cached".to_owned(), true.into());
    }
    fields.into()
}

/// Counts and what stood beside them, from OpenAI's terms to Anthropic's.
pub(in crate::dialect) fn from_counts(usage: Usage, mut rest: Map<String, Value>) -> Map<String, Value> {
    if let Some(count) = take_detail(&mut rest, "prompt_tokens_details", "cached_tokens") {
        rest.insert(READ.to_owned(), count.into());
    }
    if let Some(count) = take_detail(&mut rest, "completion_tokens_details", "reasoning_tokens") {
        rest.insert("output_tokens_details".to_owned(), json!({ "thinking_tokens": count }));
    }
    let count = |name: &str| rest.get(name).and_then(Value::as_u64).unwrap_or(0);
    let cached = count(READ).saturating_add(count(CREATION));
    let mut fields = Map::new();
    fields.insert("input_tokens".to_owned(), usage.prompt_tokens.saturating_sub(cached).into());
    fields.insert("output_tokens".to_owned(), usage.completion_tokens.into());
    fields.extend(rest);
    fields
}

fn take_detail(fields: &mut Map<String, Value>, details: &str, detail: &str) -> Option<u64> {
    let place = fields.get_mut(details)?.as_object_mut()?;
    let count = place.get(detail).and_then(Value::as_u64)?;
    place.remove(detail);
    if place.is_empty() {
        fields.remove(details);
    }
    Some(count)
}

/// A usage object of Anthropic's as one of OpenAI's.
pub(in crate::dialect) fn to_openai(raw: Value) -> Value {
    let mut extra = Map::new();
    let usage = take(raw, &mut extra);
    let mut fields = match extra.remove(KEY) {
        Some(Value::Object(rest)) => rest,
        Some(odd) => return odd,
        None => Map::new(),
    };
    if let Some(usage) = usage {
        fields.insert("prompt_tokens".to_owned(), usage.prompt_tokens.into());
        fields.insert("completion_tokens".to_owned(), usage.completion_tokens.into());
        fields.insert("total_tokens".to_owned(), usage.total().into());
    }
    fields.into()
}

/// A usage object of OpenAI's as one of Anthropic's.
pub(in crate::dialect) fn to_anthropic(raw: Value) -> Value {
    let Value::Object(mut fields) = raw else { return raw };
    let count = |name: &str| fields.get(name).and_then(Value::as_u64);
    let Some((prompt_tokens, completion_tokens)) = count("prompt_tokens").zip(count("completion_tokens"))
    else {
        return fields.into();
    };
    let usage = Usage { prompt_tokens, completion_tokens };
    fields.retain(|name, value| match name.as_str() {
        "prompt_tokens" | "completion_tokens" => false,
        "total_tokens" => value.as_u64() != Some(usage.total()),
        _ => true,
    });
    from_counts(usage, fields).into()
}

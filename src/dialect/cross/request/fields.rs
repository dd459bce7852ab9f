//! Top-level fields, other than the conversation itself.

use serde_json::{Map, Value, json};

use super::super::Inexpressible;
use super::object::{no_counterpart, none_of, object, only, said};
use super::{DEFAULT_MAX_TOKENS, tools};

type Named = (String, Value);

/// The name that a schema for the answer gets, since OpenAI demands one.
const SCHEMA: &str = "answer";

/// Reasoning efforts that both dialects have a word for, and the same one.
const EFFORTS: [&str; 4] = ["high", "low", "medium", "xhigh"];

/// Fields of an Anthropic request that never change its answer.
const SILENT_AT_ANTHROPIC: [&str; 3] = ["cache_control", "metadata", "service_tier"];

/// Fields of an OpenAI request, by whichever call, that never change its answer.
pub(in crate::dialect::cross) const SILENT_AT_OPENAI: [&str; 9] = [
    "metadata",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "stream_options",
    "user",
];

/// One field of an Anthropic request, as the fields that say the same to OpenAI.
pub(in crate::dialect) fn to_openai(name: &str, value: &Value) -> Result<Vec<Named>, Inexpressible> {
    let one = |name: &str, value: &Value| Ok(vec![(name.to_owned(), value.clone())]);
    match name {
        _ if value.is_null() || SILENT_AT_ANTHROPIC.contains(&name) => Ok(Vec::new()),
        // OpenAI takes no empty ones.
        "tools" | "stop_sequences" if *value == json!([]) => Ok(Vec::new()),
        "max_tokens" if none_of(value) => {
            Err(Inexpressible::new(name, "of 0 asks for no answer, only to fill the prompt cache"))
        }
        "stream" if *value == Value::Bool(true) => Ok(vec![
            (name.to_owned(), true.into()),
            ("stream_options".to_owned(), json!({ "include_usage": true })),
        ]),
        // The last two are for whoever routes, not for a provider.
        "max_tokens" | "model" | "stream" | "temperature" | "top_p" | "models" | "provider" => {
            one(name, value)
        }
        "stop_sequences" => one("stop", value),
        "tools" => one(name, &tools::to_openai(value)?),
        "tool_choice" => tools::choice_to_openai(value),
        "output_config" => output_to_openai(value),
        _ => Err(no_counterpart(name)),
    }
}

/// One field of an OpenAI request, as the fields that say the same to Anthropic; none for those
/// that are read together with others.
pub(super) fn to_anthropic(name: &str, value: &Value) -> Result<Vec<Named>, Inexpressible> {
    let one = |name: &str, value: &Value| Ok(vec![(name.to_owned(), value.clone())]);
    let nothing = Ok(Vec::new());
    match name {
        _ if value.is_null() || SILENT_AT_OPENAI.contains(&name) => nothing,
        "tools" | "stop" if *value == json!([]) => nothing,
        "messages" | "max_tokens" | "max_completion_tokens" | "tool_choice" | "parallel_tool_calls" => {
            nothing
        }
        "model" | "stream" | "top_p" | "models" | "provider" => one(name, value),
        "temperature" if value.as_f64().is_some_and(|value| value <= 1.0) => one(name, value),
        "temperature" => Err(Inexpressible::new(name, "must be a number, and at most 1 for Anthropic")),
        "stop" => stop_to_anthropic(value),
        "tools" => one(name, &tools::to_anthropic(value)?),
        "reasoning_effort" if value.as_str().is_some_and(|word| EFFORTS.contains(&word)) => {
            Ok(vec![("output_config".to_owned(), json!({ "effort": value }))])
        }
        "response_format" => format_to_anthropic(value),
        "n" if value.as_u64() == Some(1) => nothing,
        "modalities" if *value == json!(["text"]) => nothing,
        "verbosity" if value == "medium" => nothing,
        "logprobs" | "top_logprobs" | "frequency_penalty" | "presence_penalty" | "logit_bias"
        | "functions"
            if none_of(value) =>
        {
            nothing
        }
        _ => Err(no_counterpart(name)),
    }
}

/// A line break alone is a common stop at OpenAI, and one that Anthropic refuses.
fn stop_to_anthropic(stop: &Value) -> Result<Vec<Named>, Inexpressible> {
    let sequences = if stop.is_string() { json!([stop]) } else { stop.clone() };
    let is_blank = |sequence: &Value| sequence.as_str().is_some_and(|text| text.trim().is_empty());
    if sequences.as_array().into_iter().flatten().any(is_blank) {
        return Err(Inexpressible::new("stop", "holds nothing but space, and Anthropic stops at no such"));
    }
    Ok(vec![("stop_sequences".to_owned(), sequences)])
}

/// Writes `max_tokens` from the two fields that OpenAI has for it.
pub(super) fn max_tokens(
    body: &Map<String, Value>,
    request: &mut Map<String, Value>,
) -> Result<(), Inexpressible> {
    let limit = match (said(body, "max_completion_tokens"), said(body, "max_tokens")) {
        (Some(one), Some(other)) if one != other => {
            return Err(Inexpressible::new("max_tokens", "and max_completion_tokens say different limits"));
        }
        (Some(limit), _) | (None, Some(limit)) => limit.clone(),
        (None, None) => DEFAULT_MAX_TOKENS.into(),
    };
    request.insert("max_tokens".to_owned(), limit);
    Ok(())
}

fn output_to_openai(config: &Value) -> Result<Vec<Named>, Inexpressible> {
    let at = "output_config";
    let fields = object(config, at)?;
    only(fields, &["effort", "format"], at)?;
    let mut named = Vec::new();
    if let Some(effort) = said(fields, "effort") {
        if !effort.as_str().is_some_and(|word| EFFORTS.contains(&word)) {
            return Err(no_counterpart("output_config.effort"));
        }
        named.push(("reasoning_effort".to_owned(), effort.clone()));
    }
    if let Some(format) = said(fields, "format") {
        let at = "output_config.format";
        let fields = object(format, at)?;
        only(fields, &["type", "schema"], at)?;
        if format["type"] != "json_schema" {
            return Err(no_counterpart(at));
        }
        let schema = object(&format["schema"], "output_config.format.schema")?;
        let schema = json!({ "name": SCHEMA, "schema": schema, "strict": true });
        named.push(("response_format".to_owned(), json!({ "type": "json_schema", "json_schema": schema })));
    }
    Ok(named)
}

fn format_to_anthropic(format: &Value) -> Result<Vec<Named>, Inexpressible> {
    let at = "response_format";
    let fields = object(format, at)?;
    match format["type"].as_str() {
        Some("text") => {
            only(fields, &["type"], at)?;
            Ok(Vec::new())
        }
        Some("json_schema") => {
            only(fields, &["type", "json_schema"], at)?;
            let at = "response_format.json_schema";
            let fields = object(&format["json_schema"], at)?;
            only(fields, &["name", "schema", "strict"], at)?;
            if said(fields, "strict") != Some(&Value::Bool(true)) {
                let reason = "is not strict, and Anthropic knows no other schemas";
                return Err(Inexpressible::new(at, reason));
            }
            let schema = object(&format["json_schema"]["schema"], "response_format.json_schema.schema")?;
            let format = json!({ "type": "json_schema", "schema": schema });
            Ok(vec![("output_config".to_owned(), json!({ "format": format }))])
        }
        _ => Err(no_counterpart(at)),
    }
}

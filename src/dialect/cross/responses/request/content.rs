//! What stands in a message: texts, images and files.

use serde_json::{Map, Value, json};

use super::super::super::Inexpressible;
use super::super::super::request::content::{joined, kind};
use super::super::super::request::object::{no_counterpart, none_of, object, only, only_if, said, text};
use super::super::super::request::text_part;

/// Marks the end of a prompt whose computations are kept; their results are the same anew.
const KEPT: &str = "prompt_cache_breakpoint";

/// A content in chat completions' normal form, where a single text is a string.
pub(super) fn to_chat(
    content: &Value,
    at: &str,
    part: impl Fn(&Value, &str) -> Result<Value, Inexpressible>,
) -> Result<Value, Inexpressible> {
    match content {
        Value::String(_) => Ok(content.clone()),
        Value::Array(parts) => {
            let parts = parts.iter().enumerate().map(|(index, value)| part(value, &format!("{at}[{index}]")));
            Ok(joined(parts.collect::<Result<_, _>>()?))
        }
        _ => Err(Inexpressible::new(at, "must be a string or an array")),
    }
}

/// A part of what is said to the model.
pub(super) fn input(part: &Value, at: &str) -> Result<Value, Inexpressible> {
    match kind(part) {
        "input_text" => input_text(part, at),
        "input_image" => image(part, at),
        "input_file" => file(part, at),
        _ => Err(no_counterpart(at)),
    }
}

/// A part that holds nothing but text.
pub(in crate::dialect) fn input_text(part: &Value, at: &str) -> Result<Value, Inexpressible> {
    let fields = object(part, at)?;
    if kind(part) != "input_text" {
        return Err(no_counterpart(at));
    }
    only(fields, &["type", "text", KEPT], at)?;
    Ok(text_part(text(fields, "text", at)?))
}

/// A part of what the model said.
pub(super) fn output(part: &Value, at: &str) -> Result<Value, Inexpressible> {
    let fields = object(part, at)?;
    match kind(part) {
        "output_text" => {
            only_if(fields, at, |name, value| match name {
                "type" | "text" => true,
                "annotations" | "logprobs" => none_of(value),
                _ => false,
            })?;
            Ok(text_part(text(fields, "text", at)?))
        }
        "refusal" => {
            only(fields, &["type", "refusal"], at)?;
            Ok(json!({ "type": "refusal", "refusal": text(fields, "refusal", at)? }))
        }
        _ => Err(no_counterpart(at)),
    }
}

fn image(part: &Value, at: &str) -> Result<Value, Inexpressible> {
    let fields = object(part, at)?;
    only_if(fields, at, |name, value| match name {
        "type" | "image_url" | KEPT => true,
        "detail" => matches!(value.as_str(), Some("auto" | "high" | "low")),
        _ => false,
    })?;
    let mut image = json!({ "url": text(fields, "image_url", at)? });
    // SDKs always send this default, and those of chat completions do not.
    if let Some(detail) = said(fields, "detail").filter(|detail| *detail != "auto") {
        image["detail"] = detail.clone();
    }
    Ok(json!({ "type": "image_url", "image_url": image }))
}

fn file(part: &Value, at: &str) -> Result<Value, Inexpressible> {
    let fields = object(part, at)?;
    let known = ["file_data", "file_id", "filename"];
    only_if(fields, at, |name, _| matches!(name, "type" | KEPT) || known.contains(&name))?;
    let file: Map<_, _> =
        known.iter().filter_map(|name| Some(((*name).to_owned(), said(fields, name)?.clone()))).collect();
    Ok(json!({ "type": "file", "file": file }))
}

//! What stands in a turn: texts and images.

use serde_json::{Value, json};

use super::super::Inexpressible;
use super::object::{no_counterpart, none_of, object, only, only_if, text};
use super::text_part;

/// The images that Anthropic takes.
const IMAGES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];

/// The parts of a content, which is a string or an array.
pub(super) fn parts(content: &Value, at: &str) -> Result<Vec<Value>, Inexpressible> {
    match content {
        Value::String(text) => Ok(vec![text_part(text)]),
        Value::Array(parts) => Ok(parts.clone()),
        _ => Err(Inexpressible::new(at, "must be a string or an array")),
    }
}

/// The normal form of a content: a single text is a string.
pub(in crate::dialect::cross) fn joined(parts: Vec<Value>) -> Value {
    match &parts[..] {
        [part] if kind(part) == "text" => part["text"].clone(),
        _ => Value::Array(parts),
    }
}

/// The `type` of a part or a block; empty when there is none.
pub(in crate::dialect::cross) fn kind(part: &Value) -> &str {
    part["type"].as_str().unwrap_or_default()
}

/// A content that holds nothing but text, in the normal form of both dialects.
pub(super) fn texts(content: &Value, at: &str) -> Result<Value, Inexpressible> {
    if content.is_string() {
        return Ok(content.clone());
    }
    let parts = parts(content, at)?.into_iter().enumerate().map(|(index, part)| {
        let at = format!("{at}[{index}]");
        if kind(&part) == "text" { plain_text(&part, &at) } else { Err(no_counterpart(at)) }
    });
    Ok(joined(parts.collect::<Result<_, _>>()?))
}

/// A text part or block without what does not matter; citations do.
pub(super) fn plain_text(part: &Value, at: &str) -> Result<Value, Inexpressible> {
    let fields = object(part, at)?;
    only_if(fields, at, |name, value| match name {
        "type" | "text" | "cache_control" => true,
        "citations" => none_of(value),
        _ => false,
    })?;
    Ok(text_part(text(fields, "text", at)?))
}

/// A text for Anthropic, as a part of OpenAI's; Anthropic refuses every blank one.
pub(super) fn worded(part: &Value, at: &str) -> Result<Value, Inexpressible> {
    let part = plain_text(part, at)?;
    if part["text"].as_str().is_some_and(|text| text.trim().is_empty()) {
        return Err(Inexpressible::new(at, "is a blank text, which Anthropic refuses"));
    }
    Ok(part)
}

/// A part of a user's turn in OpenAI's form, from a block of Anthropic's.
pub(super) fn part_to_openai(block: &Value, at: &str) -> Result<Value, Inexpressible> {
    match kind(block) {
        "text" => plain_text(block, at),
        "image" => image_to_openai(block, at),
        _ => Err(no_counterpart(at)),
    }
}

/// A block of a user's turn in Anthropic's form, from a part of OpenAI's.
pub(super) fn part_to_anthropic(part: &Value, at: &str) -> Result<Value, Inexpressible> {
    match kind(part) {
        "text" => worded(part, at),
        "image_url" => image_to_anthropic(part, at),
        _ => Err(no_counterpart(at)),
    }
}

/// An image as an `image_url` part; base64 becomes a data URL.
pub(in crate::dialect) fn image_to_openai(block: &Value, at: &str) -> Result<Value, Inexpressible> {
    let fields = object(block, at)?;
    only(fields, &["type", "source", "cache_control"], at)?;
    let at = format!("{at}.source");
    let source = object(&block["source"], &at)?;
    let url = match kind(&block["source"]) {
        "url" => {
            only(source, &["type", "url"], &at)?;
            let url = text(source, "url", &at)?;
            if is_data(url) {
                return Err(Inexpressible::new(at, "is a data URL, which base64 sources are for"));
            }
            url.to_owned()
        }
        "base64" => {
            only(source, &["type", "media_type", "data"], &at)?;
            let media_type = text(source, "media_type", &at)?;
            if !IMAGES.contains(&media_type) {
                return Err(Inexpressible::new(at, "is of a media type that not every model reads"));
            }
            format!("data:{media_type};base64,{}", text(source, "data", &at)?)
        }
        _ => return Err(no_counterpart(at)),
    };
    Ok(json!({ "type": "image_url", "image_url": { "url": url } }))
}

fn image_to_anthropic(part: &Value, at: &str) -> Result<Value, Inexpressible> {
    only(object(part, at)?, &["type", "image_url"], at)?;
    let at = format!("{at}.image_url");
    let image = object(&part["image_url"], &at)?;
    // `auto` is what Anthropic does with every image.
    only_if(image, &at, |name, value| name == "url" || name == "detail" && value == "auto")?;
    let url = text(image, "url", &at)?;
    let source = if is_data(url) {
        let (media_type, data) = url["data:".len()..]
            .split_once(";base64,")
            .filter(|(media_type, _)| IMAGES.contains(media_type))
            .ok_or_else(|| Inexpressible::new(at, "is no base64 image that Anthropic takes"))?;
        json!({ "type": "base64", "media_type": media_type, "data": data })
    } else if begins(url, "https://") {
        json!({ "type": "url", "url": url })
    } else {
        return Err(Inexpressible::new(at, "is at no https address, and Anthropic fetches from no other"));
    };
    Ok(json!({ "type": "image", "source": source }))
}

fn is_data(url: &str) -> bool {
    begins(url, "data:")
}

fn begins(url: &str, scheme: &str) -> bool {
    url.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
}

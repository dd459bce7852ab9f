//! To Anthropic's turns.

use serde_json::{Map, Value, json};

use super::super::super::Inexpressible;
use super::super::content::{joined, kind, part_to_anthropic, parts, texts, worded};
use super::super::object::{no_counterpart, none_of, object, only, only_if, said, text};
use super::super::{TOOL_ERROR, text_part};
use super::PREFILL;

/// The system prompt and the turns. Instructions before the conversation are the system prompt,
/// several of them as several blocks of it; later ones are turns, which newer models take. Tools'
/// results and what the user says next are one turn, as Anthropic wants it.
pub(in super::super) fn to_anthropic(
    messages: &[Value],
) -> Result<(Option<Value>, Vec<Value>), Inexpressible> {
    let mut system = Vec::new();
    let mut turns: Vec<Value> = Vec::new();
    let mut results: Vec<Value> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let fields = object(message, &at)?;
        let content = format!("{at}.content");
        let role = text(fields, "role", &at)?;
        if !matches!(role, "tool" | "user") && !results.is_empty() {
            turns.push(json!({ "role": "user", "content": std::mem::take(&mut results) }));
        }
        match role {
            "system" | "developer" => {
                only(fields, &["role", "content"], &at)?;
                let words = texts(&message["content"], &content)?;
                if turns.is_empty() {
                    system.push(words);
                } else {
                    turns.push(json!({ "role": "system", "content": words }));
                }
            }
            "user" => {
                only(fields, &["role", "content"], &at)?;
                let mut blocks = std::mem::take(&mut results);
                for (index, part) in parts(&message["content"], &content)?.iter().enumerate() {
                    blocks.push(part_to_anthropic(part, &format!("{content}[{index}]"))?);
                }
                turns.push(json!({ "role": "user", "content": said_by(blocks, content)? }));
            }
            "assistant" if index + 1 == messages.len() => return Err(Inexpressible::new(at, PREFILL)),
            "assistant" => turns.push(json!({ "role": "assistant", "content": assistant(message, &at)? })),
            "tool" => results.push(tool_result(message, &at)?),
            _ => return Err(no_counterpart(format!("{at}.role"))),
        }
    }
    if !results.is_empty() {
        turns.push(json!({ "role": "user", "content": results }));
    }
    if turns.is_empty() {
        return Err(Inexpressible::new("messages", "holds only instructions, and Anthropic wants a turn"));
    }
    Ok((join_system(system)?, turns))
}

fn join_system(mut system: Vec<Value>) -> Result<Option<Value>, Inexpressible> {
    if system.len() < 2 {
        return Ok(system.pop());
    }
    let mut blocks = Vec::new();
    for words in &system {
        for part in parts(words, "messages")? {
            blocks.push(worded(&part, "messages")?);
        }
    }
    Ok(Some(joined(blocks)))
}

fn tool_result(message: &Value, at: &str) -> Result<Value, Inexpressible> {
    let fields = object(message, at)?;
    only(fields, &["role", "tool_call_id", "content"], at)?;
    let id = call_id(fields, "tool_call_id", at)?;
    let mut content = texts(&message["content"], &format!("{at}.content"))?;
    let begin = if content.is_array() {
        content.get_mut(0).map(|part| &mut part["text"])
    } else {
        Some(&mut content)
    };
    let mut failed = false;
    if let Some(begin) = begin
        && let Some(text) = begin.as_str().and_then(|text| text.strip_prefix(TOOL_ERROR))
    {
        failed = true;
        *begin = text.into();
    }
    let mut result = json!({ "type": "tool_result", "tool_use_id": id, "content": content });
    if failed {
        result["is_error"] = true.into();
    }
    Ok(result)
}

fn assistant(message: &Value, at: &str) -> Result<Value, Inexpressible> {
    let fields = object(message, at)?;
    only_if(fields, at, |name, value| match name {
        "role" | "content" | "tool_calls" => true,
        // What an answer may hold and clients send back although it says nothing.
        _ => none_of(value) || name == "reasoning_content" && value == "",
    })?;
    let content = format!("{at}.content");
    let calls = said(fields, "tool_calls").filter(|calls| !none_of(calls));
    let mut blocks = match said(fields, "content") {
        None => Vec::new(),
        Some(Value::String(text)) if text.is_empty() && calls.is_some() => Vec::new(),
        Some(Value::String(text)) => vec![worded(&text_part(text), &content)?],
        Some(words) => {
            let words = parts(words, &content)?;
            let words = words.iter().enumerate().map(|(index, part)| {
                let at = format!("{content}[{index}]");
                if kind(part) == "text" { worded(part, &at) } else { Err(no_counterpart(at)) }
            });
            words.collect::<Result<_, _>>()?
        }
    };
    let at = format!("{at}.tool_calls");
    for (index, call) in
        calls.map(|calls| parts(calls, &at)).transpose()?.unwrap_or_default().iter().enumerate()
    {
        blocks.push(tool_use(call, &format!("{at}[{index}]"))?);
    }
    said_by(blocks, content)
}

/// The content of a turn, which Anthropic wants not to be empty.
fn said_by(blocks: Vec<Value>, at: String) -> Result<Value, Inexpressible> {
    if blocks.is_empty() {
        return Err(Inexpressible::new(at, "is empty, and Anthropic wants a turn to say something"));
    }
    Ok(joined(blocks))
}

fn tool_use(call: &Value, at: &str) -> Result<Value, Inexpressible> {
    let fields = object(call, at)?;
    // Some clients send a delta's number back; its place says the same.
    only(fields, &["id", "type", "function", "index"], at)?;
    if said(fields, "type").is_some_and(|kind| kind != "function") {
        return Err(no_counterpart(at));
    }
    let id = call_id(fields, "id", at)?;
    let at = format!("{at}.function");
    let function = object(&call["function"], &at)?;
    only(function, &["name", "arguments"], &at)?;
    let input = match text(function, "arguments", &at)? {
        "" => json!({}),
        arguments => serde_json::from_str(arguments).ok().filter(Value::is_object).ok_or_else(|| {
            Inexpressible::new(format!("{at}.arguments"), "is no JSON object, which Anthropic wants")
        })?,
    };
    Ok(json!({ "type": "tool_use", "id": id, "name": text(function, "name", &at)?, "input": input }))
}

/// The id of a call, of which Anthropic demands that it is made of these letters. It is not written
/// anew, since the caller will name the call by it.
fn call_id<'a>(fields: &'a Map<String, Value>, name: &str, at: &str) -> Result<&'a str, Inexpressible> {
    let id = text(fields, name, at)?;
    let is_known = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-');
    if id.is_empty() || !id.bytes().all(is_known) {
        return Err(Inexpressible::new(format!("{at}.{name}"), "is no id that Anthropic takes"));
    }
    Ok(id)
}

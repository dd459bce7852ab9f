//! From Anthropic's turns.

use serde_json::{Map, Value, json};

use super::super::super::Inexpressible;
use super::super::TOOL_ERROR;
use super::super::content::{joined, kind, part_to_openai, parts, plain_text, texts};
use super::super::object::{no_counterpart, none_of, object, only, only_if, said, text};
use super::PREFILL;

/// The system prompt as the message that comes first; none for an empty list, since OpenAI takes no
/// content of no parts.
pub(in crate::dialect) fn system_to_openai(system: &Value) -> Result<Option<Value>, Inexpressible> {
    let content = texts(system, "system")?;
    Ok((content != json!([])).then(|| json!({ "role": "system", "content": content })))
}

/// One turn, as the messages that say the same; `last` when the conversation ends with it.
pub(in crate::dialect) fn turn_to_openai(
    turn: &Value,
    index: usize,
    last: bool,
) -> Result<Vec<Value>, Inexpressible> {
    let at = format!("messages[{index}]");
    let fields = object(turn, &at)?;
    only(fields, &["role", "content"], &at)?;
    let content = format!("{at}.content");
    match text(fields, "role", &at)? {
        "user" => user(&turn["content"], &content),
        "assistant" if last => Err(Inexpressible::new(at, PREFILL)),
        "assistant" => Ok(vec![assistant(&turn["content"], &content)?]),
        "system" => Ok(vec![json!({ "role": "system", "content": texts(&turn["content"], &content)? })]),
        _ => Err(no_counterpart(format!("{at}.role"))),
    }
}

/// Tools' results, then what the user says.
fn user(content: &Value, at: &str) -> Result<Vec<Value>, Inexpressible> {
    let mut messages = Vec::new();
    let mut said = Vec::new();
    for (index, block) in parts(content, at)?.iter().enumerate() {
        let at = format!("{at}[{index}]");
        if kind(block) != "tool_result" {
            said.push(part_to_openai(block, &at)?);
        } else if said.is_empty() {
            messages.push(tool_message(block, &at)?);
        } else {
            return Err(Inexpressible::new(at, "is a tool's result that does not come first"));
        }
    }
    if messages.is_empty() || !said.is_empty() {
        messages.push(json!({ "role": "user", "content": joined(said) }));
    }
    Ok(messages)
}

fn tool_message(block: &Value, at: &str) -> Result<Value, Inexpressible> {
    let fields = object(block, at)?;
    only(fields, &["type", "tool_use_id", "content", "is_error", "cache_control"], at)?;
    let id = text(fields, "tool_use_id", at)?;
    let mut content = match said(fields, "content") {
        Some(content) => texts(content, &format!("{at}.content"))?,
        None => json!(""),
    };
    // Where the mark of a failure stands, or would.
    let begin = match &mut content {
        Value::Array(parts) if parts.is_empty() => {
            content = json!("");
            &mut content
        }
        Value::Array(parts) => &mut parts[0]["text"],
        text => text,
    };
    let text = begin.as_str().unwrap_or_default();
    if said(fields, "is_error").is_none_or(none_of) {
        if text.starts_with(TOOL_ERROR) {
            let reason = format!("begins with {TOOL_ERROR:?} and is no failure");
            return Err(Inexpressible::new(format!("{at}.content"), reason));
        }
    } else {
        *begin = format!("{TOOL_ERROR}{text}").into();
    }
    Ok(json!({ "role": "tool", "tool_call_id": id, "content": content }))
}

/// Text, then calls. Thinking that nobody signed came from another dialect and goes back there.
fn assistant(content: &Value, at: &str) -> Result<Value, Inexpressible> {
    let mut thoughts = String::new();
    let mut said = Vec::new();
    let mut calls = Vec::new();
    for (index, block) in parts(content, at)?.iter().enumerate() {
        let at = format!("{at}[{index}]");
        match kind(block) {
            "text" if calls.is_empty() => said.push(plain_text(block, &at)?),
            "text" => return Err(Inexpressible::new(at, "is text after a tool call")),
            "tool_use" => calls.push(call(block, &at)?),
            "thinking" if said.is_empty() && calls.is_empty() => thoughts += unsigned(block, &at)?,
            _ => return Err(no_counterpart(at)),
        }
    }
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    let content = if said.is_empty() && !calls.is_empty() { Value::Null } else { joined(said) };
    message.insert("content".to_owned(), content);
    if !thoughts.is_empty() {
        message.insert("reasoning_content".to_owned(), thoughts.into());
    }
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
    }
    Ok(message.into())
}

fn unsigned<'a>(block: &'a Value, at: &str) -> Result<&'a str, Inexpressible> {
    let fields = object(block, at)?;
    if said(fields, "signature").is_some_and(|signature| signature != "") {
        return Err(Inexpressible::new(at, "is thinking that only Anthropic can read again"));
    }
    only(fields, &["type", "thinking", "signature"], at)?;
    text(fields, "thinking", at)
}

fn call(block: &Value, at: &str) -> Result<Value, Inexpressible> {
    let fields = object(block, at)?;
    only_if(fields, at, |name, value| match name {
        "type" | "id" | "name" | "input" | "cache_control" => true,
        // The model itself, as ever; not a program of its own.
        "caller" => *value == json!({ "type": "direct" }),
        _ => false,
    })?;
    let input = object(&block["input"], &format!("{at}.input"))?;
    let arguments = Value::from(input.clone()).to_string();
    let function = json!({ "name": text(fields, "name", at)?, "arguments": arguments });
    Ok(json!({ "id": text(fields, "id", at)?, "type": "function", "function": function }))
}

//! The conversation, item by item.
//!
//! What a model says in one go is several items in responses (thoughts, a message, calls) and one
//! message in chat completions.

use serde_json::{Map, Value, json};

use super::super::super::Inexpressible;
use super::super::super::request::object::{no_counterpart, none_of, object, only_if, said, text};
use super::content::{input, input_text, output, to_chat as content_to_chat};

/// The instructions, as the message that comes first.
pub(in crate::dialect) fn instructions_to_chat(instructions: &Value) -> Result<Value, Inexpressible> {
    match instructions {
        Value::String(_) => Ok(json!({ "role": "system", "content": instructions })),
        _ => Err(Inexpressible::new("instructions", "must be a string")),
    }
}

/// The input, as the messages that say the same.
pub(in crate::dialect) fn to_chat(input: Option<&Value>) -> Result<Vec<Value>, Inexpressible> {
    let items = match input {
        Some(Value::String(_)) => return Ok(vec![json!({ "role": "user", "content": input })]),
        Some(Value::Array(items)) if !items.is_empty() => items,
        _ => return Err(Inexpressible::new("input", "must be a string or an array of at least one item")),
    };
    let mut conversation = Conversation::default();
    for (index, item) in items.iter().enumerate() {
        conversation.push(item, &format!("input[{index}]"))?;
    }
    conversation.no_thought()?;
    Ok(conversation.messages)
}

#[derive(Default)]
struct Conversation {
    messages: Vec<Value>,
    /// The last message is the model's, and a call that comes next is part of it.
    open: bool,
    /// What the model thought before what it says next, and where that stands.
    thought: Option<(String, String)>,
}

impl Conversation {
    fn push(&mut self, item: &Value, at: &str) -> Result<(), Inexpressible> {
        let fields = object(item, at)?;
        let kind = said(fields, "type").and_then(Value::as_str);
        match kind {
            Some("message") => self.message(fields, at),
            None if fields.contains_key("role") => self.message(fields, at),
            Some("function_call") => self.call(fields, at),
            Some("function_call_output") => {
                self.no_thought()?;
                self.open = false;
                self.messages.push(tool_message(fields, at)?);
                Ok(())
            }
            Some("reasoning") => self.think(fields, at),
            Some("item_reference") | None => {
                Err(Inexpressible::new(at, "refers to an item that only one provider has"))
            }
            Some(_) => Err(no_counterpart(at)),
        }
    }

    fn message(&mut self, fields: &Map<String, Value>, at: &str) -> Result<(), Inexpressible> {
        only_if(fields, at, |name, value| match name {
            "type" | "role" | "content" | "id" => true,
            "status" => value == "completed",
            _ => false,
        })?;
        let content = said(fields, "content").unwrap_or(&Value::Null);
        let place = format!("{at}.content");
        match text(fields, "role", at)? {
            role @ ("user" | "system" | "developer") => {
                self.no_thought()?;
                self.open = false;
                let content = content_to_chat(content, &place, input)?;
                self.messages.push(json!({ "role": role, "content": content }));
            }
            "assistant" => {
                let content = content_to_chat(content, &place, output)?;
                self.say(&content);
            }
            _ => return Err(no_counterpart(format!("{at}.role"))),
        }
        Ok(())
    }

    /// Begins a message of the model's.
    fn say(&mut self, content: &Value) {
        let mut message = json!({ "role": "assistant", "content": content });
        if let Some((thought, _)) = self.thought.take() {
            message["reasoning_content"] = thought.into();
        }
        self.messages.push(message);
        self.open = true;
    }

    fn call(&mut self, fields: &Map<String, Value>, at: &str) -> Result<(), Inexpressible> {
        only_if(fields, at, |name, value| match name {
            "type" | "id" | "call_id" | "name" | "arguments" => true,
            _ => is_plain(name, value),
        })?;
        let function =
            json!({ "name": text(fields, "name", at)?, "arguments": text(fields, "arguments", at)? });
        let call = json!({ "id": text(fields, "call_id", at)?, "type": "function", "function": function });
        if !self.open {
            self.say(&Value::Null);
        }
        let Some(message) = self.messages.last_mut() else { return Ok(()) };
        match message["tool_calls"].as_array_mut() {
            Some(calls) => calls.push(call),
            None => message["tool_calls"] = json!([call]),
        }
        Ok(())
    }

    /// Takes thoughts that anybody can read; others stand for what only their provider knows.
    fn think(&mut self, fields: &Map<String, Value>, at: &str) -> Result<(), Inexpressible> {
        only_if(fields, at, |name, value| match name {
            "type" | "id" | "content" => true,
            "status" => value == "completed",
            _ => none_of(value),
        })
        .map_err(|_| hidden(at))?;
        let mut thought = String::new();
        for part in said(fields, "content").and_then(Value::as_array).into_iter().flatten() {
            match part["text"].as_str() {
                Some(text) if part["type"] == "reasoning_text" => thought += text,
                _ => return Err(hidden(at)),
            }
        }
        if thought.is_empty() {
            return Err(hidden(at));
        }
        let calls = self.messages.last().is_some_and(|message| !message["tool_calls"].is_null());
        if self.thought.is_some() || self.open && calls {
            return Err(Inexpressible::new(at, "is a thought amid others or between calls"));
        }
        self.open = false;
        self.thought = Some((thought, at.to_owned()));
        Ok(())
    }

    fn no_thought(&self) -> Result<(), Inexpressible> {
        match &self.thought {
            Some((_, at)) => Err(Inexpressible::new(at, "is a thought that nothing follows")),
            None => Ok(()),
        }
    }
}

fn hidden(at: &str) -> Inexpressible {
    Inexpressible::new(at, "is a thought that only its provider can read again")
}

fn tool_message(fields: &Map<String, Value>, at: &str) -> Result<Value, Inexpressible> {
    only_if(fields, at, |name, value| match name {
        "type" | "id" | "call_id" | "output" => true,
        _ => is_plain(name, value),
    })?;
    let output = said(fields, "output").unwrap_or(&Value::Null);
    let content = content_to_chat(output, &format!("{at}.output"), input_text)?;
    Ok(json!({ "role": "tool", "tool_call_id": text(fields, "call_id", at)?, "content": content }))
}

/// A finished call by the model itself, or what came of it.
fn is_plain(name: &str, value: &Value) -> bool {
    match name {
        "status" => value == "completed",
        "caller" => *value == json!({ "type": "direct" }),
        "async" => none_of(value),
        _ => false,
    }
}

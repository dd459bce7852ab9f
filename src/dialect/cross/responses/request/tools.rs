//! Functions a model may call, and whether it must.

use serde_json::{Map, Value, json};

use super::super::super::Inexpressible;
use super::super::super::request::object::{no_counterpart, none_of, object, only, only_if, said, text};

/// The fields that are read here, together: chat completions take the last two only with tools.
pub(in crate::dialect) const FIELDS: [&str; 3] = ["parallel_tool_calls", "tool_choice", "tools"];

/// What the fields say, in chat completions. Built-in tools run at OpenAI, and custom ones are
/// known to few others.
pub(in crate::dialect) fn to_chat(body: &Map<String, Value>) -> Result<Map<String, Value>, Inexpressible> {
    let mut request = Map::new();
    let tools = match said(body, "tools") {
        None => &Vec::new(),
        Some(Value::Array(tools)) => tools,
        Some(_) => return Err(Inexpressible::new("tools", "must be an array")),
    };
    if !tools.is_empty() {
        let tools = tools.iter().enumerate().map(|(index, tool)| function(tool, &format!("tools[{index}]")));
        request.insert("tools".to_owned(), tools.collect::<Result<_, _>>()?);
    }
    match said(body, "tool_choice") {
        None => {}
        // Without tools this is all there is to choose.
        Some(Value::String(word)) if tools.is_empty() && matches!(word.as_str(), "auto" | "none") => {}
        Some(choice) => drop(request.insert("tool_choice".to_owned(), choice_to_chat(choice)?)),
    }
    match said(body, "parallel_tool_calls") {
        None | Some(Value::Bool(true)) => {}
        Some(Value::Bool(false)) if tools.is_empty() => {}
        Some(Value::Bool(false)) => drop(request.insert("parallel_tool_calls".to_owned(), false.into())),
        Some(_) => return Err(Inexpressible::new("parallel_tool_calls", "must be a boolean")),
    }
    Ok(request)
}

fn function(tool: &Value, at: &str) -> Result<Value, Inexpressible> {
    let fields = object(tool, at)?;
    match text(fields, "type", at)? {
        "function" => {}
        "custom" => return Err(Inexpressible::new(at, "is a custom tool, which few models know")),
        _ => return Err(Inexpressible::new(at, "is a tool that only its provider runs or defines")),
    }
    only_if(fields, at, |name, value| match name {
        "type" | "name" | "description" | "parameters" | "strict" => true,
        "allowed_callers" => *value == json!(["direct"]),
        _ => none_of(value),
    })?;
    let mut function = Map::new();
    function.insert("name".to_owned(), text(fields, "name", at)?.into());
    for name in ["description", "parameters"] {
        function.extend(said(fields, name).map(|value| (name.to_owned(), value.clone())));
    }
    let strict = match said(fields, "strict") {
        None => said(fields, "parameters").is_some_and(is_strict),
        Some(Value::Bool(strict)) => *strict,
        Some(_) => return Err(Inexpressible::new(format!("{at}.strict"), "must be a boolean")),
    };
    if strict {
        function.insert("strict".to_owned(), true.into());
    }
    Ok(json!({ "type": "function", "function": function }))
}

/// Whether the schema is what strict mode wants: every object in it names all its fields, requires
/// all of them and allows no others.
fn is_strict(schema: &Value) -> bool {
    let objects_are = match schema.get("properties").and_then(Value::as_object) {
        Some(properties) => {
            let required = schema["required"].as_array();
            schema["additionalProperties"] == false
                && properties.keys().all(|name| required.is_some_and(|names| names.contains(&json!(name))))
        }
        None => schema["type"] != "object",
    };
    objects_are
        && match schema {
            Value::Object(fields) => fields.values().all(is_strict),
            Value::Array(items) => items.iter().all(is_strict),
            _ => true,
        }
}

fn choice_to_chat(choice: &Value) -> Result<Value, Inexpressible> {
    let at = "tool_choice";
    if let Some(word) = choice.as_str() {
        let known = matches!(word, "auto" | "none" | "required");
        return if known { Ok(choice.clone()) } else { Err(no_counterpart(at)) };
    }
    let fields = object(choice, at)?;
    if choice["type"] != "function" {
        return Err(no_counterpart(at));
    }
    only(fields, &["type", "name"], at)?;
    Ok(json!({ "type": "function", "function": { "name": text(fields, "name", at)? } }))
}

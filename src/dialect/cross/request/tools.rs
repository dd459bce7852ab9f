//! Tools a model may call, and whether it must.

use serde_json::{Map, Value, json};

use super::super::Inexpressible;
use super::object::{no_counterpart, object, only, said, text};

type Named = (String, Value);

/// Custom tools as functions. Server tools run at Anthropic, so nobody else can have them.
pub(super) fn to_openai(tools: &Value) -> Result<Value, Inexpressible> {
    list(tools)?.iter().enumerate().map(|(index, tool)| function(tool, &format!("tools[{index}]"))).collect()
}

/// Functions as custom tools. One without parameters takes an empty object, as OpenAI says.
pub(super) fn to_anthropic(tools: &Value) -> Result<Value, Inexpressible> {
    list(tools)?.iter().enumerate().map(|(index, tool)| custom(tool, &format!("tools[{index}]"))).collect()
}

fn list(tools: &Value) -> Result<&Vec<Value>, Inexpressible> {
    tools.as_array().ok_or_else(|| Inexpressible::new("tools", "must be an array"))
}

fn function(tool: &Value, at: &str) -> Result<Value, Inexpressible> {
    let fields = object(tool, at)?;
    if said(fields, "type").is_some_and(|kind| kind != "custom") {
        return Err(Inexpressible::new(at, "is a tool that only Anthropic runs or defines"));
    }
    only(fields, &["type", "name", "description", "input_schema", "strict", "cache_control"], at)?;
    let schema = object(&tool["input_schema"], &format!("{at}.input_schema"))?;
    let mut function = named(fields, at)?;
    function.insert("parameters".to_owned(), schema.clone().into());
    Ok(json!({ "type": "function", "function": function }))
}

fn custom(tool: &Value, at: &str) -> Result<Value, Inexpressible> {
    let fields = object(tool, at)?;
    only(fields, &["type", "function"], at)?;
    if tool["type"] != "function" {
        return Err(no_counterpart(at));
    }
    let at = format!("{at}.function");
    let fields = object(&tool["function"], &at)?;
    only(fields, &["name", "description", "parameters", "strict"], &at)?;
    let schema = match said(fields, "parameters") {
        Some(schema) => object(schema, &format!("{at}.parameters"))?.clone().into(),
        None => json!({ "type": "object", "properties": {} }),
    };
    let mut tool = named(fields, &at)?;
    tool.insert("input_schema".to_owned(), schema);
    Ok(tool.into())
}

/// The fields that both dialects have under the same names.
fn named(fields: &Map<String, Value>, at: &str) -> Result<Map<String, Value>, Inexpressible> {
    text(fields, "name", at)?;
    let same = ["name", "description", "strict"];
    let kept = same.iter().filter_map(|name| Some(((*name).to_owned(), said(fields, name)?.clone())));
    Ok(kept.collect())
}

/// `tool_choice`, and `parallel_tool_calls` where one at a time is wanted.
pub(super) fn choice_to_openai(choice: &Value) -> Result<Vec<Named>, Inexpressible> {
    let at = "tool_choice";
    let fields = object(choice, at)?;
    let kind = text(fields, "type", at)?;
    let (known, choice) = match kind {
        "auto" => (&["type", "disable_parallel_tool_use"][..], json!("auto")),
        "any" => (&["type", "disable_parallel_tool_use"][..], json!("required")),
        "none" => (&["type"][..], json!("none")),
        "tool" => (
            &["type", "disable_parallel_tool_use", "name"][..],
            json!({ "type": "function", "function": { "name": text(fields, "name", at)? } }),
        ),
        _ => return Err(no_counterpart(at)),
    };
    only(fields, known, at)?;
    let mut named = vec![(at.to_owned(), choice)];
    match said(fields, "disable_parallel_tool_use") {
        None | Some(Value::Bool(false)) => {}
        Some(Value::Bool(true)) => named.push(("parallel_tool_calls".to_owned(), false.into())),
        Some(_) => {
            return Err(Inexpressible::new(format!("{at}.disable_parallel_tool_use"), "must be a boolean"));
        }
    }
    Ok(named)
}

/// Writes `tool_choice` from the two fields that OpenAI has for it. Calls one at a time are a
/// matter of the choice at Anthropic; where no tool may be called they mean nothing.
pub(super) fn choice_to_anthropic(
    body: &Map<String, Value>,
    request: &mut Map<String, Value>,
) -> Result<(), Inexpressible> {
    let at = "tool_choice";
    let single = match said(body, "parallel_tool_calls") {
        None | Some(Value::Bool(true)) => false,
        Some(Value::Bool(false)) => true,
        Some(_) => return Err(Inexpressible::new("parallel_tool_calls", "must be a boolean")),
    };
    let mut choice = match said(body, at) {
        None if single && said(body, "tools").is_some_and(|tools| *tools != json!([])) => {
            json!({ "type": "auto" })
        }
        None => return Ok(()),
        Some(Value::String(word)) => match word.as_str() {
            "auto" => json!({ "type": "auto" }),
            "required" => json!({ "type": "any" }),
            "none" => json!({ "type": "none" }),
            _ => return Err(no_counterpart(at)),
        },
        Some(choice) => {
            let fields = object(choice, at)?;
            only(fields, &["type", "function"], at)?;
            if choice["type"] != "function" {
                return Err(no_counterpart(at));
            }
            let at = format!("{at}.function");
            let function = object(&choice["function"], &at)?;
            only(function, &["name"], &at)?;
            json!({ "type": "tool", "name": text(function, "name", &at)? })
        }
    };
    if single && choice["type"] != "none" {
        choice["disable_parallel_tool_use"] = true.into();
    }
    request.insert(at.to_owned(), choice);
    Ok(())
}

//! Top-level fields, other than tools and the conversation itself.

use serde_json::{Map, Value, json};

use super::super::super::Inexpressible;
use super::super::super::request::SILENT_AT_OPENAI;
use super::super::super::request::object::{no_counterpart, none_of, object, only, only_if, said, text};

type Named = (String, Value);

/// What `include` may ask for without a chat completion missing it; the module says why.
const INCLUDED: [&str; 6] = [
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
];

/// One field of a Responses request, as the fields that say the same in chat completions.
pub(in crate::dialect) fn to_chat(name: &str, value: &Value) -> Result<Vec<Named>, Inexpressible> {
    let one = |name: &str, value: &Value| Ok(vec![(name.to_owned(), value.clone())]);
    let nothing = Ok(Vec::new());
    match name {
        _ if value.is_null() || SILENT_AT_OPENAI.contains(&name) => nothing,
        "stream" if *value == Value::Bool(true) => Ok(vec![
            (name.to_owned(), true.into()),
            ("stream_options".to_owned(), json!({ "include_usage": true })),
        ]),
        // The last two are for whoever routes, not for a provider.
        "model" | "stream" | "temperature" | "top_p" | "models" | "provider" => one(name, value),
        // Not `max_tokens`: both count a model's thoughts, and reasoning models take no other.
        "max_output_tokens" => one("max_completion_tokens", value),
        "text" => text_to_chat(value),
        "reasoning" => reasoning_to_chat(value),
        "include" => include_to_chat(value),
        "max_tool_calls" => nothing,
        "background" | "background_options" | "context_management" | "top_logprobs" if none_of(value) => {
            nothing
        }
        "truncation" if value == "disabled" => nothing,
        "background" => Err(Inexpressible::new(name, "asks for an answer that is fetched later")),
        "conversation" | "previous_response_id" => {
            Err(Inexpressible::new(name, "names a history that only one provider has"))
        }
        "prompt" => Err(Inexpressible::new(name, "names a template that only one provider has")),
        _ => Err(no_counterpart(name)),
    }
}

/// The form of the answer and its length. `medium` is the default of both dialects.
fn text_to_chat(config: &Value) -> Result<Vec<Named>, Inexpressible> {
    let fields = object(config, "text")?;
    only(fields, &["format", "verbosity"], "text")?;
    let mut named = Vec::new();
    if let Some(verbosity) = said(fields, "verbosity").filter(|word| *word != "medium") {
        named.push(("verbosity".to_owned(), verbosity.clone()));
    }
    let Some(format) = said(fields, "format") else { return Ok(named) };
    let at = "text.format";
    let fields = object(format, at)?;
    match text(fields, "type", at)? {
        "text" => only(fields, &["type"], at)?,
        "json_object" => {
            only(fields, &["type"], at)?;
            named.push(("response_format".to_owned(), format.clone()));
        }
        "json_schema" => {
            let known = ["name", "description", "schema", "strict"];
            only_if(fields, at, |name, _| name == "type" || known.contains(&name))?;
            let schema: Map<_, _> = known
                .iter()
                .filter_map(|name| Some(((*name).to_owned(), said(fields, name)?.clone())))
                .collect();
            named.push((
                "response_format".to_owned(),
                json!({ "type": "json_schema", "json_schema": schema }),
            ));
        }
        _ => return Err(no_counterpart(at)),
    }
    Ok(named)
}

fn reasoning_to_chat(config: &Value) -> Result<Vec<Named>, Inexpressible> {
    let fields = object(config, "reasoning")?;
    // The model chooses the context either way; a summary is what no chat completion tells.
    only_if(fields, "reasoning", |name, value| name == "effort" || name == "context" && value == "auto")?;
    let effort = said(fields, "effort").cloned();
    Ok(effort.map(|effort| ("reasoning_effort".to_owned(), effort)).into_iter().collect())
}

fn include_to_chat(include: &Value) -> Result<Vec<Named>, Inexpressible> {
    let asked = include.as_array().ok_or_else(|| Inexpressible::new("include", "must be an array"))?;
    match asked.iter().position(|word| !word.as_str().is_some_and(|word| INCLUDED.contains(&word))) {
        Some(index) => Err(no_counterpart(format!("include[{index}]"))),
        None => Ok(Vec::new()),
    }
}

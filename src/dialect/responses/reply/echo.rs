//! What a response repeats of its request.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The fields of a request that its response repeats, and what stands there when the request says
/// nothing. Settings whose default is the model's are `null` then, since it is not known here.
///
/// SDKs demand some of them (`parallel_tool_calls`, `tool_choice`, `tools`).
#[derive(Clone, Debug)]
pub struct Echo(Map<String, Value>);

impl Default for Echo {
    fn default() -> Self {
        Self::of(b"{}")
    }
}

impl Echo {
    /// From the body of a request that was read already; all defaults where there is none.
    pub fn of(body: &[u8]) -> Self {
        let mut asked: BTreeMap<String, &RawValue> = serde_json::from_slice(body).unwrap_or_default();
        let mut echo = defaults();
        for (name, value) in &mut echo {
            let said = asked.remove(name).and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
            if let Some(said) = said.filter(|said| !said.is_null()) {
                *value = said;
            }
        }
        // Whoever the answer comes from, the response rendered here is kept nowhere.
        echo.insert("store".to_owned(), false.into());
        Self(echo)
    }

    /// The fields, in the order of a response.
    pub(super) fn fields(&self) -> &Map<String, Value> {
        &self.0
    }
}

/// Whether a field of a response repeats its request.
pub(super) fn is_echoed(name: &str) -> bool {
    /// What else providers repeat, or say of how it was asked; they are not written here.
    const MORE: [&str; 8] = [
        "access_programs",
        "conversation",
        "prompt",
        "prompt_cache_diagnostics",
        "prompt_cache_options",
        "prompt_cache_retention",
        "store",
        "top_logprobs",
    ];
    MORE.contains(&name) || defaults().contains_key(name)
}

fn defaults() -> Map<String, Value> {
    let Value::Object(fields) = json!({
        "background": false,
        "instructions": null,
        "max_output_tokens": null,
        "max_tool_calls": null,
        "metadata": {},
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "prompt_cache_key": null,
        "reasoning": { "effort": null, "summary": null },
        "safety_identifier": null,
        "temperature": null,
        "text": { "format": { "type": "text" } },
        "tool_choice": "auto",
        "tools": [],
        "top_p": null,
        "truncation": "disabled",
        "user": null,
    }) else {
        return Map::new();
    };
    fields
}

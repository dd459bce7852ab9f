//! The `usage` object: two counts understood, the details beside them kept as they are.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::chat::{ChatReply, Usage};

/// The key in `Extra::reply` for what stood beside the counts.
pub(super) const KEY: &str = "usage";

/// Takes the counts out of a raw usage object and leaves the rest in `extra`. A total that is
/// not the sum (some providers count reasoning there alone) stays with the rest.
pub(super) fn read(raw: Value, extra: &mut Map<String, Value>) -> Option<Usage> {
    let count = |name: &str| raw.get(name).and_then(Value::as_u64);
    let usage = count("prompt_tokens")
        .zip(count("completion_tokens"))
        .map(|(prompt_tokens, completion_tokens)| Usage { prompt_tokens, completion_tokens });
    let rest = match (usage, raw) {
        (Some(usage), Value::Object(mut fields)) => {
            fields.retain(|name, value| match name.as_str() {
                "prompt_tokens" | "completion_tokens" => false,
                "total_tokens" => value.as_u64() != Some(usage.total()),
                _ => true,
            });
            Value::Object(fields)
        }
        (_, raw) => raw,
    };
    if !(rest.is_null() || rest.as_object().is_some_and(Map::is_empty)) {
        extra.insert(KEY.to_owned(), rest);
    }
    usage
}

/// The usage of a reply in OpenAI's form.
pub(super) struct View<'a> {
    usage: Option<Usage>,
    rest: Option<&'a Value>,
    cached: bool,
}

impl<'a> View<'a> {
    /// `None` when the provider said nothing about usage.
    pub(super) fn of(reply: &'a ChatReply, cached: bool) -> Option<Self> {
        let rest = reply.extra.reply.get(KEY);
        (reply.usage.is_some() || rest.is_some()).then_some(Self { usage: reply.usage, rest, cached })
    }
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rest = match self.rest {
            None => None,
            Some(Value::Object(fields)) => Some(fields),
            Some(odd) => return odd.serialize(serializer),
        };
        let mut map = serializer.serialize_map(None)?;
        if let Some(usage) = self.usage {
            map.serialize_entry("prompt_tokens", &usage.prompt_tokens)?;
            map.serialize_entry("completion_tokens", &usage.completion_tokens)?;
            if rest.is_none_or(|fields| !fields.contains_key("total_tokens")) {
                map.serialize_entry("total_tokens", &usage.total())?;
            }
        }
        for (name, value) in rest.into_iter().flatten() {
            if !(self.cached && name == "cached") {
                map.serialize_entry(name, value)?;
            }
        }
        if self.cached {
            map.serialize_entry("cached", &true)?;
        }
        map.end()
    }
}

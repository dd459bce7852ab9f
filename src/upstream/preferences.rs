//! What a caller says about who shall answer: the fields `models` and `provider` of a request, as
//! OpenRouter defines them (<https://openrouter.ai/docs/guides/routing/provider-selection>).
//!
//! They are for whoever routes, so they never go to a provider. A wish that is not known here is
//! refused: one for privacy or price that is dropped in silence is worse than none.

use serde::Serialize;
use thiserror::Error;

use crate::chat::json::Json;

/// The fields of a request that are meant for the router.
pub(super) const FIELDS: [&str; 2] = ["models", "provider"];

/// Names in one list at most.
const MAX_NAMES: usize = 32;

/// A caller's wishes; by default none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preferences {
    /// Further models, to be tried in order when the request's own cannot answer.
    pub models: Vec<String>,
    /// Providers to be asked first, in this order.
    pub order: Vec<String>,
    /// Only these providers; all when empty.
    pub only: Vec<String>,
    /// None of these providers.
    pub ignore: Vec<String>,
    /// Whether a second provider may be asked at all, or one that is not in `order`.
    pub allow_fallbacks: bool,
    /// What comes first within a tier, in place of the model's own order.
    pub sort: Option<Sort>,
    /// Only targets that support every field of the request.
    pub require_parameters: bool,
}

/// What counts among targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// The soonest first content.
    Latency,
    /// The lowest price.
    Price,
    /// The most tokens a second.
    Throughput,
}

/// A wish that cannot be read.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("{param} {reason}")]
pub struct InvalidPreference {
    /// Which field.
    pub param: String,
    reason: String,
}

impl Default for Preferences {
    fn default() -> Self {
        Self::none()
    }
}

impl Preferences {
    /// No wishes.
    pub const fn none() -> Self {
        Self {
            models: Vec::new(),
            order: Vec::new(),
            only: Vec::new(),
            ignore: Vec::new(),
            allow_fallbacks: true,
            sort: None,
            require_parameters: false,
        }
    }
}

impl Preferences {
    /// Reads them from a request's fields.
    pub fn read(request: &Json) -> Result<Self, InvalidPreference> {
        let mut preferences = Self::default();
        if let Some(models) = request.get("models").filter(|models| **models != Json::Null) {
            preferences.models = names("models", models)?;
        }
        let fields = match request.get("provider") {
            None | Some(Json::Null) => return Ok(preferences),
            Some(Json::Object(fields)) => fields,
            Some(other) => return Err(wrong("provider", "an object", other)),
        };
        for (name, value) in fields.iter().filter(|(_, value)| *value != Json::Null) {
            let param = format!("provider.{name}");
            match name.as_str() {
                "order" => preferences.order = names(&param, value)?,
                "only" => preferences.only = names(&param, value)?,
                "ignore" => preferences.ignore = names(&param, value)?,
                "allow_fallbacks" => preferences.allow_fallbacks = flag(&param, value)?,
                "require_parameters" => preferences.require_parameters = flag(&param, value)?,
                "sort" => preferences.sort = Some(sort(&param, value)?),
                _ => {
                    let known = "order, only, ignore, allow_fallbacks, sort and require_parameters";
                    let reason = format!("is not known here: {known} are");
                    return Err(InvalidPreference { param, reason });
                }
            }
        }
        Ok(preferences)
    }
}

fn names(param: &str, value: &Json) -> Result<Vec<String>, InvalidPreference> {
    let Json::Array(names) = value else { return Err(wrong(param, "an array of names", value)) };
    if names.len() > MAX_NAMES {
        let reason = format!("holds {} names: at most {MAX_NAMES} are allowed", names.len());
        return Err(InvalidPreference { param: param.to_owned(), reason });
    }
    let name =
        |name: &Json| name.as_str().map(str::to_owned).ok_or_else(|| wrong(param, "an array of names", name));
    names.iter().map(name).collect()
}

fn flag(param: &str, value: &Json) -> Result<bool, InvalidPreference> {
    match value {
        Json::Bool(flag) => Ok(*flag),
        other => Err(wrong(param, "true or false", other)),
    }
}

fn sort(param: &str, value: &Json) -> Result<Sort, InvalidPreference> {
    match value.as_str() {
        Some("latency") => Ok(Sort::Latency),
        Some("price") => Ok(Sort::Price),
        Some("throughput") => Ok(Sort::Throughput),
        _ => Err(wrong(param, "\"latency\", \"price\" or \"throughput\"", value)),
    }
}

fn wrong(param: &str, expected: &str, found: &Json) -> InvalidPreference {
    InvalidPreference { param: param.to_owned(), reason: format!("must be {expected}, not {}", found.kind()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Preferences, InvalidPreference> {
        Preferences::read(&Json::parse(body.as_bytes(), 16).unwrap())
    }

    #[test]
    fn without_the_fields_there_are_none() {
        for body in ["{}", r#"{"models": null, "provider": null}"#, r#"{"provider": {"order": null}}"#] {
            assert_eq!(read(body), Ok(Preferences::default()), "{body}");
        }
    }

    #[test]
    fn reads_every_field() {
        let read = read(
            r#"{"models": ["b", "c"], "provider": {"order": ["x"], "only": ["x", "y"], "ignore": ["z"],
                "allow_fallbacks": false, "sort": "price", "require_parameters": true}}"#,
        );
        let expected = Preferences {
            models: vec!["b".into(), "c".into()],
            order: vec!["x".into()],
            only: vec!["x".into(), "y".into()],
            ignore: vec!["z".into()],
            allow_fallbacks: false,
            sort: Some(Sort::Price),
            require_parameters: true,
        };
        assert_eq!(read, Ok(expected));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (body, param, word) in [
            (r#"{"models": "b"}"#, "models", "array"),
            (r#"{"models": ["b", 1]}"#, "models", "array of names"),
            (r#"{"provider": "openai"}"#, "provider", "object"),
            (r#"{"provider": {"sort": "mood"}}"#, "provider.sort", "latency"),
            (r#"{"provider": {"allow_fallbacks": 1}}"#, "provider.allow_fallbacks", "true or false"),
            (r#"{"provider": {"data_collection": "deny"}}"#, "provider.data_collection", "not known"),
        ] {
            let error = read(body).unwrap_err();
            assert_eq!(error.param, param);
            assert!(error.to_string().contains(word), "{error}");
        }
        let many = format!(r#"{{"models": [{}]}}"#, vec!["\"m\""; 33].join(","));
        assert_eq!(read(&many).unwrap_err().param, "models");
    }
}

//! Reading JSON objects with nothing overlooked.

use serde_json::{Map, Value};

use super::super::Inexpressible;

/// The object that `value` has to be.
pub(in crate::dialect::cross) fn object<'a>(
    value: &'a Value,
    at: &str,
) -> Result<&'a Map<String, Value>, Inexpressible> {
    value.as_object().ok_or_else(|| Inexpressible::new(at, "is no object"))
}

/// A field's value; `null` is none.
pub(in crate::dialect::cross) fn said<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

/// A string that has to be there.
pub(in crate::dialect::cross) fn text<'a>(
    fields: &'a Map<String, Value>,
    name: &str,
    at: &str,
) -> Result<&'a str, Inexpressible> {
    let text = fields.get(name).and_then(Value::as_str);
    text.ok_or_else(|| Inexpressible::new(format!("{at}.{name}"), "must be a string"))
}

/// Refuses every field that is not `known`, unless it is `null`.
pub(in crate::dialect::cross) fn only(
    fields: &Map<String, Value>,
    known: &[&str],
    at: &str,
) -> Result<(), Inexpressible> {
    only_if(fields, at, |name, _| known.contains(&name))
}

/// Refuses every field that is not `known` by its name and value, unless it is `null`.
pub(in crate::dialect::cross) fn only_if(
    fields: &Map<String, Value>,
    at: &str,
    known: impl Fn(&str, &Value) -> bool,
) -> Result<(), Inexpressible> {
    match fields.iter().find(|(name, value)| !(value.is_null() || known(name, value))) {
        Some((name, _)) => Err(no_counterpart(format!("{at}.{name}"))),
        None => Ok(()),
    }
}

/// Whether the value says nothing: an empty list or object, `false`, or the number 0.
pub(in crate::dialect::cross) fn none_of(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::String(_) => false,
    }
}

pub(in crate::dialect::cross) fn no_counterpart(field: impl Into<String>) -> Inexpressible {
    Inexpressible::new(field, "has no counterpart in the other dialect")
}

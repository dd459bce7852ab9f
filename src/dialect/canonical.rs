//! Between the strict JSON that keys are made of and the loose one that crossing works with; and from
//! what was crossed to the scope of a request.

use serde_json::{Map, Number as Loose, Value};

use super::openai::request::take_question;
use crate::chat::Question;
use crate::chat::json::{Json, Number};

/// The same value, loose. Integers of 64 bits stay what they are.
pub(super) fn loose(json: Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => value.into(),
        Json::Number(number) => loose_number(number).map_or(Value::Null, Value::Number),
        Json::String(text) => text.into(),
        Json::Array(items) => items.into_iter().map(loose).collect(),
        Json::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, loose(value))).collect::<Map<_, _>>().into()
        }
    }
}

/// The scope of a request, from its fields and messages in the words of chat completions; and the
/// question, taken out of the last message, where that asks one.
pub(super) fn gathered(
    fields: Map<String, Value>,
    messages: Vec<Value>,
    asks: bool,
) -> (Json, Option<Question>) {
    let mut messages: Vec<_> = messages.into_iter().map(strict).collect();
    let question = if asks { messages.last_mut().and_then(take_question) } else { None };
    let mut scope: Vec<_> = fields.into_iter().map(|(name, value)| (name, strict(value))).collect();
    scope.push(("messages".to_owned(), Json::Array(messages)));
    scope.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    (Json::Object(scope), question)
}

/// The same value, strict.
fn strict(value: Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(value),
        Value::Number(number) => Json::Number(strict_number(&number)),
        Value::String(text) => Json::String(text),
        Value::Array(items) => Json::Array(items.into_iter().map(strict).collect()),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().map(|(name, value)| (name, strict(value))).collect();
            fields.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            Json::Object(fields)
        }
    }
}

fn loose_number(number: Number) -> Option<Loose> {
    match number {
        Number::Integer(value) => Loose::from_i128(value).or_else(|| {
            #[expect(clippy::cast_precision_loss, reason = "beyond 64 bits it was read from a double")]
            let double = value as f64;
            Loose::from_f64(double)
        }),
        Number::Double(value) => Loose::from_f64(value),
    }
}

fn strict_number(number: &Loose) -> Number {
    // As the strict reader does it: 2^64 is where a double's neighbours are no integers any more.
    const LIMIT: f64 = 18_446_744_073_709_551_616.0;
    match (number.as_i128(), number.as_f64()) {
        (Some(value), _) => Number::Integer(value),
        #[expect(clippy::cast_possible_truncation, reason = "integral and below 2^64 in size")]
        (None, Some(value)) if value.fract() == 0.0 && value.abs() < LIMIT => Number::Integer(value as i128),
        (None, value) => Number::Double(value.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Json {
        Json::parse(text.as_bytes(), 8).unwrap()
    }

    #[test]
    fn nothing_changes_on_the_way() {
        let text = r#"{"b":[null,true,"x",{"z":1,"a":[]}],"a":1.0,"c":-0.0,"d":1e300,
            "e":18446744073709551615,"f":-1e19,"g":0.1,"h":-9223372036854775808}"#;
        assert_eq!(strict(loose(parse(text))), parse(text));
    }

    proptest! {
        #[test]
        fn numbers_stay_equal(double in any::<f64>().prop_filter("JSON has no others", |x| x.is_finite())) {
            let json = parse(&format!("{double:e}"));
            prop_assert_eq!(strict(loose(json.clone())), json);
        }
    }
}

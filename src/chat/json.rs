//! JSON read strictly, so that two bodies are equal exactly when they mean the same.
//!
//! Differs from `serde_json::Value` in what it refuses (duplicate keys, NUL, too much depth)
//! and in that order of keys and form of numbers are gone once it is read.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A JSON value in canonical form: keys sorted, equal numbers equal.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Json {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number; see [`Number`].
    Number(Number),
    /// A string without NUL.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object, sorted by key, without duplicates.
    Object(Vec<(String, Json)>),
}

/// A number by its value: `1`, `1.0` and `1e0` are one. Fractions are equal when they are the
/// same IEEE 754 double, which is all that a JSON reader may rely on (RFC 8259, section 6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Any integer of up to 64 bits.
    Integer(i128),
    /// Anything else; never an integer below 2^64.
    Double(f64),
}

impl Json {
    /// Reads one value that fills `text`, nested at most `depth` deep.
    pub fn parse(text: &[u8], depth: usize) -> Result<Self, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        let value = Nested { left: depth, depth }.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }

    /// The value under `key`, when this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        let index = fields.binary_search_by(|(name, _)| name.as_str().cmp(key)).ok()?;
        Some(&fields[index].1)
    }

    /// The string, when this is one.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// JSON's word for what this is, for error messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// Reads a value, knowing how much deeper it may go.
#[derive(Clone, Copy)]
struct Nested {
    left: usize,
    depth: usize,
}

impl Nested {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        match self.left.checked_sub(1) {
            Some(left) => Ok(Self { left, ..self }),
            None => Err(E::custom(format_args!("nested deeper than {} levels", self.depth))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Nested {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(Number::Integer(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(Number::Integer(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        // 2^64: beyond it a double cannot tell neighbouring integers apart anyway.
        const LIMIT: f64 = 18_446_744_073_709_551_616.0;
        #[expect(clippy::cast_possible_truncation, reason = "integral and below 2^64 in size")]
        let number = if value.fract() == 0.0 && value.abs() < LIMIT {
            Number::Integer(value as i128)
        } else {
            Number::Double(value)
        };
        Ok(Json::Number(number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Json, E> {
        text(value.to_owned()).map(Json::String)
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Json, E> {
        text(value).map(Json::String)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let seed = self.deeper()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(seed)? {
            array.push(item);
        }
        Ok(Json::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let seed = self.deeper()?;
        let mut fields: Vec<(String, Json)> = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            let key = text(key)?;
            fields.push((key, entries.next_value_seed(seed)?));
        }
        fields.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        match fields.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(A::Error::custom(format_args!("duplicate key {:?}", pair[0].0))),
            None => Ok(Json::Object(fields)),
        }
    }
}

fn text<E: Error>(text: String) -> Result<String, E> {
    if text.contains('\0') {
        return Err(E::custom("a string holds the NUL character, which no model reads"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Json, String> {
        Json::parse(text.as_bytes(), 4).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_are_equal_by_value() {
        for (a, b) in
            [("1", "1.0"), ("1", "1e0"), ("100", "1E2"), ("-0", "0"), ("-0.0", "0"), ("2.50", "2.5")]
        {
            assert_eq!(parse(a).unwrap(), parse(b).unwrap(), "{a} {b}");
        }
        for (a, b) in
            [("1", "2"), ("1", "1.5"), ("18446744073709551614", "18446744073709551615"), ("1", "\"1\"")]
        {
            assert_ne!(parse(a).unwrap(), parse(b).unwrap(), "{a} {b}");
        }
    }

    #[test]
    fn refuses_what_has_two_meanings() {
        for (text, word) in [
            (r#"{"a":1,"b":2,"a":1}"#, "duplicate key \"a\""),
            (r#"{"a":{"\u0061":1,"a":1}}"#, "duplicate key \"a\""),
            (r#""a\u0000b""#, "NUL"),
            (r#"{"a\u0000":1}"#, "NUL"),
            (r#""\ud800""#, "hex escape"),
            ("[[[[[]]]]]", "nested deeper than 4 levels"),
            (r#"{"a":[{"a":[{}]}]}"#, "nested deeper than 4 levels"),
            ("1 2", "trailing"),
            ("", "EOF"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!(parse("[[[[]]]]").is_ok());
    }

    #[test]
    fn keys_are_sorted_and_found() {
        let json = parse(r#"{"b":1,"a":{"c":"x"}}"#).unwrap();
        assert_eq!(json.get("a").unwrap().get("c").unwrap().as_str(), Some("x"));
        assert_eq!(json, parse(r#"{ "a": {"c": "x"}, "b": 1.0 }"#).unwrap());
        assert!(json.get("d").is_none());
    }
}

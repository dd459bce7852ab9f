//! OpenAI's embeddings: texts in, vectors out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Serialize;

use super::request::{BadRequest, fields, find, model, model_span, wrong};
use crate::chat::json::{Json, Number};
use crate::chat::{Api, ChatRequest};

/// Texts in one request at most, as at OpenAI.
const MAX_TEXTS: usize = 2048;

/// A request for vectors.
#[derive(Clone, Debug)]
pub struct EmbeddingsRequest {
    /// The request as a provider gets it.
    pub request: ChatRequest,
    /// The texts; `None` where the input is tokens, which only their own model reads.
    pub texts: Option<Vec<String>>,
    /// How vectors are written.
    pub encoding: Encoding,
    /// The length that vectors shall have.
    pub dimensions: Option<i128>,
}

/// How a vector is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// An array of numbers.
    Float,
    /// Base64 of 32-bit floats, little endian, which is what the SDKs ask for.
    Base64,
}

/// Reads `body`, nested at most `depth` deep.
pub fn parse(body: Bytes, depth: usize) -> Result<EmbeddingsRequest, BadRequest> {
    let fields = fields(&body, depth)?;
    let model = model(&fields)?;
    let texts = texts(find(&fields, "input"))?;
    let encoding = match find(&fields, "encoding_format") {
        None | Some(Json::Null) => Encoding::Float,
        Some(format) => match format.as_str() {
            Some("float") => Encoding::Float,
            Some("base64") => Encoding::Base64,
            _ => return Err(wrong("encoding_format", "\"float\" or \"base64\"", format)),
        },
    };
    let dimensions = match find(&fields, "dimensions") {
        None | Some(Json::Null) => None,
        Some(Json::Number(Number::Integer(length))) => Some(*length),
        Some(other) => return Err(wrong("dimensions", "an integer", other)),
    };
    let model_span = model_span(&body);
    let request = ChatRequest { api: Api::Embeddings, body, model_span, model, ..ChatRequest::default() };
    Ok(EmbeddingsRequest { request, texts, encoding, dimensions })
}

fn texts(input: Option<&Json>) -> Result<Option<Vec<String>>, BadRequest> {
    let items = match input {
        Some(Json::String(text)) => return Ok(Some(vec![text.clone()])),
        Some(Json::Array(items)) => items,
        Some(other) => return Err(wrong("input", "a string or an array", other)),
        None => return Err(BadRequest::at("input", "input is missing")),
    };
    if items.is_empty() || items.len() > MAX_TEXTS {
        let message = format!("input holds {} items: 1 to {MAX_TEXTS} are allowed", items.len());
        return Err(BadRequest::at("input", message));
    }
    Ok(items.iter().map(|item| item.as_str().map(str::to_owned)).collect())
}

/// The response: a vector for each text, in their order. `tokens` is what the texts cost.
pub fn render<'a>(
    model: &str,
    vectors: impl Iterator<Item = &'a [f32]>,
    encoding: Encoding,
    tokens: u64,
) -> Bytes {
    #[derive(Serialize)]
    struct Response<'a> {
        object: &'static str,
        data: Vec<Item<'a>>,
        model: &'a str,
        usage: Cost,
    }
    #[derive(Serialize)]
    struct Item<'a> {
        object: &'static str,
        index: usize,
        embedding: Vector<'a>,
    }
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Vector<'a> {
        Numbers(&'a [f32]),
        Text(String),
    }
    #[derive(Serialize)]
    struct Cost {
        prompt_tokens: u64,
        total_tokens: u64,
    }
    let written = |vector: &'a [f32]| match encoding {
        Encoding::Float => Vector::Numbers(vector),
        Encoding::Base64 => {
            let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
            Vector::Text(STANDARD.encode(bytes))
        }
    };
    let data = vectors.enumerate();
    let data = data.map(|(index, vector)| Item { object: "embedding", index, embedding: written(vector) });
    let usage = Cost { prompt_tokens: tokens, total_tokens: tokens };
    let response = Response { object: "list", data: data.collect(), model, usage };
    // Numbers and texts always serialise into memory.
    serde_json::to_vec(&response).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(body: &Value) -> Result<EmbeddingsRequest, BadRequest> {
        parse(body.to_string().into(), 16)
    }

    #[test]
    fn texts_come_alone_or_in_a_list_and_tokens_are_none() {
        for (input, texts) in [
            (json!("a"), Some(vec!["a"])),
            (json!(["a", "b"]), Some(vec!["a", "b"])),
            (json!([1, 2]), None),
            (json!([[1, 2], [3]]), None),
        ] {
            let read = read(&json!({ "model": "m", "input": input })).unwrap();
            assert_eq!(
                read.texts,
                texts.map(|texts| texts.into_iter().map(str::to_owned).collect()),
                "{input}"
            );
            assert_eq!((read.encoding, read.dimensions), (Encoding::Float, None));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, param) in [
            (json!({ "input": "a" }), "model"),
            (json!({ "model": "m" }), "input"),
            (json!({ "model": "m", "input": [] }), "input"),
            (json!({ "model": "m", "input": 5 }), "input"),
            (json!({ "model": "m", "input": vec!["a"; MAX_TEXTS + 1] }), "input"),
            (json!({ "model": "m", "input": "a", "encoding_format": "int8" }), "encoding_format"),
            (json!({ "model": "m", "input": "a", "dimensions": "many" }), "dimensions"),
        ] {
            assert_eq!(read(&body).unwrap_err().param.as_deref(), Some(param), "{body}");
        }
    }

    #[test]
    fn both_encodings_say_the_same() {
        let vectors = [[0.5_f32, -1.25], [3.0, 0.0]];
        let rendered = |encoding| -> Value {
            let each = vectors.iter().map(|vector| &vector[..]);
            serde_json::from_slice(&render("m", each, encoding, 7)).unwrap()
        };
        let (floats, texts) = (rendered(Encoding::Float), rendered(Encoding::Base64));
        assert_eq!(floats["usage"], json!({ "prompt_tokens": 7, "total_tokens": 7 }));
        for (index, vector) in vectors.iter().enumerate() {
            assert_eq!(floats["data"][index]["embedding"], json!(vector));
            let bytes = STANDARD.decode(texts["data"][index]["embedding"].as_str().unwrap()).unwrap();
            let (numbers, _) = bytes.as_chunks::<4>();
            assert_eq!(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect::<Vec<_>>(), vector);
        }
    }
}

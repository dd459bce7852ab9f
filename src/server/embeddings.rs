//! `POST /v1/embeddings`: by the encoders of the semantic layer under their own names, else passed on.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::Context;
use super::body::read_whole;
use super::chat::pass;
use super::error::ApiError;
use crate::cache::embedder::EmbedError;
use crate::chat::{Api, about_tokens};
use crate::dialect::openai::embeddings::{EmbeddingsRequest, parse, render};

/// When to come again while an encoder is busy or loads.
const LATER: Duration = Duration::from_secs(1);

/// `POST /v1/embeddings`
pub(super) async fn embeddings(
    State(context): State<Arc<Context>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let caller = context.admit(&parts)?;
    let body = read_whole(body).await?;
    let asked = parse(body.clone(), context.max_json_depth)?;
    match embedded(&context, &asked).await? {
        Some(bytes) => {
            let json = HeaderValue::from_static("application/json");
            Ok(([(CONTENT_TYPE, json)], Body::from(bytes)).into_response())
        }
        None => Ok(pass(&context, Api::Embeddings, parts, body, caller).await),
    }
}

/// The vectors by an encoder of ours; `None` where the model is none.
async fn embedded(context: &Context, asked: &EmbeddingsRequest) -> Result<Option<Bytes>, ApiError> {
    let model = &asked.request.model;
    if !context.encoders.has(model) {
        return Ok(None);
    }
    let refused = |param: &str, message: String| ApiError::bad_request(message, Some(param));
    let texts =
        asked.texts.as_ref().ok_or_else(|| refused("input", format!("{model} takes texts, not tokens")))?;
    let mut vectors = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let embedding = context.encoders.embed_by(model, text).await.map_err(|error| match error {
            EmbedError::NotCovered => {
                refused("input", format!("input[{index}] has signs that {model} does not know"))
            }
            EmbedError::TooLong { .. } => refused("input", format!("input[{index}]: {error}")),
            EmbedError::Busy | EmbedError::Loading | EmbedError::TimedOut => ApiError::unavailable(LATER),
            EmbedError::Failed(_) => {
                tracing::warn!(%error, model, "an embedding that was asked for failed");
                ApiError::internal()
            }
        })?;
        let length = embedding.vector.len();
        if asked.dimensions.is_some_and(|wanted| wanted != length as i128) {
            return Err(refused("dimensions", format!("{model} gives vectors of {length} numbers")));
        }
        vectors.push(embedding.vector);
    }
    // An estimate: nobody is billed by it.
    let tokens = texts.iter().map(|text| about_tokens(text)).sum();
    Ok(Some(render(model, vectors.iter().map(|vector| &**vector), asked.encoding, tokens)))
}

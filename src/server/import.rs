//! `POST /admin/import`: a page of an answer book.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Context;
use super::body::WholeBody;
use super::chat::read_call;
use super::directives::check_tags;
use super::error::ApiError;
use crate::book::{Draft, Record};
use crate::cache::key::Tenant;
use crate::chat::Api;
use crate::gateway::{Approved, Call, ImportError, Imported};

/// Records in one request at most: each takes some milliseconds, and its caller waits.
pub const MAX_RECORDS: usize = 256;

/// Records, and whose they shall be.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportRequest {
    /// Where they are kept; the model's namespace, else `default`, when not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Whose they are, as entries show it; everybody's where callers are not told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// A chat completions request as callers send it, of which the question is replaced; a bare
    /// question to the model `default` when not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<Value>,
    /// The records.
    pub records: Vec<Draft>,
}

/// What became of them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ImportReply {
    /// Records that were put into the cache.
    pub imported: u64,
    /// What they became.
    #[serde(flatten)]
    pub entries: Imported,
    /// Records that were passed over, and why.
    pub skipped: Vec<SkippedRecord>,
}

/// A record that was passed over.
#[derive(Debug, Serialize, Deserialize)]
pub struct SkippedRecord {
    /// Its place among those sent, from 0.
    pub index: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// `POST /admin/import`. Sent again, it writes the same entries again.
pub(super) async fn import(
    State(context): State<Arc<Context>>,
    WholeBody(body): WholeBody,
) -> Result<Json<ImportReply>, ApiError> {
    let request: ImportRequest = serde_json::from_slice(&body)
        .map_err(|error| ApiError::bad_request(format!("the body cannot be read: {error}"), None))?;
    if request.records.len() > MAX_RECORDS {
        let message = format!("{} records: at most {MAX_RECORDS} are allowed", request.records.len());
        return Err(ApiError::bad_request(message, Some("records")));
    }
    let like = like(&context, &request)?;
    let mut done = ImportReply::default();
    for (index, draft) in request.records.into_iter().enumerate() {
        let reason = match prepared(&like, draft) {
            Ok((call, record)) => match put(&context, &call, &record).await? {
                Some(entries) => {
                    done.imported += 1;
                    done.entries.entries += entries.entries;
                    done.entries.exact_only += entries.exact_only;
                    continue;
                }
                None => "it was evicted while it was on its way".to_owned(),
            },
            Err(reason) => reason,
        };
        done.skipped.push(SkippedRecord { index, reason });
    }
    tracing::info!(
        namespace = %like.namespace.name(),
        imported = done.imported,
        skipped = done.skipped.len(),
        "imported"
    );
    Ok(Json(done))
}

/// The call that asks as callers do.
fn like(context: &Context, request: &ImportRequest) -> Result<Call, ApiError> {
    let plain = || json!({ "model": "default", "messages": [{ "role": "user", "content": "?" }] });
    let body = request.like.clone().unwrap_or_else(plain).to_string();
    let mut headers = HeaderMap::new();
    if let Some(namespace) = &request.namespace {
        let value = HeaderValue::from_bytes(namespace.as_bytes());
        let value =
            value.map_err(|_| ApiError::bad_request("no namespace is called so", Some("namespace")))?;
        headers.insert("x-refrain-namespace", value);
    }
    let tenant = request.tenant.as_deref().map_or_else(Tenant::anonymous, Tenant::known_as);
    let call = read_call(context, Api::Chat, &headers, body.into(), tenant, None)?;
    if call.request.question.is_none() {
        let message = "like: its last message must be the user's, with the text that is replaced";
        return Err(ApiError::bad_request(message, Some("like")));
    }
    Ok(call)
}

fn prepared(like: &Call, draft: Draft) -> Result<(Call, Record), String> {
    let record = Record::try_new(draft).map_err(|error| error.to_string())?;
    let mut call = like.clone();
    call.directives.tags = check_tags(record.tags().iter().cloned())?;
    call.directives.ttl = record.ttl();
    Ok((call, record))
}

/// `None` when it was evicted meanwhile.
async fn put(context: &Context, call: &Call, record: &Record) -> Result<Option<Imported>, ApiError> {
    let wordings: Vec<&str> =
        std::iter::once(record.question()).chain(record.aliases().iter().map(String::as_str)).collect();
    let approved = Approved { wordings: &wordings, answer: record.answer(), pinned: record.pinned() };
    match context.gateway.import(call, approved).await {
        Ok(entries) => Ok(Some(entries)),
        Err(ImportError::Purged) => Ok(None),
        Err(ImportError::Store(error)) => Err(error.into()),
        Err(ImportError::Embed(error)) => {
            tracing::warn!(%error, "an import has to wait");
            Err(ApiError::unavailable(std::time::Duration::from_secs(1)))
        }
    }
}

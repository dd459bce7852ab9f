//! Bodies read with a limit.
//!
//! reqwest decompresses and knows no limit, so a few kilobytes could become gigabytes. Counting
//! what comes out, chunk by chunk, bounds memory by the limit and one chunk.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{Stream, StreamExt, TryStreamExt};

use super::reason;
use crate::upstream::UpstreamError;

/// The chunks of `body`, with an error in place of the one that goes beyond `limit` bytes.
pub(super) fn each(
    provider: Arc<str>,
    body: impl Stream<Item = reqwest::Result<Bytes>>,
    limit: u64,
) -> impl Stream<Item = Result<Bytes, UpstreamError>> {
    let mut left = limit;
    body.map(move |chunk| {
        let chunk = chunk.map_err(|error| UpstreamError::Broken {
            provider: provider.clone(),
            reason: reason(&error).into(),
        })?;
        left = left
            .checked_sub(chunk.len() as u64)
            .ok_or_else(|| UpstreamError::TooLarge { provider: provider.clone(), limit })?;
        Ok(chunk)
    })
}

/// All of `body`, which may be `limit` bytes long.
pub(super) async fn all(
    provider: Arc<str>,
    body: impl Stream<Item = reqwest::Result<Bytes>>,
    limit: u64,
) -> Result<Bytes, UpstreamError> {
    let add = |mut all: BytesMut, chunk: Bytes| async move {
        all.extend_from_slice(&chunk);
        Ok(all)
    };
    each(provider, body, limit).try_fold(BytesMut::new(), add).await.map(BytesMut::freeze)
}

/// The first `limit` bytes of `body`, or as much of them as came before it broke.
pub(super) async fn first(body: impl Stream<Item = reqwest::Result<Bytes>>, limit: usize) -> Bytes {
    let mut body = std::pin::pin!(body);
    let mut first = BytesMut::new();
    while first.len() < limit
        && let Some(Ok(chunk)) = body.next().await
    {
        first.extend_from_slice(&chunk[..chunk.len().min(limit - first.len())]);
    }
    first.freeze()
}

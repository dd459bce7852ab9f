//! A request's body: how large, how slow and in what form it may come.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request, State};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use thiserror::Error;
use tokio::time::{Instant, Sleep, sleep_until};

use super::error::{ApiError, dialect_of};
use crate::config;

/// What a body may take.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    max: u64,
    timeout: Duration,
}

impl BodyLimits {
    /// The limits that the configuration sets.
    pub fn new(server: &config::Server) -> Self {
        Self { max: server.max_body.as_u64(), timeout: server.body_timeout }
    }
}

/// Why a body ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
enum BodyError {
    #[error("the body is larger than {0} bytes")]
    TooLarge(u64),
    #[error("the body did not arrive in time")]
    TimedOut,
}

/// The layer that puts the limits on every request's body, whether a handler reads it or not.
///
/// What can be told from the head is refused at once: a declared length beyond the limit (413)
/// and a compressed body (415; a few kilobytes could unpack to gigabytes, and no SDK sends any).
/// The rest shows while the body is read: see [`WholeBody`]. The time runs from here.
pub async fn limit(
    State(limits): State<BodyLimits>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let refused = |error: ApiError| Err(error.in_dialect(dialect_of(request.uri())));
    if is_encoded(request.headers()) {
        return refused(ApiError::unsupported_media_type("the request's body must not be compressed"));
    }
    if declared_length(request.headers()).is_some_and(|length| length > limits.max) {
        return refused(ApiError::payload_too_large(limits.max));
    }
    Ok(next.run(request.map(|body| Body::new(Limited::new(body, limits)))).await)
}

fn is_encoded(headers: &HeaderMap) -> bool {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    encodings.any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// The declared length; what hyper lets through is one number, or no length at all.
fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A body that ends with an error at its limit of bytes or of time.
struct Limited {
    body: Body,
    left: u64,
    limits: BodyLimits,
    deadline: Instant,
    /// Only set once the body keeps its reader waiting; most never do.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Limited {
    fn new(body: Body, limits: BodyLimits) -> Self {
        let deadline = Instant::now() + limits.timeout;
        Self { body, left: limits.max, limits, deadline, timer: None }
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.timer.get_or_insert_with(|| Box::pin(sleep_until(self.deadline))).as_mut().poll(cx)
    }
}

impl HttpBody for Limited {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
            ready!(self.poll_timer(cx));
            return Poll::Ready(Some(Err(axum::Error::new(BodyError::TimedOut))));
        };
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            match self.left.checked_sub(data.len() as u64) {
                Some(left) => self.left = left,
                None => {
                    return Poll::Ready(Some(Err(axum::Error::new(BodyError::TooLarge(self.limits.max)))));
                }
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The whole body of a request that came through [`limit`]; 413 or 408 when it did not stay
/// within it, 400 when it broke off.
pub struct WholeBody(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for WholeBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        read_whole(request.into_body()).await.map(Self)
    }
}

/// Reads a body that came through [`limit`] to its end; the errors of [`WholeBody`].
pub async fn read_whole(body: Body) -> Result<Bytes, ApiError> {
    body.collect().await.map(http_body_util::Collected::to_bytes).map_err(|error| refusal(&error))
}

fn refusal(error: &axum::Error) -> ApiError {
    let mut causes = std::iter::successors(error.source(), |&error| error.source());
    match causes.find_map(|error| error.downcast_ref()) {
        Some(BodyError::TooLarge(limit)) => ApiError::payload_too_large(*limit),
        Some(BodyError::TimedOut) => ApiError::request_timeout(),
        None => ApiError::bad_request("the request's body broke off, or is not framed as declared", None),
    }
}

#[cfg(test)]
mod tests;

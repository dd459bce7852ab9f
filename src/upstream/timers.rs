//! The timers of one call.
//!
//! Four, because one cannot tell a model that thinks from a provider that hangs: `connect` (kept
//! by the provider's client), `first_content`, `stall` between two pieces of content, `total`.
//! Only content counts. Comments, roles and empty deltas are what a gateway in between sends
//! to keep a dead call's connection alive. What Anthropic sends while a model works silently on a
//! tool's input or on thoughts is no content, and no stall either.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use tokio::time::{Instant, timeout_at};

use super::{Body, Piece, PieceStream, UpstreamError};
use crate::chat::EventKind;
use crate::config;

/// Far enough in the future, and small enough that adding it to now cannot overflow.
const FOREVER: Duration = Duration::from_hours(365 * 24);

const CUT: &str = "the stream ended before its terminal event";

/// Events that may come before the first content; a handful is usual.
const MAX_BEFORE_CONTENT: usize = 1024;

/// How long a call may take, by what it is doing.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    first_content: Duration,
    stall: Duration,
    total: Duration,
}

impl Timers {
    /// The timers as configured.
    pub fn new(settings: &config::Upstream) -> Self {
        Self {
            first_content: settings.first_content_timeout.min(FOREVER),
            stall: settings.stall_timeout.min(FOREVER),
            total: settings.total_timeout.min(FOREVER),
        }
    }

    /// When a call that begins now must have ended.
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.total
    }

    /// Whether a call that was silent for so long used up all that these timers allow it. One that
    /// was cut before had a caller with less time.
    pub fn allow_no_more_than(&self, after: Duration) -> bool {
        after >= self.first_content.min(self.total)
    }

    /// Waits for the first content of `call`: for all of a whole body, or for the first piece of
    /// a stream that carries content (or ends it). So whatever fails before is an error here and
    /// not inside the stream, when another provider could still be asked.
    ///
    /// The stream that is handed on is cut by an error when the provider stalls, when `deadline`
    /// passes, or when it ends without [`Piece::Complete`]. Its first content may take `patience` at
    /// most, for the sake of others who could still be asked. The stall timer runs only while
    /// someone waits for a piece: a caller who reads slowly is not the provider's fault.
    ///
    /// A timer that runs out drops the provider's future or stream at once, which cancels it.
    pub async fn watch(
        &self,
        provider: &Arc<str>,
        deadline: Instant,
        patience: Duration,
        call: impl Future<Output = Result<Body, UpstreamError>>,
    ) -> Result<Body, UpstreamError> {
        let first = Instant::now() + self.first_content.min(patience);
        let begun = timeout_at(first.min(deadline), begin(provider, call)).await;
        let timer = if first < deadline { "first_content" } else { "total" };
        let (body, begun) = begun.unwrap_or_else(|_| Err(timed_out(provider, timer)))?;
        Ok(match body {
            Body::Whole(whole) => Body::Whole(whole),
            Body::Stream(rest) => {
                let rest = Rest {
                    provider: provider.clone(),
                    pieces: rest,
                    stall: self.stall,
                    left: self.stall,
                    deadline,
                };
                let complete = matches!(begun.last(), Some(Piece::Complete(_)));
                let rest = stream::unfold((!complete).then_some(rest), Rest::step);
                Body::Stream(stream::iter(begun.into_iter().map(Ok)).chain(rest).boxed())
            }
        })
    }
}

/// The body, and what was read of it already.
async fn begin(
    provider: &Arc<str>,
    call: impl Future<Output = Result<Body, UpstreamError>>,
) -> Result<(Body, Vec<Piece>), UpstreamError> {
    let mut pieces = match call.await? {
        Body::Stream(pieces) => pieces,
        whole @ Body::Whole(_) => return Ok((whole, Vec::new())),
    };
    let mut begun = Vec::new();
    while begun.len() < MAX_BEFORE_CONTENT {
        let piece = pieces.next().await.unwrap_or_else(|| Err(broken(provider, CUT)))?;
        let enough = counts(&piece) || matches!(piece, Piece::Complete(_));
        begun.push(piece);
        if enough {
            return Ok((Body::Stream(pieces), begun));
        }
    }
    Err(broken(provider, "events without end and no content"))
}

/// A stream whose first content has come.
struct Rest {
    provider: Arc<str>,
    pieces: PieceStream,
    stall: Duration,
    /// Of `stall`, since the last content.
    left: Duration,
    deadline: Instant,
}

impl Rest {
    async fn step(rest: Option<Self>) -> Option<(Result<Piece, UpstreamError>, Option<Self>)> {
        let mut rest = rest?;
        let waiting_since = Instant::now();
        let stalled = waiting_since + rest.left;
        if waiting_since >= rest.deadline {
            // A provider that always has more would otherwise win every race against the timer.
            return Some((Err(timed_out(&rest.provider, "total")), None));
        }
        let piece = match timeout_at(stalled.min(rest.deadline), rest.pieces.next()).await {
            Ok(piece) => piece.unwrap_or_else(|| Err(broken(&rest.provider, CUT))),
            Err(_) => Err(timed_out(&rest.provider, if stalled < rest.deadline { "stall" } else { "total" })),
        };
        let rest = match &piece {
            Err(_) | Ok(Piece::Complete(_)) => None,
            Ok(piece) if counts(piece) || is_at_work(piece) => Some(Self { left: rest.stall, ..rest }),
            Ok(_) => {
                rest.left = rest.left.saturating_sub(waiting_since.elapsed());
                Some(rest)
            }
        };
        Some((piece, rest))
    }
}

fn counts(piece: &Piece) -> bool {
    matches!(piece, Piece::Event(event) if event.kind == EventKind::Content)
}

/// Silence that is explained is no stall, as long as the provider goes on saying so.
fn is_at_work(piece: &Piece) -> bool {
    matches!(piece, Piece::Event(event) if event.kind == EventKind::Working)
}

fn timed_out(provider: &Arc<str>, timer: &'static str) -> UpstreamError {
    UpstreamError::TimedOut { provider: provider.clone(), timer }
}

fn broken(provider: &Arc<str>, reason: &str) -> UpstreamError {
    UpstreamError::Broken { provider: provider.clone(), reason: reason.into() }
}

#[cfg(test)]
mod tests;

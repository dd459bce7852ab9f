//! From the events of a stream in OpenAI's form to the pieces of an answer.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::FutureExt;
use futures_util::stream::{self, Stream, StreamExt};

use crate::dialect::openai::reply::{Assembler, ReplyFault, is_terminal};
use crate::upstream::{Event, Piece, PieceStream, UpstreamError};

/// How long the end of a finished answer's connection is waited for, so that it can be used again.
const DRAIN: Duration = Duration::from_secs(1);

type Events = Pin<Box<dyn Stream<Item = Result<Bytes, UpstreamError>> + Send>>;

/// The pieces that `events` (the data of each event) stand for. Ends after `Complete`, after an
/// error, and where `events` end before the answer does.
pub(super) fn pieces(
    provider: Arc<str>,
    events: impl Stream<Item = Result<Bytes, UpstreamError>> + Send + 'static,
) -> PieceStream {
    let events: Events = Box::pin(events);
    let start = Some((events, Assembler::default()));
    stream::unfold(start, move |state| {
        let provider = provider.clone();
        async move {
            let (mut events, assembler) = state?;
            let Some(data) = events.next().await else {
                // Some providers leave the terminal out. What they sent is whole for the caller,
                // and not proven enough to be stored.
                return assembler.has_finished().then_some((Ok(Piece::Complete(None)), None));
            };
            Some(match data {
                Err(error) => (Err(error), None),
                Ok(data) if is_terminal(&data) => {
                    drain(events);
                    (complete(&provider, assembler), None)
                }
                Ok(data) => event(&provider, data, events, assembler),
            })
        }
    })
    .boxed()
}

type Step = (Result<Piece, UpstreamError>, Option<(Events, Assembler)>);

fn event(provider: &Arc<str>, data: Bytes, events: Events, mut assembler: Assembler) -> Step {
    match assembler.push(&data) {
        Ok(kind) => (Ok(Piece::Event(Event { data, kind })), Some((events, assembler))),
        Err(fault) => (Err(fault_error(provider, fault, data)), None),
    }
}

fn complete(provider: &Arc<str>, assembler: Assembler) -> Result<Piece, UpstreamError> {
    if assembler.has_begun() {
        return Ok(Piece::Complete(assembler.finish().map(Box::new)));
    }
    let reason = "the stream ended without an answer".into();
    Err(UpstreamError::Broken { provider: provider.clone(), reason })
}

/// The error for a body or an event that is no part of an answer.
pub(super) fn fault_error(provider: &Arc<str>, fault: ReplyFault, body: Bytes) -> UpstreamError {
    match fault {
        ReplyFault::Reported => UpstreamError::inside_success(provider, body),
        ReplyFault::Malformed(reason) => {
            UpstreamError::Broken { provider: provider.clone(), reason: reason.into() }
        }
    }
}

/// Reads on to the end of the connection's answer, beside the caller's path: a connection that
/// is dropped before it cannot serve the next call.
fn drain(mut events: Events) {
    if events.next().now_or_never().is_none() {
        tokio::spawn(async move { tokio::time::timeout(DRAIN, events.next()).await.is_ok() });
    }
}

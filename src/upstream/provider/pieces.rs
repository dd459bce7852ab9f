//! From the events of a stream to the pieces of an answer, in the dialect of the caller.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::FutureExt;
use futures_util::stream::{self, Stream, StreamExt};

use crate::dialect::cross::Translator;
use crate::dialect::openai::reply::ReplyFault;
use crate::dialect::{Assembler, Dialect, anthropic, openai};
use crate::upstream::{End, Event, Piece, PieceStream, UpstreamError};

/// How long the end of a finished answer's connection is waited for, so that it can be used again.
const DRAIN: Duration = Duration::from_secs(1);

type Events = Pin<Box<dyn Stream<Item = Result<Bytes, UpstreamError>> + Send>>;

/// What is made of a provider's events.
pub(super) struct Reader {
    provider: Arc<str>,
    dialect: Dialect,
    /// Where the provider speaks another dialect than the caller.
    translator: Option<Translator>,
    /// `None` once the answer is over.
    assembler: Option<Assembler>,
    ready: VecDeque<Result<Piece, UpstreamError>>,
    /// The terminal was the provider's own.
    is_proven: bool,
}

/// The pieces that `events` (the data of each event) stand for. Ends after `Complete`, after an
/// error, and where `events` end before the answer does.
pub(super) fn pieces(
    reader: Reader,
    events: impl Stream<Item = Result<Bytes, UpstreamError>> + Send + 'static,
) -> PieceStream {
    let events: Events = Box::pin(events);
    stream::unfold((reader, Some(events)), |(mut reader, mut events)| async move {
        loop {
            if let Some(piece) = reader.ready.pop_front() {
                return Some((piece, (reader, events)));
            }
            let next = events.as_mut()?.next().await;
            match next {
                Some(Ok(data)) => reader.take(data),
                Some(Err(error)) => reader.give_up(error),
                None => reader.end(),
            }
            if reader.assembler.is_none() {
                let events = events.take();
                if let (Some(Ok(Piece::Complete(_))), Some(events)) = (reader.ready.back(), events) {
                    drain(events);
                }
            }
        }
    })
    .boxed()
}

impl Reader {
    /// Of events in `dialect`, for a caller who speaks it; with a translator, of events in the other.
    pub(super) fn new(provider: Arc<str>, dialect: Dialect, translator: Option<Translator>) -> Self {
        let assembler = Some(Assembler::new(dialect));
        Self { provider, dialect, translator, assembler, ready: VecDeque::new(), is_proven: true }
    }

    fn take(&mut self, data: Bytes) {
        let Some(translator) = &mut self.translator else { return self.say(data) };
        match translator.push(&data) {
            Ok(said) => said.into_iter().for_each(|data| self.say(data)),
            Err(fault) => self.give_up(fault_error(&self.provider, fault, data)),
        }
    }

    /// One event as the caller gets it.
    fn say(&mut self, data: Bytes) {
        let Some(assembler) = &mut self.assembler else { return };
        let is_terminal = self.dialect.is_terminal(&data);
        if is_terminal && !assembler.has_begun() {
            let reason = "the stream ended without an answer".into();
            return self.give_up(UpstreamError::Broken { provider: self.provider.clone(), reason });
        }
        // OpenAI's terminal is none of the events; Anthropic's is.
        if !(is_terminal && self.dialect == Dialect::OpenAi) {
            match assembler.push(&data) {
                Ok(kind) => self.ready.push_back(Ok(Piece::Event(Event { data, kind }))),
                Err(fault) => return self.give_up(fault_error(&self.provider, fault, data)),
            }
        }
        if is_terminal {
            let has_hole = self.translator.as_ref().is_some_and(Translator::has_skipped);
            let may_keep = self.is_proven && !has_hole;
            let usage = self.assembler.as_ref().and_then(Assembler::usage);
            let reply = self.assembler.take().and_then(Assembler::finish).filter(|_| may_keep);
            self.ready.push_back(Ok(Piece::Complete(Box::new(End { reply, usage }))));
        }
    }

    /// The events are over. Some providers leave the terminal out: what they sent is whole for the
    /// caller, who waits for one, and not proven enough to be stored. Anything less was cut.
    fn end(&mut self) {
        self.is_proven = false;
        for data in self.translator.as_mut().map(Translator::end).unwrap_or_default() {
            self.say(data);
        }
        if self.assembler.as_ref().is_some_and(Assembler::has_finished) {
            self.say(Bytes::from_static(match self.dialect {
                Dialect::Anthropic => anthropic::reply::TERMINAL,
                // A response has finished only with its terminal.
                Dialect::OpenAi | Dialect::Responses => openai::reply::TERMINAL,
            }));
        }
        self.assembler = None;
    }

    fn give_up(&mut self, error: UpstreamError) {
        self.assembler = None;
        self.ready.push_back(Err(error));
    }
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

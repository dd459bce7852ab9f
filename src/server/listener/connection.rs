//! One connection from accept to close.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use axum::Router;
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;
use tracing::debug;

use super::Limits;
use super::exchange::Exchange;
use super::socket::Socket;
use super::turn::{Overdue, Patience, Turn};

/// Requests at once on one HTTP/2 connection.
const MAX_STREAMS: u32 = 128;

/// How far the listener is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It serves.
    Serving,
    /// Requests under way may finish.
    Draining,
    /// Nothing may.
    Over,
}

/// What both protocols are told, once for all connections.
pub(super) struct Protocols {
    builder: auto::Builder<Streams>,
    patience: Patience,
}

impl Protocols {
    pub(super) fn new(limits: &Limits, tasks: &TaskTracker) -> Self {
        let mut builder = auto::Builder::new(Streams(tasks.clone()));
        builder
            .http1()
            // `turn` keeps the timers; hyper's own would close idle connections too early.
            .header_read_timeout(None)
            // A head that does not fit is answered with 431.
            .max_buf_size(limits.max_headers);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_header_list_size(u32::try_from(limits.max_headers).unwrap_or(u32::MAX))
            .max_concurrent_streams(MAX_STREAMS)
            // Rapid reset (CVE-2023-44487): h2 answers more than 20 streams reset before they
            // were accepted, or 1024 resets that it had to send itself, with GOAWAY. Those are
            // its defaults.
            // A peer that vanished while it waits for an answer is noticed by ping.
            .keep_alive_interval(limits.idle_timeout)
            .keep_alive_timeout(limits.header_timeout);
        Self { builder, patience: Patience { header: limits.header_timeout, idle: limits.idle_timeout } }
    }
}

/// Runs the streams of HTTP/2, so that the listener can wait for them too.
#[derive(Clone)]
struct Streams(TaskTracker);

impl<F: Future<Output: Send + 'static> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        self.0.spawn(stream);
    }
}

/// Serves until the client leaves, is late with what it owes, or the listener's end.
///
/// A client that closes only its sending half counts as gone: what it asked for is cancelled,
/// because an answer that nobody waits for costs money upstream, and no SDK half-closes. hyper
/// notices only when nothing unread lies in its buffer, so a client that pipelines and then
/// leaves is noticed at the next write.
pub(super) async fn serve(
    stream: TcpStream,
    app: Router,
    protocols: Arc<Protocols>,
    mut stage: watch::Receiver<Stage>,
) {
    let turn = Turn::accepted(protocols.patience);
    let socket = TokioIo::new(Socket::new(stream, turn.clone()));
    let exchange = Exchange::new(app, turn.clone());
    let mut connection = pin!(protocols.builder.serve_connection(socket, exchange));
    let idle = protocols.patience.idle;
    let mut check = pin!(sleep_until(Instant::now() + protocols.patience.header));
    let mut seen = Stage::Serving;
    loop {
        // The check is set back only when it fires, not at every event: a busy connection would
        // do nothing else. No deadline lies further ahead than `idle`, so none is missed; one
        // that came nearer was brought about by the connection's own reading, just now.
        let progress = poll_fn(|cx| {
            if let Poll::Ready(result) = connection.as_mut().poll(cx) {
                return Poll::Ready(Some(result));
            }
            if let Some((due, _)) = turn.due()
                && due < check.deadline()
            {
                check.as_mut().reset(due);
            }
            check.as_mut().poll(cx).map(|()| None)
        });
        tokio::select! {
            biased;
            ended = progress => match ended {
                Some(Ok(())) => return,
                Some(Err(error)) => return debug!(%error, "the connection broke"),
                None => {}
            },
            changed = stage.changed() => {
                seen = if changed.is_ok() { *stage.borrow_and_update() } else { Stage::Over };
            }
        }
        let now = Instant::now();
        let late = match turn.due() {
            Some((due, late)) if due <= now => Some(late),
            Some((due, _)) => {
                check.as_mut().reset(due);
                None
            }
            None => {
                check.as_mut().reset(now + idle);
                None
            }
        };
        match (seen, late) {
            (Stage::Over, _) => return,
            (_, Some(Overdue::Request)) | (Stage::Draining, None) => {
                connection.as_mut().graceful_shutdown();
                turn.drain();
            }
            (_, Some(late)) => return debug!(?late, "the client was cut off"),
            (Stage::Serving, None) => {}
        }
    }
}

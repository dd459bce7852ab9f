//! The socket as hyper sees it: it tells the timers what it sees, and closes without loss.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use super::turn::Turn;

/// How long a closing connection goes on reading what its client had already sent.
const LINGER: Duration = Duration::from_secs(2);

/// A client's socket.
pub(super) struct Socket {
    stream: TcpStream,
    turn: Turn,
    blocked: bool,
    lingering: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, turn: Turn) -> Self {
        Self { stream, turn, blocked: false, lingering: None }
    }

    fn note<T>(&mut self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_pending() != self.blocked {
            self.blocked = !self.blocked;
            if self.blocked { self.turn.blocked() } else { self.turn.unblocked() }
        }
        written
    }

    /// Reads and forgets until the client closes, for at most [`LINGER`].
    fn poll_linger(
        stream: &mut TcpStream,
        end: Pin<&mut Sleep>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut scratch = [0; 4096];
        if end.poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut *stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                _ => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.turn.received();
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, turn, lingering, .. } = self.get_mut();
        if let Some(end) = lingering {
            return Self::poll_linger(stream, end.as_mut(), cx);
        }
        ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        if !turn.owes_reading() {
            return Poll::Ready(Ok(()));
        }
        let end = lingering.insert(Box::pin(sleep(LINGER)));
        Self::poll_linger(stream, end.as_mut(), cx)
    }
}

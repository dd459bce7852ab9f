//! From the kernel's queue into the service, no faster than there is room.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tracing::{debug, error, info, warn};

/// The pause after an error that is the process's own (no descriptors, no memory): long enough
/// not to spin, short enough that nobody notices the recovery.
const PAUSE: Duration = Duration::from_millis(100);

/// Where connections come from.
pub(super) trait Source: Send {
    /// The next connection, or why there is none.
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<TcpStream>>;
}

impl Source for TcpListener {
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        Self::poll_accept(self, cx).map_ok(|(stream, _)| stream)
    }
}

/// Accepts one connection at a time, and none while the cap is reached: more wait in the
/// kernel's queue.
pub(super) struct Acceptor<S> {
    source: S,
    slots: Arc<Semaphore>,
    cap: usize,
    /// The cap was reached and said so; it says so again only after it had room to spare.
    full: bool,
    /// The last accept failed and said so.
    failing: bool,
}

impl<S: Source> Acceptor<S> {
    pub(super) fn new(source: S, cap: usize) -> Self {
        let cap = cap.min(Semaphore::MAX_PERMITS);
        Self { source, slots: Arc::new(Semaphore::new(cap)), cap, full: false, failing: false }
    }

    /// The next connection and its slot, which is free again when dropped. Dropping the future
    /// loses no connection.
    pub(super) async fn next(&mut self) -> (TcpStream, OwnedSemaphorePermit) {
        let slot = self.slot().await;
        loop {
            match poll_fn(|cx| self.source.poll_accept(cx)).await {
                Ok(stream) => {
                    if std::mem::take(&mut self.failing) {
                        info!("connections are accepted again");
                    }
                    // Without it a streamed event may wait 40 ms for the client's delayed ACK.
                    match stream.set_nodelay(true) {
                        Ok(()) => return (stream, slot),
                        Err(error) => debug!(%error, "the client left before it was accepted"),
                    }
                }
                Err(error) if of_one_connection(&error) => {
                    debug!(%error, "the client left before it was accepted");
                }
                Err(error) => {
                    if !std::mem::replace(&mut self.failing, true) {
                        error!(%error, "no connection can be accepted");
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    }

    async fn slot(&mut self) -> OwnedSemaphorePermit {
        if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
            if self.full && self.slots.available_permits() > self.cap / 10 {
                self.full = false;
                info!("there is room for connections again");
            }
            return slot;
        }
        if !std::mem::replace(&mut self.full, true) {
            warn!(
                max_connections = self.cap,
                "the connection cap is reached, more wait in the kernel's queue"
            );
        }
        Arc::clone(&self.slots).acquire_owned().await.expect("the semaphore is never closed")
    }
}

/// The error ends one connection and says nothing about the next.
fn of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use futures_util::FutureExt;
    use tokio::time::Instant;

    use super::*;

    /// Fails as told, then leaves the rest to the socket.
    struct Script {
        errors: VecDeque<io::Error>,
        socket: TcpListener,
    }

    impl Source for Script {
        fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
            match self.errors.pop_front() {
                Some(error) => Poll::Ready(Err(error)),
                None => Source::poll_accept(&mut self.socket, cx),
            }
        }
    }

    async fn acceptor(
        errors: impl IntoIterator<Item = io::Error>,
        cap: usize,
    ) -> (Acceptor<Script>, TcpStream) {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(socket.local_addr().unwrap()).await.unwrap();
        (Acceptor::new(Script { errors: errors.into_iter().collect(), socket }, cap), client)
    }

    #[tokio::test]
    async fn every_accepted_socket_sends_without_delay() {
        let (mut acceptor, _client) = acceptor([], 1).await;
        let (stream, _slot) = acceptor.next().await;
        assert!(stream.nodelay().unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn out_of_descriptors_it_pauses_and_then_recovers() {
        const EMFILE: i32 = 24;
        let errors = (0..3).map(|_| io::Error::from_raw_os_error(EMFILE));
        let (mut acceptor, _client) = acceptor(errors, 1).await;
        let start = Instant::now();
        let _accepted = acceptor.next().await;
        assert!(start.elapsed() >= 3 * PAUSE, "{:?}", start.elapsed());
        assert!(!acceptor.failing);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_left_delays_nobody() {
        let errors = [io::ErrorKind::ConnectionAborted.into(), io::ErrorKind::ConnectionReset.into()];
        let (mut acceptor, _client) = acceptor(errors, 1).await;
        let start = Instant::now();
        let _accepted = acceptor.next().await;
        assert!(start.elapsed() < PAUSE, "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn a_slot_is_free_again_when_dropped_and_the_cap_is_said_once() {
        let (mut acceptor, _client) = acceptor([], 1).await;
        let (_stream, slot) = acceptor.next().await;
        assert!(acceptor.next().now_or_never().is_none());
        assert!(acceptor.full);
        drop(slot);
        let _client = TcpStream::connect(acceptor.source.socket.local_addr().unwrap()).await.unwrap();
        let _accepted = acceptor.next().await;
        assert!(acceptor.full, "no room to spare: the episode goes on");
    }
}

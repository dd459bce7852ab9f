//! Over real sockets, in real time: what only bytes on a wire can show. Every test waits for the
//! event itself, and a guard of ten seconds ends those that wait in vain.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod bodies;
mod disconnects;
mod drill;
mod heads;
mod http1;
mod http2;
mod probe;
mod protocols;
mod server;
mod shutdown;
mod timers;
mod upstream;

use std::time::Duration;

/// The future's output, or a failed test.
async fn within<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(10), future)
        .await
        .unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

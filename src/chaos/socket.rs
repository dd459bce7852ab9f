//! A connection, and what can be done to it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::draft::End;
use super::wire::Plan;

/// What is kept of a client that sends while it is being answered.
const INBOX: usize = 64 << 10;

/// How long a closed connection waits for the client's own end. Leaving with bytes unread
/// would send a reset, which can destroy what the client has not read yet.
const LINGER: Duration = Duration::from_secs(2);

/// A socket, and what it received that nobody has read yet.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    pub(super) inbox: BytesMut,
}

impl Socket {
    pub(super) fn new(stream: TcpStream) -> Self {
        // Without it a small write may wait 40 ms for the client's delayed ACK. A client that
        // has left already is noticed at the first read.
        let _ = stream.set_nodelay(true);
        Self { stream, inbox: BytesMut::new() }
    }

    /// Receives more; false when nothing more will come.
    pub(super) async fn fill(&mut self) -> bool {
        matches!(self.stream.read_buf(&mut self.inbox).await, Ok(1..))
    }

    /// Sends at once; false when the client has left.
    pub(super) async fn say(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// Carries out the steps of a plan, adding to `sent` what was written, until they are done
    /// or the client has left (also by closing its sending half alone): then false. A plan that
    /// hangs ends only so.
    pub(super) async fn carry_out(&mut self, plan: &Plan, sent: &AtomicU64) -> bool {
        let Self { stream, inbox } = self;
        let stream = &*stream;
        let steps = async {
            for step in &plan.steps {
                for _ in 0..step.times {
                    if !step.wait.is_zero() {
                        sleep(step.wait).await;
                    }
                    write(stream, &step.bytes, sent).await?;
                }
            }
            if plan.end == End::Hang {
                std::future::pending::<()>().await;
            }
            io::Result::Ok(())
        };
        tokio::select! {
            biased;
            done = steps => done.is_ok(),
            () = left(stream, inbox) => false,
        }
    }

    /// Ends with a TCP reset.
    pub(super) fn reset(self) {
        // Fails only on a socket that is gone already.
        let _ = self.stream.set_zero_linger();
    }

    /// Ends in good order.
    pub(super) async fn close(mut self) {
        let rest = async {
            let _ = self.stream.shutdown().await;
            while self.fill().await {
                self.inbox.clear();
            }
        };
        let _ = timeout(LINGER, rest).await;
    }
}

async fn write(stream: &TcpStream, mut bytes: &[u8], sent: &AtomicU64) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(written) => {
                sent.fetch_add(u64::try_from(written).unwrap_or(u64::MAX), Ordering::Relaxed);
                bytes = &bytes[written..];
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Ready when the client has left. What it sends meanwhile is the next request; a client that
/// sends much is not read to its end, so its leaving shows at the next write only.
async fn left(stream: &TcpStream, inbox: &mut BytesMut) {
    while inbox.len() < INBOX {
        if stream.readable().await.is_err() {
            return;
        }
        match stream.try_read_buf(inbox) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
    std::future::pending::<()>().await;
}

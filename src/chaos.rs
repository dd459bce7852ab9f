//! An upstream that fails on purpose.
//!
//! Providers fail in ways that no fake in a test's memory shows: a reset in the middle of an
//! event, a body shorter than its length, a minute of silence under a green status page. This
//! server speaks OpenAI's chat completions and Anthropic's messages, whole and streamed, and
//! fails on the wire, as a [`Script`] says and reproducibly from its seed. `refrain chaos` is
//! this server for people; drills and wire tests start it themselves.
//!
//! A request's way: `listen` accepts, `request` reads, `script` draws a mode, `compose` makes a
//! draft of the answer, bent as the mode says, `wire` turns it into bytes and pauses, and
//! `socket` sends them while it watches whether the caller stays. An [`Attempt`] is the record of
//! all that, and `control` the calls that show it.
//!
//! Left out, because a TCP server cannot do them: a handshake that is never answered (drop the
//! packets with a firewall), and failures of TLS, which this server does not speak.

mod answer;
mod asked;
mod attempt;
mod compose;
mod connection;
mod control;
mod draft;
mod http2;
mod listen;
mod mode;
mod provider_error;
mod refusal;
mod request;
mod script;
mod socket;
mod stage;
mod wire;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use stage::Stage;

pub use attempt::Attempt;
pub use mode::{Chunks, Coding, Cut, Done, Empty, Form, Http2, Length, Mode, ModeError, Page, Status};
pub use provider_error::ProviderError;
pub use script::{Content, Rules, Script};

/// A running server. Dropping it stops it, and cuts what is under way.
#[derive(Debug)]
pub struct Chaos {
    stage: Arc<Stage>,
    address: SocketAddr,
    listening: AbortOnDropHandle<()>,
}

impl Chaos {
    /// Serves on `listener` until dropped; bursts and the like are counted from now.
    ///
    /// Fails when the socket does not know its own address.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(listener: TcpListener, script: Script) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let stage = Arc::new(Stage::new(script, Instant::now()));
        let listening = tokio::spawn(listen::listen(listener, address, Arc::clone(&stage)));
        Ok(Self { stage, address, listening: AbortOnDropHandle::new(listening) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The attempts so far, those under way included; of very many the latest 100,000.
    pub fn attempts(&self) -> Vec<Attempt> {
        self.stage.attempts()
    }

    /// How many attempts there were since the start, those under way and forgotten ones included.
    pub fn begun(&self) -> u64 {
        self.stage.begun()
    }

    /// What the attempts that ended met since the start, forgotten ones included, by the mode's text.
    pub fn tally(&self) -> BTreeMap<String, u64> {
        self.stage.tally()
    }

    /// Forgets the attempts so far; their numbers go on.
    pub fn forget(&self) {
        self.stage.forget();
    }

    /// Waits until no attempt is under way: until then the last record may be incomplete, though
    /// the caller has its answer.
    pub async fn settled(&self) {
        self.stage.settled().await;
    }

    /// Plays other rules from their beginning; attempts under way keep theirs.
    pub fn set_mode(&self, rules: impl Into<Rules>) {
        self.stage.play(rules.into());
    }

    /// The rules that hold.
    pub fn rules(&self) -> Rules {
        self.stage.rules()
    }

    /// Stops, and waits until nothing is left running.
    pub async fn stop(self) {
        self.listening.abort();
        // An error here is the cancellation that was just asked for.
        let _ = self.listening.await;
    }
}

/// Serves on `listener` until `stop` is ready, then cuts what is under way.
pub async fn serve(listener: TcpListener, script: Script, stop: impl Future<Output = ()>) -> io::Result<()> {
    let chaos = Chaos::start(listener, script)?;
    stop.await;
    chaos.stop().await;
    Ok(())
}

#[cfg(test)]
mod tests;

//! The accept loop.
//!
//! `axum::serve` has no timer for the head of a request, none for idle connections and no cap on
//! their number, so a handful of silent clients could hold the service. This loop has all
//! three, drains at shutdown, and leaves no task behind when it returns.

mod accept;
mod connection;
mod exchange;
mod socket;
mod turn;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::config;
use accept::Acceptor;
use connection::{Protocols, Stage};

/// hyper takes no smaller buffer.
const LEAST_HEADERS: usize = 8 << 10;
/// Far beyond any sense, and far from where adding to an instant overflows.
const LONGEST: Duration = Duration::from_hours(30 * 24);

/// What a connection may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    header_timeout: Duration,
    idle_timeout: Duration,
    max_connections: usize,
    max_headers: usize,
    shutdown_grace: Duration,
}

/// A setting that no listener can keep.
#[derive(Debug, Error)]
#[error("server.{key} = {value:?}: {allowed} is allowed")]
pub struct LimitsError {
    key: &'static str,
    value: String,
    allowed: &'static str,
}

impl Limits {
    /// The limits that the configuration sets.
    pub fn try_new(server: &config::Server) -> Result<Self, LimitsError> {
        for (key, value) in [("header_timeout", server.header_timeout), ("idle_timeout", server.idle_timeout)]
        {
            if value.is_zero() || value > LONGEST {
                let value = humantime::format_duration(value).to_string();
                return Err(LimitsError { key, value, allowed: "more than 0s and at most 30days" });
            }
        }
        let max_headers = usize::try_from(server.max_headers.as_u64()).unwrap_or(usize::MAX);
        if !(LEAST_HEADERS..=1 << 20).contains(&max_headers) {
            let value = server.max_headers.to_string();
            return Err(LimitsError { key: "max_headers", value, allowed: "8 KiB to 1 MiB" });
        }
        Ok(Self {
            header_timeout: server.header_timeout,
            idle_timeout: server.idle_timeout,
            max_connections: server.max_connections,
            max_headers,
            shutdown_grace: server.shutdown_grace.min(LONGEST),
        })
    }
}

/// How many connections there are; readable while the listener serves.
#[derive(Debug, Default)]
pub struct Connections {
    open: AtomicUsize,
}

impl Connections {
    /// Connections open now, idle ones included.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    fn enter(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(self))
    }
}

/// One open connection; dropping it is closing.
struct Open(Arc<Connections>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A bound socket with its limits.
pub struct Listener {
    socket: TcpListener,
    limits: Limits,
    connections: Arc<Connections>,
}

impl Listener {
    /// Takes a socket that is bound and listens.
    pub fn new(socket: TcpListener, limits: Limits) -> Self {
        Self { socket, limits, connections: Arc::default() }
    }

    /// The gauge of open connections.
    pub fn connections(&self) -> Arc<Connections> {
        Arc::clone(&self.connections)
    }

    /// Serves HTTP/1 and HTTP/2 (with prior knowledge) until `shutdown` is ready.
    ///
    /// Then the socket closes at once, idle connections close at once, and requests under way
    /// have `shutdown_grace` to finish; what is left after it is cut. Returns when the last
    /// connection's task has ended. Dropping the future cuts everything at once.
    pub async fn serve(self, app: Router, shutdown: impl Future<Output = ()> + Send) {
        let Self { socket, limits, connections } = self;
        let tasks = TaskTracker::new();
        let protocols = Arc::new(Protocols::new(&limits, &tasks));
        let stage = watch::Sender::new(Stage::Serving);
        let mut acceptor = Acceptor::new(socket, limits.max_connections);
        let mut shutdown = pin!(shutdown);
        loop {
            let (stream, slot) = tokio::select! {
                biased;
                () = shutdown.as_mut() => break,
                accepted = acceptor.next() => accepted,
            };
            let open = connections.enter();
            let serving = connection::serve(stream, app.clone(), Arc::clone(&protocols), stage.subscribe());
            tasks.spawn(async move {
                let _held = (open, slot);
                serving.await;
            });
        }
        drop(acceptor);
        tasks.close();
        info!(connections = connections.open(), "the listener is closed, requests under way may finish");
        stage.send_replace(Stage::Draining);
        if tokio::time::timeout(limits.shutdown_grace, tasks.wait()).await.is_err() {
            warn!(connections = connections.open(), "the grace is over, what is left is cut");
            stage.send_replace(Stage::Over);
            tasks.wait().await;
        }
    }
}

//! The connection to the server: its timeouts, its errors, and how it comes back.
//!
//! The client connects when it is first needed and again after the server refused it. What it
//! cannot see is a connection that went silent (a vanished host, a dropped NAT entry), for calls
//! on it are cut by our timeouts before its own: after a few of those in a row we take a new one.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use qdrant_client::config::QdrantConfig;
use qdrant_client::{Qdrant, QdrantError};
use tokio::time::timeout;
use tracing::warn;

use crate::cache::store::StoreError;
use crate::config::Secret;

/// Timeouts in a row after which the connection is taken for dead.
const STRIKES: u32 = 3;

/// A client that is replaced when its connection went silent.
pub(super) struct Link {
    url: String,
    api_key: Option<Secret>,
    read_timeout: Duration,
    write_timeout: Duration,
    client: RwLock<Option<Qdrant>>,
    strikes: AtomicU32,
}

/// Which timeout an operation has: that of the path of a request, or that of what nobody there
/// waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Read,
    Write,
}

/// Why a call has no answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// The collection does not exist.
    NoCollection,
    /// The server failed inside. So it answers, too, while a collection is there but its shards
    /// are not active yet.
    Internal(StoreError),
    /// Anything else.
    Store(StoreError),
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NoCollection => Self::Failed("the collection does not exist".into()),
            Fault::Internal(error) | Fault::Store(error) => error,
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Link {
    /// Nothing is sent yet. Fails when the URL is none.
    pub(super) fn new(
        url: &str,
        api_key: Option<Secret>,
        read_timeout: Duration,
        write_timeout: Duration,
    ) -> Result<Self, StoreError> {
        let link = Self {
            url: url.to_owned(),
            api_key,
            read_timeout,
            write_timeout,
            client: RwLock::new(None),
            strikes: AtomicU32::new(0),
        };
        let client = link.new_client().map_err(|error| {
            StoreError::Unusable(
                format!(
                    "store.url = {url:?} ({error}): the address of Qdrant's gRPC port is needed, such as \
                         \"http://qdrant:6334\""
                )
                .into(),
            )
        })?;
        link.replace(Some(client));
        Ok(link)
    }

    /// Makes one call. The calls of one operation share the timeout of [`Self::within`].
    pub(super) async fn call<T, F>(&self, call: impl FnOnce(Qdrant) -> F) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, QdrantError>>,
    {
        let client = self.client()?;
        // Boxed, because the generated client makes futures of many kilobytes.
        let answer = Box::pin(call(client)).await;
        self.strikes.store(0, Ordering::Relaxed);
        answer.map_err(|error| fault(&error))
    }

    /// Runs an operation of one or more calls within the timeout of its kind.
    pub(super) async fn within<T>(
        &self,
        limit: Limit,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let limit = match limit {
            Limit::Read => self.read_timeout,
            Limit::Write => self.write_timeout,
        };
        if let Ok(outcome) = timeout(limit, operation).await {
            return outcome;
        }
        if self.strikes.fetch_add(1, Ordering::Relaxed) + 1 >= STRIKES {
            warn!(url = %self.url, "the Qdrant server does not answer; connecting anew");
            self.strikes.store(0, Ordering::Relaxed);
            self.renew();
        }
        Err(StoreError::TimedOut)
    }

    /// Later calls fail.
    pub(super) fn close(&self) {
        self.replace(None);
    }

    fn client(&self) -> Result<Qdrant, Fault> {
        let client = self.client.read().unwrap_or_else(PoisonError::into_inner);
        client.clone().ok_or_else(|| Fault::Store(StoreError::Unavailable("it is closed".into())))
    }

    fn renew(&self) {
        let Ok(client) = self.new_client() else { return };
        let mut current = self.client.write().unwrap_or_else(PoisonError::into_inner);
        if current.is_some() {
            *current = Some(client);
        }
    }

    fn replace(&self, client: Option<Qdrant>) {
        *self.client.write().unwrap_or_else(PoisonError::into_inner) = client;
    }

    fn new_client(&self) -> Result<Qdrant, QdrantError> {
        let longest = self.read_timeout.max(self.write_timeout);
        let mut config = QdrantConfig::from_url(&self.url)
            .skip_compatibility_check()
            .timeout(longest)
            .connect_timeout(longest)
            .api_key(self.api_key.as_ref().map(|key| key.expose().to_owned()));
        // HTTP/2 carries all calls side by side.
        config.set_pool_size(1);
        config.build()
    }
}

fn fault(error: &QdrantError) -> Fault {
    // gRPC status codes, https://grpc.io/docs/guides/status-codes/
    const CANCELLED: i32 = 1;
    const UNKNOWN: i32 = 2;
    const DEADLINE_EXCEEDED: i32 = 4;
    const NOT_FOUND: i32 = 5;
    const PERMISSION_DENIED: i32 = 7;
    const INTERNAL: i32 = 13;
    const UNAVAILABLE: i32 = 14;
    const UNAUTHENTICATED: i32 = 16;

    let (QdrantError::ResponseError { status } | QdrantError::ResourceExhaustedError { status, .. }) = error
    else {
        return Fault::Store(StoreError::Failed(error.to_string().into()));
    };
    let message = status.message();
    Fault::Store(match status.code() as i32 {
        NOT_FOUND => return Fault::NoCollection,
        DEADLINE_EXCEEDED => StoreError::TimedOut,
        // The client reports its own failure to connect as an internal error.
        INTERNAL if message.starts_with("Failed to connect") => StoreError::Unavailable(message.into()),
        INTERNAL => return Fault::Internal(StoreError::Failed(message.into())),
        UNAVAILABLE | CANCELLED | UNKNOWN => StoreError::Unavailable(message.into()),
        UNAUTHENTICATED | PERMISSION_DENIED => {
            StoreError::Failed(format!("the server refuses store.api_key: {message}").into())
        }
        _ => StoreError::Failed(message.into()),
    })
}

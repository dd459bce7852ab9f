//! Stands in for a Qdrant server: its protocol over a real socket, an Edge shard behind each
//! collection, so that filters and vectors are really evaluated.
//!
//! It answers the calls that Refrain makes, in the way that Refrain makes them; anything else is
//! `unimplemented`. It can be stopped and started again on the same data and port.

mod collections;
mod points;
mod translate;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use qdrant_client::qdrant::collections_server::CollectionsServer;
use qdrant_client::qdrant::points_server::PointsServer;
use qdrant_edge::EdgeShard;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Status};

/// A server with its data.
pub(crate) struct Server {
    address: SocketAddr,
    data: Arc<Data>,
    runtime: Option<Runtime>,
}

/// What outlives a restart.
pub(crate) struct Data {
    collections: Mutex<BTreeMap<String, Arc<Collection>>>,
    hangs: watch::Sender<bool>,
    api_key: Mutex<Option<String>>,
    // Last: a shard that is dropped without its folder panics.
    folder: TempDir,
}

struct Collection {
    /// Length of the vectors; `None` when there are none.
    dimensions: Option<u64>,
    /// Until then it is there and fails, as on a real server while its shards become active.
    active_from: Instant,
    edge: Mutex<EdgeShard>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let data = Data {
            folder: TempDir::new().unwrap(),
            collections: Mutex::default(),
            hangs: watch::Sender::new(false),
            api_key: Mutex::default(),
        };
        let mut server = Self { address: ([127, 0, 0, 1], 0).into(), data: Arc::new(data), runtime: None };
        server.restart().await;
        server
    }

    /// Starts on the same port again.
    pub(crate) async fn restart(&mut self) {
        let data = Arc::clone(&self.data);
        // A runtime of its own: dropping it closes the port and every connection at once.
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let address = self.address;
        let listener = runtime.spawn(TcpListener::bind(address)).await.unwrap().unwrap();
        self.address = listener.local_addr().unwrap();
        runtime.spawn(async move {
            let points = PointsServer::from_arc(Arc::clone(&data)).max_decoding_message_size(usize::MAX);
            tonic::transport::Server::builder()
                .add_service(points)
                .add_service(CollectionsServer::from_arc(data))
                .serve_with_incoming(TcpIncoming::from(listener))
                .await
                .unwrap();
        });
        self.runtime = Some(runtime);
    }

    pub(crate) async fn stop(&mut self) {
        let runtime = self.runtime.take().unwrap();
        tokio::task::spawn_blocking(|| runtime.shutdown_timeout(Duration::from_secs(5))).await.unwrap();
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// While it hangs, calls are taken and never answered.
    pub(crate) fn hang(&self, hangs: bool) {
        self.data.hangs.send_replace(hangs);
    }

    pub(crate) fn demand_api_key(&self, key: &str) {
        *self.data.api_key.lock().unwrap() = Some(key.to_owned());
    }

    /// Drops every collection.
    pub(crate) fn forget_everything(&self) {
        self.data.collections.lock().unwrap().clear();
    }

    /// How many points a collection has.
    pub(crate) fn points(&self, collection: &str) -> usize {
        self.data.collection(collection).unwrap().edge.lock().unwrap().info().points_count
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Data {
    /// What every call goes through first.
    async fn enter<T>(&self, request: Request<T>) -> Result<T, Status> {
        self.hangs.subscribe().wait_for(|hangs| !hangs).await.unwrap();
        let wanted = self.api_key.lock().unwrap().clone();
        let given = request.metadata().get("api-key").and_then(|key| key.to_str().ok());
        if wanted.is_some() && wanted.as_deref() != given {
            return Err(Status::unauthenticated("Must provide an API key or an Authorization bearer token"));
        }
        Ok(request.into_inner())
    }

    fn collection(&self, name: &str) -> Result<Arc<Collection>, Status> {
        let found = self.collections.lock().unwrap().get(name).cloned();
        found.ok_or_else(|| Status::not_found(format!("Not found: Collection `{name}` doesn't exist!")))
    }
}

impl Collection {
    fn must_be_active(&self) -> Result<(), Status> {
        if Instant::now() < self.active_from {
            return Err(Status::internal("Service internal error: 0 of 0 read operations failed"));
        }
        Ok(())
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&EdgeShard) -> Result<T, qdrant_edge::OperationError>,
    ) -> Result<T, Status> {
        work(&self.edge.lock().unwrap()).map_err(|error| Status::invalid_argument(error.to_string()))
    }
}

/// Implements a service of the protocol: the calls written out, and the rest unimplemented.
macro_rules! service {
    ($service:path { $($written:tt)* } unimplemented { $($name:ident($request:ident) -> $response:ident,)* }) => {
        #[tonic::async_trait]
        impl $service for $crate::store::fixture::Data {
            $($written)*
            $(async fn $name(
                &self,
                _: tonic::Request<qdrant_client::qdrant::$request>,
            ) -> Result<tonic::Response<qdrant_client::qdrant::$response>, tonic::Status> {
                Err(tonic::Status::unimplemented(stringify!($name)))
            })*
        }
    };
}
use service;

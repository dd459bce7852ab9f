//! A listener under test.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use refrain::config::Config;
use refrain::server::body::{self, BodyLimits, WholeBody};
use refrain::server::listener::{Connections, Limits, Listener};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::http1::Client;
use crate::http2;
use crate::within;

pub(crate) struct Server {
    address: SocketAddr,
    connections: Arc<Connections>,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Server {
    /// Serves `/hello`, `/echo` and the given routes, with these settings of `[server]`.
    pub(crate) async fn start(settings: &str, routes: Router) -> Self {
        let config = Config::from_toml(&format!("[server]\n{settings}")).unwrap().server;
        let app = Router::new()
            .route("/hello", get(|| async { "hello" }))
            .route("/echo", post(|WholeBody(body): WholeBody| async move { body }))
            .merge(routes)
            .layer(from_fn_with_state(BodyLimits::new(&config), body::limit));
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let listener = Listener::new(socket, Limits::try_new(&config).unwrap());
        let connections = listener.connections();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(listener.serve(app, async {
            let _ = stopped.await;
        }));
        Self { address, connections, stop: Some(stop), serving }
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::new(TcpStream::connect(self.address).await.unwrap())
    }

    pub(crate) async fn connect_http2(&self) -> http2::Client {
        http2::Client::start(TcpStream::connect(self.address).await.unwrap()).await
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn open(&self) -> usize {
        self.connections.open()
    }

    /// Gives the signal to stop.
    pub(crate) fn signal(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits for the end after the signal: nothing may be left running.
    pub(crate) async fn ended(self) {
        within("the listener ends", self.serving).await.unwrap();
        assert_eq!(self.connections.open(), 0);
    }

    /// Another client is still served, and then the listener ends.
    pub(crate) async fn serves_and_stops(mut self) {
        let mut other = self.connect().await;
        other.get("/hello").await;
        assert_eq!(other.response().await.body, "hello");
        drop(other);
        self.signal();
        self.ended().await;
    }
}

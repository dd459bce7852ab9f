//! Accepts connections, except when the scene says that nobody listens.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};
use tracing::error;

use super::connection;
use super::mode::Mode;
use super::socket::Socket;
use super::stage::Stage;

/// After an error of the process's own (no descriptors, the port not free yet).
const PAUSE: Duration = Duration::from_millis(20);

/// Serves for ever. Dropping the future cuts every connection.
pub(super) async fn listen(mut listener: TcpListener, address: SocketAddr, stage: Arc<Stage>) {
    let mut connections = JoinSet::new();
    let mut down = stage.watch_down();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => admit(stream, &stage, &mut connections),
                Err(_) => sleep(PAUSE).await,
            },
            _ = down.changed() => {
                // Only a closed socket is refused by the kernel itself.
                drop(listener);
                while let Some(until) = stage.down() {
                    sleep_until(until).await;
                }
                listener = bind(address).await;
            }
            Some(ended) = connections.join_next() => if let Err(error) = ended {
                error!(%error, "a connection failed");
            },
        }
    }
}

fn admit(stream: TcpStream, stage: &Arc<Stage>, connections: &mut JoinSet<()>) {
    let socket = Socket::new(stream);
    let Some(mode) = stage.strike_at_accept() else {
        connections.spawn(connection::serve(socket, Arc::clone(stage)));
        return;
    };
    stage.begin("", "").meets(&mode);
    if let Mode::Refuse { pause } = mode {
        socket.reset();
        stage.go_down(pause);
    }
}

async fn bind(address: SocketAddr) -> TcpListener {
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) => {
                error!(%error, %address, "the address cannot be listened on again yet");
                sleep(PAUSE).await;
            }
        }
    }
}

//! The measure of all things: a POST's body comes back, and nothing else happens.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use refrain::config::Config;
use refrain::server::listener::{Limits, Listener};

use crate::Failure;
use crate::process::Process;

/// An echo in a process of its own.
pub(crate) struct Echo {
    process: Process,
    address: SocketAddr,
}

impl Echo {
    pub(crate) fn address(&self) -> (SocketAddr, &Process) {
        (self.address, &self.process)
    }
}

/// Starts this program once more, as the echo.
pub(crate) fn start() -> Result<Echo, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut process = Process::spawn(command.arg("--echo").stdout(Stdio::piped()))?;
    let mut line = String::new();
    BufReader::new(process.stdout()?).read_line(&mut line)?;
    Ok(Echo { address: line.trim().parse()?, process })
}

/// Serves until the process is ended.
pub(crate) fn serve() -> Result<(), Failure> {
    // As many threads as the service has.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", socket.local_addr()?);
        let limits = Limits::try_new(&Config::from_toml("")?.server)?;
        let app = Router::new().route("/echo", post(|body: Bytes| async { body }));
        Listener::new(socket, limits).serve(app, std::future::pending()).await;
        Ok(())
    })
}

//! A provider that does what the test says, byte for byte and when the test says it.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// How long a test waits for what must happen; never waited for when it does.
const PATIENCE: Duration = Duration::from_secs(20);

/// A listening provider.
pub(crate) struct Provider(TcpListener);

impl Provider {
    pub(crate) async fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// The next connection's first request.
    pub(crate) async fn call(&self) -> Call {
        let (connection, _) = timeout(PATIENCE, self.0.accept()).await.expect("nobody calls").unwrap();
        Call::read(connection).await
    }
}

/// One request, waiting for its answer.
pub(crate) struct Call {
    connection: TcpStream,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Call {
    async fn read(mut connection: TcpStream) -> Self {
        let mut bytes = Vec::new();
        let (head, length) = loop {
            let read = timeout(PATIENCE, connection.read_buf(&mut bytes)).await.expect("no request").unwrap();
            assert_ne!(read, 0, "closed before a request");
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8(bytes.drain(..end + 4).collect()).unwrap().to_lowercase();
                let length = header(&head, "content-length").unwrap().parse::<usize>().unwrap();
                break (head, length);
            }
        };
        while bytes.len() < length {
            timeout(PATIENCE, connection.read_buf(&mut bytes)).await.expect("half a body").unwrap();
        }
        Self { connection, head, body: bytes }
    }

    /// The next request on the same connection.
    pub(crate) async fn next(self) -> Self {
        Self::read(self.connection).await
    }

    /// A header of the request, by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// Sends bytes as they are.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.connection.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends bytes for as long as they are taken.
    pub(crate) async fn flood(&mut self, bytes: &[u8]) {
        let flood = async { while self.connection.write_all(bytes).await.is_ok() {} };
        timeout(PATIENCE, flood).await.expect("the caller takes everything");
    }

    /// A whole answer.
    pub(crate) async fn respond(&mut self, status: &str, headers: &str, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        self.send(format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len())).await;
        self.send(body).await;
    }

    /// A whole answer in JSON.
    pub(crate) async fn json(&mut self, body: &str) {
        self.respond("200 OK", "content-type: application/json\r\n", body).await;
    }

    /// The beginning of an event stream.
    pub(crate) async fn begin_events(&mut self) {
        self.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n").await;
        self.send("transfer-encoding: chunked\r\n\r\n").await;
    }

    /// A piece of an event stream, in one chunk.
    pub(crate) async fn chunk(&mut self, text: &str) {
        self.send(format!("{:x}\r\n{text}\r\n", text.len())).await;
    }

    /// The clean end of an event stream.
    pub(crate) async fn end_events(&mut self) {
        self.send("0\r\n\r\n").await;
    }

    /// Breaks the connection with a reset.
    pub(crate) fn reset(self) {
        self.connection.set_zero_linger().unwrap();
    }

    /// Waits until the caller has closed the connection.
    pub(crate) async fn closed(mut self) {
        let closed = async {
            let mut rest = [0; 1024];
            while self.connection.read(&mut rest).await.is_ok_and(|read| read > 0) {}
        };
        timeout(PATIENCE, closed).await.expect("the caller stays");
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

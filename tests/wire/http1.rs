//! An HTTP/1 client that does what no client library would.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::within;

pub(crate) struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn status(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

impl Client {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, unread: Vec::new() }
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        within("the server reads", self.stream.write_all(bytes.as_ref())).await.unwrap();
    }

    /// Sends what the server may refuse to read.
    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        within("the server reads or closes", self.stream.write_all(bytes.as_ref())).await.is_ok()
    }

    pub(crate) async fn get(&mut self, path: &str) {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
    }

    /// Everything up to and with `end`.
    pub(crate) async fn read_to(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = self.unread.windows(end.len()).position(|window| window == end.as_bytes()) {
                let read = self.unread.drain(..at + end.len()).collect();
                return String::from_utf8(read).unwrap();
            }
            let read = within("the server sends", self.stream.read_buf(&mut self.unread)).await.unwrap();
            assert_ne!(read, 0, "closed before {end:?}, after {:?}", String::from_utf8_lossy(&self.unread));
        }
    }

    /// A response with a length.
    pub(crate) async fn response(&mut self) -> Response {
        let head = self.read_to("\r\n\r\n").await;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
        let length: usize = length.trim().parse().unwrap();
        while self.unread.len() < length {
            let read = within("the server sends", self.stream.read_buf(&mut self.unread)).await.unwrap();
            assert_ne!(read, 0, "closed inside the body");
        }
        let body = self.unread.drain(..length).collect();
        Response { head, body: String::from_utf8(body).unwrap() }
    }

    /// What comes until the server closes, with a reset counting as closing.
    pub(crate) async fn closed(mut self) -> String {
        // An error after some bytes is a reset; the bytes before it are in `unread`.
        let _ = within("the server closes", self.stream.read_to_end(&mut self.unread)).await;
        String::from_utf8_lossy(&self.unread).into_owned()
    }

    /// As [`Self::closed`], and it must not be a reset.
    pub(crate) async fn closed_cleanly(mut self) -> String {
        within("the server closes", self.stream.read_to_end(&mut self.unread)).await.unwrap();
        String::from_utf8(self.unread).unwrap()
    }
}

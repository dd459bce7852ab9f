//! A client that shows bytes.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::chaos::Chaos;

/// How long a test waits for what must happen; never waited for when it does.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long silence is listened to.
const SILENCE: Duration = Duration::from_millis(30);

/// A connection, and all that came on it.
pub(super) struct Client {
    pub(super) stream: TcpStream,
    received: Vec<u8>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Closed,
    Reset,
}

/// All that came on a connection, and how it ended.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) bytes: Vec<u8>,
    pub(super) end: End,
}

impl Client {
    pub(super) async fn connect(chaos: &Chaos) -> Self {
        Self { stream: TcpStream::connect(chaos.address()).await.unwrap(), received: Vec::new() }
    }

    pub(super) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Asks, and goes on using the connection.
    pub(super) async fn ask(&mut self, path: &str, body: &Value) {
        self.send(post(path, "authorization: Bearer test-a\r\n", &body.to_string())).await;
    }

    /// Asks, and wants the connection closed afterwards.
    pub(super) async fn ask_last(&mut self, path: &str, body: &Value) {
        let headers = "authorization: Bearer test-a\r\nconnection: close\r\n";
        self.send(post(path, headers, &body.to_string())).await;
    }

    /// Reads until `text` has come, and takes all up to and with it.
    pub(super) async fn read_to(&mut self, text: &str) -> String {
        loop {
            let found = self.received.windows(text.len()).position(|window| window == text.as_bytes());
            if let Some(at) = found {
                let taken = self.received.drain(..at + text.len()).collect();
                return String::from_utf8(taken).unwrap();
            }
            let read = timeout(PATIENCE, self.stream.read_buf(&mut self.received)).await;
            let so_far = String::from_utf8_lossy(&self.received).into_owned();
            assert_ne!(
                read.unwrap_or_else(|_| panic!("no {text:?}, only {so_far:?}")).unwrap(),
                0,
                "{so_far:?}"
            );
        }
    }

    /// Reads one answer that tells its length.
    pub(super) async fn response(&mut self) -> Response {
        let head = self.read_to("\r\n\r\n").await;
        let length = header(&head, "content-length").expect("a length").parse().unwrap();
        while self.received.len() < length {
            let read = timeout(PATIENCE, self.stream.read_buf(&mut self.received)).await;
            assert_ne!(read.expect("no body").unwrap(), 0, "half a body");
        }
        let mut bytes = head.into_bytes();
        bytes.extend(self.received.drain(..length));
        Response { bytes, end: End::Closed }
    }

    /// Nothing comes, and nothing ends.
    pub(super) async fn silence(&mut self) {
        let read = timeout(SILENCE, self.stream.read_buf(&mut self.received)).await;
        assert!(read.is_err(), "{read:?}: {:?}", String::from_utf8_lossy(&self.received));
        assert_eq!(String::from_utf8_lossy(&self.received), "");
    }

    /// Reads until the connection ends.
    pub(super) async fn rest(mut self) -> Response {
        let mut bytes = std::mem::take(&mut self.received);
        let end = loop {
            match timeout(PATIENCE, self.stream.read_buf(&mut bytes)).await.expect("no end") {
                Ok(0) => break End::Closed,
                Ok(_) => {}
                Err(_) => break End::Reset,
            }
        };
        Response { bytes, end }
    }
}

impl Response {
    fn split(&self) -> (&[u8], &[u8]) {
        let end = self.bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no head in {:?}", String::from_utf8_lossy(&self.bytes)));
        (&self.bytes[..end + 2], &self.bytes[end + 4..])
    }

    pub(super) fn head(&self) -> String {
        String::from_utf8(self.split().0.to_vec()).unwrap()
    }

    pub(super) fn status(&self) -> u16 {
        self.head()["HTTP/1.1 ".len()..][..3].parse().unwrap()
    }

    pub(super) fn header(&self, name: &str) -> Option<String> {
        header(&self.head(), name)
    }

    /// The body as it came, chunk heads included.
    pub(super) fn raw(&self) -> &[u8] {
        self.split().1
    }

    /// The data of each chunk; the last is empty when the body ended as it should.
    pub(super) fn chunks(&self) -> Vec<Vec<u8>> {
        assert_eq!(self.header("transfer-encoding").as_deref(), Some("chunked"));
        let (mut rest, mut chunks) = (self.raw(), Vec::new());
        while let Ok(httparse::Status::Complete((head, size))) = httparse::parse_chunk_size(rest) {
            let size = usize::try_from(size).unwrap();
            chunks.push(rest[head..][..size].to_vec());
            rest = &rest[head + size + 2..];
        }
        assert!(rest.is_empty(), "half a chunk: {:?}", String::from_utf8_lossy(rest));
        chunks
    }

    /// The body, unframed.
    pub(super) fn body(&self) -> Vec<u8> {
        match self.header("transfer-encoding") {
            Some(_) => self.chunks().concat(),
            None => self.raw().to_vec(),
        }
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8(self.body()).unwrap()
    }

    pub(super) fn json(&self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The data of the events of a stream.
    pub(super) fn data(&self) -> Vec<String> {
        assert_eq!(self.header("content-type").as_deref(), Some("text/event-stream; charset=utf-8"));
        self.text().lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect()
    }

    /// The HTTP message is complete: its length is as told, or the last chunk has come.
    pub(super) fn is_complete(&self) -> bool {
        match self.header("content-length") {
            Some(length) => length == self.raw().len().to_string(),
            None => self.raw().ends_with(b"0\r\n\r\n"),
        }
    }
}

pub(super) fn post(path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {length}\r\n\r\n{body}")
}

fn header(head: &str, name: &str) -> Option<String> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(known, _)| *known == name).map(|(_, value)| value.to_owned()).next()
}

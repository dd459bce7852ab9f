//! A client of HTTP/1.1 that does as little as it may, so that it is not what is measured.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection that is kept, and its buffer with it.
pub(crate) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

/// A whole answer; its body still in chunks if it came so.
pub(crate) struct Reply<'a> {
    pub(crate) status: u16,
    head: &'a str,
    pub(crate) body: &'a [u8],
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::with_capacity(16 << 10) })
    }

    /// Sends a request and reads its answer to the end.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> io::Result<Reply<'_>> {
        self.stream.write_all(request).await?;
        self.received.clear();
        let body = loop {
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(body) = whole(&self.received)? {
                break body;
            }
        };
        let (head, body) = self.received.split_at(body);
        let head = std::str::from_utf8(head).map_err(io::Error::other)?;
        let status = head.get(9..12).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("no status"))?;
        Ok(Reply { status, head, body })
    }
}

impl Reply<'_> {
    /// The value of a header, whose name is in lower case as hyper writes it.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(self.head, name)
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.split("\r\n").skip(1).filter_map(|line| line.split_once(": "));
    fields.find(|(found, _)| *found == name).map(|(_, value)| value)
}

/// Where the body begins, once all of it is there.
fn whole(received: &[u8]) -> io::Result<Option<usize>> {
    let Some(end) = find(received, b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&received[..end]).map_err(io::Error::other)?;
    let body = &received[end + 4..];
    let is_whole = match header(head, "content-length") {
        Some(length) => body.len() >= length.parse().map_err(io::Error::other)?,
        None => last_chunk_is_there(body),
    };
    Ok(is_whole.then_some(end + 4))
}

fn last_chunk_is_there(mut body: &[u8]) -> bool {
    while let Some(line) = find(body, b"\r\n") {
        let size =
            std::str::from_utf8(&body[..line]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let Some(rest) = size.and_then(|size| body.get(line + size + 4..)) else { return false };
        if size == Some(0) {
            return true;
        }
        body = rest;
    }
    false
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

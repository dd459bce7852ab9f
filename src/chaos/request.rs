//! Reads requests, as a server does that a client can rely on: the faults are in the answers.

use bytes::{Buf, Bytes};

use super::socket::Socket;

/// Headers of a request, and bytes of its head, at most.
const MOST_HEADERS: usize = 128;
const LONGEST_HEAD: usize = 256 << 10;
/// Bytes of a request's body, at most.
const LARGEST_BODY: u64 = 256 << 20;

/// What HTTP/2 with prior knowledge begins with.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What came in.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A head; the body is still to be read.
    Request(Head),
    /// The preface of HTTP/2.
    Http2,
    /// Bytes that are no head.
    Malformed,
    /// Nothing more.
    Gone,
}

/// The part of a head that matters here.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) method: String,
    pub(super) path: String,
    /// From `authorization: Bearer` or `x-api-key`; empty without.
    pub(super) key: String,
    /// The client sends the body only when told to.
    pub(super) expects: bool,
    /// The client wants the connection closed.
    pub(super) last: bool,
    length: Length,
}

#[derive(Clone, Copy, Debug)]
enum Length {
    Known(u64),
    Chunked,
}

/// Reads the next head.
pub(super) async fn head(socket: &mut Socket) -> Incoming {
    loop {
        if socket.inbox.starts_with(PREFACE) {
            return Incoming::Http2;
        }
        if !socket.inbox.is_empty() && !PREFACE.starts_with(&socket.inbox) {
            match parse(&socket.inbox) {
                Ok(Some((head, length))) => {
                    socket.inbox.advance(length);
                    return Incoming::Request(head);
                }
                Ok(None) if socket.inbox.len() <= LONGEST_HEAD => {}
                _ => return Incoming::Malformed,
            }
        }
        if !socket.fill().await {
            return Incoming::Gone;
        }
    }
}

/// Reads the body; `None` when it is malformed, too large or breaks off.
pub(super) async fn body(socket: &mut Socket, head: &Head) -> Option<Bytes> {
    match head.length {
        Length::Known(length) => exactly(socket, length).await,
        Length::Chunked => {
            let mut body = Vec::new();
            loop {
                let size = chunk_size(socket).await?;
                if size == 0 {
                    // Trailers, up to the empty line.
                    while !line(socket).await?.is_empty() {}
                    return Some(body.into());
                }
                body.extend(exactly(socket, size).await?);
                if !line(socket).await?.is_empty() || body.len() as u64 > LARGEST_BODY {
                    return None;
                }
            }
        }
    }
}

fn parse(bytes: &[u8]) -> Result<Option<(Head, usize)>, httparse::Error> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(length) = request.parse(bytes)? else { return Ok(None) };
    let value = |name: &str| {
        let header = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(header.value).ok().map(str::trim)
    };
    let body = match (value("transfer-encoding"), value("content-length")) {
        (Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => Length::Chunked,
        (Some(_), _) => return Err(httparse::Error::HeaderValue),
        (None, Some(length)) => Length::Known(length.parse().map_err(|_| httparse::Error::HeaderValue)?),
        (None, None) => Length::Known(0),
    };
    let key = value("authorization").and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
    });
    let is = |name, wanted: &str| value(name).is_some_and(|value| value.eq_ignore_ascii_case(wanted));
    let head = Head {
        method: request.method.unwrap_or_default().to_owned(),
        path: request.path.unwrap_or_default().to_owned(),
        key: key.or(value("x-api-key")).or(value("api-key")).unwrap_or_default().to_owned(),
        expects: is("expect", "100-continue"),
        last: is("connection", "close") || request.version == Some(0),
        length: body,
    };
    Ok(Some((head, length)))
}

async fn exactly(socket: &mut Socket, length: u64) -> Option<Bytes> {
    let length = usize::try_from(length).ok().filter(|_| length <= LARGEST_BODY)?;
    while socket.inbox.len() < length {
        if !socket.fill().await {
            return None;
        }
    }
    Some(socket.inbox.split_to(length).freeze())
}

async fn chunk_size(socket: &mut Socket) -> Option<u64> {
    loop {
        match httparse::parse_chunk_size(&socket.inbox) {
            Ok(httparse::Status::Complete((length, size))) => {
                socket.inbox.advance(length);
                return Some(size);
            }
            Ok(httparse::Status::Partial) if socket.fill().await => {}
            _ => return None,
        }
    }
}

/// A line, without its end.
async fn line(socket: &mut Socket) -> Option<Bytes> {
    loop {
        if let Some(end) = socket.inbox.windows(2).position(|window| window == b"\r\n") {
            let line = socket.inbox.split_to(end).freeze();
            socket.inbox.advance(2);
            return Some(line);
        }
        if socket.inbox.len() > LONGEST_HEAD || !socket.fill().await {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> Head {
        parse(head.as_bytes()).unwrap().expect("a whole head").0
    }

    #[test]
    fn the_key_stands_where_either_dialect_puts_it() {
        for header in ["Authorization: Bearer test-a", "authorization: bearer  test-a", "X-Api-Key: test-a"] {
            assert_eq!(read(&format!("POST /v1/messages HTTP/1.1\r\n{header}\r\n\r\n")).key, "test-a");
        }
        let head = read("POST /x HTTP/1.1\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n");
        assert!(head.key.is_empty() && head.expects && head.last);
    }

    #[test]
    fn what_is_no_head_is_told_from_what_is_not_yet_one() {
        assert!(parse(b"POST /x HTTP/1.1\r\nhos").unwrap().is_none());
        for malformed in ["\0", "POST /x HTTP/1.1\r\ncontent-length: x\r\n\r\n", "GET  / x\r\n\r\n"] {
            assert!(parse(malformed.as_bytes()).is_err(), "{malformed:?}");
        }
    }
}

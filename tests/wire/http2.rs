//! Just enough HTTP/2, by hand, to behave and to misbehave.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::within;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// HPACK's one byte for `:status: 200`.
pub(crate) const STATUS_200: u8 = 0x88;

#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    fn bytes(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).unwrap().to_be_bytes();
        let mut bytes = length[1..].to_vec();
        bytes.extend([self.kind, self.flags]);
        bytes.extend(self.stream.to_be_bytes());
        bytes.extend(&self.payload);
        bytes
    }

    pub(crate) fn ends_stream(&self) -> bool {
        self.flags & END_STREAM != 0
    }
}

/// A GET without a body, plus a raw piece of header block.
pub(crate) fn get(stream: u32, path: &str, more: &[u8]) -> Vec<u8> {
    let mut payload = vec![0x82, 0x86];
    for (name, value) in [(0x04, path), (0x01, "x")] {
        payload.extend([name, u8::try_from(value.len()).unwrap()]);
        payload.extend(value.as_bytes());
    }
    payload.extend(more);
    Frame { kind: HEADERS, flags: END_STREAM | END_HEADERS, stream, payload }.bytes()
}

pub(crate) fn reset(stream: u32) -> Vec<u8> {
    const CANCEL: u32 = 8;
    Frame { kind: RST_STREAM, flags: 0, stream, payload: CANCEL.to_be_bytes().to_vec() }.bytes()
}

pub(crate) struct Client {
    stream: TcpStream,
    /// Whether pings are answered, as the protocol demands.
    pub(crate) polite: bool,
}

impl Client {
    /// Sends the preface and empty settings.
    pub(crate) async fn start(stream: TcpStream) -> Self {
        let mut client = Self { stream, polite: true };
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        client.send(&Frame { kind: SETTINGS, flags: 0, stream: 0, payload: Vec::new() }.bytes()).await;
        client
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        within("the server reads", self.stream.write_all(bytes)).await.unwrap();
    }

    /// The next frame that is not mere bookkeeping; `None` once the server has closed.
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        loop {
            let mut head = [0; 9];
            within("the server sends", self.stream.read_exact(&mut head)).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            within("the server sends", self.stream.read_exact(&mut payload)).await.ok()?;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let frame = Frame { kind: head[3], flags: head[4], stream, payload };
            match frame {
                Frame { kind: PING, flags: 0, .. } if self.polite => {
                    self.send(&Frame { flags: ACK, ..frame }.bytes()).await;
                }
                Frame { kind: DATA | HEADERS | RST_STREAM | GOAWAY, .. } => return Some(frame),
                _ => {}
            }
        }
    }

    /// The answer on a stream: its first header byte and its data.
    pub(crate) async fn response(&mut self, stream: u32) -> (u8, String) {
        let (mut status, mut data) = (0, Vec::new());
        loop {
            let frame = self.frame().await.expect("closed before the response");
            if frame.stream != stream {
                continue;
            }
            match frame.kind {
                HEADERS => status = frame.payload[0],
                DATA => data.extend(&frame.payload),
                _ => panic!("{frame:?}"),
            }
            if frame.ends_stream() {
                return (status, String::from_utf8(data).unwrap());
            }
        }
    }

    /// The kinds of frames until the server closes.
    pub(crate) async fn closed(mut self) -> Vec<u8> {
        let mut kinds = Vec::new();
        while let Some(frame) = self.frame().await {
            kinds.push(frame.kind);
        }
        kinds
    }
}

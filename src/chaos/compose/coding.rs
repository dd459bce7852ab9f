//! Content codings that nobody asked for.
//!
//! Brotli and Zstandard are written without compression, in blocks that every decoder must
//! take: what is tested is whether a caller looks at the label, not how well we compress.

use std::io::Write;

use bytes::Bytes;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

use crate::chaos::answer::Kind;
use crate::chaos::draft::{Draft, Part};
use crate::chaos::mode::Coding;

/// Encodes each part so that it can be decoded as soon as it has come.
pub(super) fn encode(draft: &mut Draft, coding: Coding) {
    let label = match coding {
        Coding::Gzip | Coding::Truncated | Coding::Mislabelled => Some("gzip"),
        Coding::Br => Some("br"),
        Coding::Zstd => Some("zstd"),
        Coding::Unlabelled => None,
    };
    if let Some(label) = label {
        draft.header("content-encoding", label);
    }
    match coding {
        Coding::Gzip | Coding::Unlabelled => draft.parts = gzip(&draft.parts),
        Coding::Truncated => {
            draft.parts = gzip(&draft.parts);
            let mut bytes = draft.bytes();
            bytes.truncate(bytes.len() / 2);
            draft.parts = vec![Part::new(Kind::Content, bytes)];
        }
        Coding::Br => draft.parts = blocks(&draft.parts, BROTLI_START, brotli_block, BROTLI_END),
        Coding::Zstd => draft.parts = blocks(&draft.parts, ZSTD_START, zstd_block, ZSTD_END),
        Coding::Mislabelled => {}
    }
    draft.measure();
}

/// RFC 1952: deflate, no name, no time.
const GZIP_START: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// RFC 1951: a last block in fixed codes, with nothing in it.
const DEFLATE_END: &[u8] = &[0x03, 0x00];

/// Each part is compressed for itself and ends on a byte, so it can be decoded as soon as it has
/// come, and a part that is sent many times need not be made many times.
fn gzip(parts: &[Part]) -> Vec<Part> {
    let mut sum = Crc::new();
    let mut gzip = vec![Part::new(Kind::Start, Bytes::from_static(GZIP_START))];
    for part in parts {
        let mut once = Crc::new();
        once.update(&part.bytes);
        (0..part.times).for_each(|_| sum.combine(&once));
        gzip.push(part.encoded(deflate(&part.bytes)));
    }
    let end = [DEFLATE_END, &sum.sum().to_le_bytes(), &sum.amount().to_le_bytes()].concat();
    gzip.push(Part::new(Kind::Done, end));
    gzip
}

/// Blocks that do not refer to what came before, none of them the last.
fn deflate(data: &[u8]) -> Vec<u8> {
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
    let written = deflate.write_all(data).and_then(|()| deflate.flush());
    written.expect("writing into memory does not fail");
    std::mem::take(deflate.get_mut())
}

impl Part {
    /// The same moment, other bytes.
    fn encoded(&self, bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), ..self.clone() }
    }
}

/// Each part in blocks, after a start and before an end.
fn blocks(
    parts: &[Part],
    start: &'static [u8],
    block: fn(&[u8]) -> Vec<u8>,
    end: &'static [u8],
) -> Vec<Part> {
    let mut encoded = vec![Part::new(Kind::Start, Bytes::from_static(start))];
    for part in parts.iter().filter(|part| !part.bytes.is_empty()) {
        let blocks: Vec<u8> = part.bytes.chunks(1 << 16).flat_map(block).collect();
        encoded.push(part.encoded(blocks));
    }
    encoded.push(Part::new(Kind::Done, Bytes::from_static(end)));
    encoded
}

/// RFC 8878: the magic number, no checksum, no content size, a window of 128 KiB.
const ZSTD_START: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
/// A last raw block of nothing.
const ZSTD_END: &[u8] = &[0x01, 0x00, 0x00];

/// A raw block: last (1 bit), type 0 (2 bits), size (21 bits).
fn zstd_block(data: &[u8]) -> Vec<u8> {
    let size = u32::try_from(data.len()).unwrap_or(u32::MAX);
    [&(size << 3).to_le_bytes()[..3], data].concat()
}

/// RFC 7932: a window of 64 KiB (one bit, 0), then an empty metadata block, which ends on a byte:
/// ISLAST 0, MNIBBLES 11, reserved 0, MSKIPBYTES 00.
const BROTLI_START: &[u8] = &[0b0000_1100];
/// ISLAST 1, ISLASTEMPTY 1.
const BROTLI_END: &[u8] = &[0b11];

/// An uncompressed block: ISLAST 0, MNIBBLES 00 (four), MLEN - 1, ISUNCOMPRESSED 1.
fn brotli_block(data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len().saturating_sub(1)).unwrap_or(u32::MAX);
    let header = length << 3 | 1 << 19;
    [&header.to_le_bytes()[..3], data].concat()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    fn draft() -> Draft {
        Draft::whole(200, "text/plain", "hello")
    }

    #[test]
    fn gzip_unpacks_to_the_body() {
        let mut draft = draft();
        encode(&mut draft, Coding::Gzip);
        let mut unpacked = String::new();
        GzDecoder::new(draft.bytes().as_slice()).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, "hello");
        encode(&mut draft, Coding::Truncated);
        assert!(GzDecoder::new(draft.bytes().as_slice()).read_to_string(&mut unpacked).is_err());
    }

    /// Both were read back by the reference decoders.
    #[test]
    fn stored_blocks_are_as_their_standards_say() {
        let mut zstd = draft();
        encode(&mut zstd, Coding::Zstd);
        assert_eq!(zstd.bytes(), b"\x28\xb5\x2f\xfd\x00\x38\x10\x00\x00he\x18\x00\x00llo\x01\x00\x00");
        let mut brotli = draft();
        encode(&mut brotli, Coding::Br);
        assert_eq!(brotli.bytes(), b"\x0c\x08\x00\x08he\x10\x00\x08llo\x03");
    }
}

//! Just enough of gzip (RFC 1952) and deflate (RFC 1951) to be honest, and to be a bomb.

const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// `data` in one stored block.
pub(crate) fn stored(data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap();
    let mut gzip = HEADER.to_vec();
    gzip.push(1);
    gzip.extend(length.to_le_bytes());
    gzip.extend((!length).to_le_bytes());
    gzip.extend(data);
    gzip.extend(crc32(data).to_le_bytes());
    gzip.extend(u32::from(length).to_le_bytes());
    gzip
}

/// About `size` times the letter "a" in 1/165 of its size: one letter, then nothing but "the
/// last letter 258 times", without an end.
pub(crate) fn bomb(size: usize) -> Vec<u8> {
    // A last block in fixed codes (1, 01), the letter (8 bits), then a length (8) and a distance (5).
    let mut bits: Vec<bool> = vec![true, true, false];
    bits.extend(code(0x30 + u16::from(b'a'), 8));
    let again: Vec<bool> = code(0b1100_0101, 8).chain(code(0, 5)).collect();
    for _ in 0..size / 258 {
        bits.extend(&again);
    }
    let bytes = bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit)));
    HEADER.into_iter().chain(bytes).collect()
}

/// A Huffman code, most significant bit first.
fn code(code: u16, length: u16) -> impl Iterator<Item = bool> {
    (0..length).rev().map(move |bit| code >> bit & 1 == 1)
}

fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

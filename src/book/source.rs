//! The lines of a file, numbered, in bounded memory.

use std::io::{self, BufRead, Chain, Cursor, Read};

use super::skipped::Reason;
use super::{Draft, MAX_RECORD};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What a form found in the file: a draft or what is wrong, and its first and last line.
pub(super) struct Found {
    pub(super) line: u64,
    pub(super) last_line: u64,
    pub(super) draft: Result<Draft, Reason>,
}

/// A file, line by line.
pub(super) struct Source<R> {
    input: Chain<Cursor<Vec<u8>>, R>,
    line: u64,
}

impl<R: BufRead> Source<R> {
    /// The file from its start; a byte order mark is taken away.
    pub(super) fn try_new(mut input: R) -> io::Result<Self> {
        let mut start = Vec::new();
        (&mut input).take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut start)?;
        if start == BYTE_ORDER_MARK {
            start.clear();
        }
        Ok(Self { input: Cursor::new(start).chain(input), line: 0 })
    }

    /// The number of the line that was taken last, from 1; also 1 before the first.
    pub(super) fn line(&self) -> u64 {
        self.line.max(1)
    }

    /// Gives the next line to `take`, its ending included, in as many pieces as it comes in. False
    /// at the end of the file. A line of any length needs no memory here.
    pub(super) fn take_line(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<bool> {
        let mut begun = false;
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                return Ok(begun);
            }
            if !begun {
                begun = true;
                self.line += 1;
            }
            let newline = buffer.iter().position(|byte| *byte == b'\n');
            let piece = newline.map_or(buffer, |newline| &buffer[..=newline]);
            take(piece);
            let length = piece.len();
            self.input.consume(length);
            if newline.is_some() {
                return Ok(true);
            }
        }
    }
}

/// The bytes of a record, as far as they may be kept.
#[derive(Default)]
pub(super) struct Bounded {
    bytes: Vec<u8>,
    over: bool,
}

impl Bounded {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.over = false;
    }

    pub(super) fn push(&mut self, piece: &[u8]) {
        let room = MAX_RECORD - self.bytes.len();
        self.over |= piece.len() > room;
        self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// Adds another; what that one lacks is lacking here.
    pub(super) fn append(&mut self, other: &Self) {
        self.push(&other.bytes);
        self.over |= other.over;
    }

    /// What was kept, without the last line ending.
    pub(super) fn kept(&self) -> &[u8] {
        without_ending(&self.bytes)
    }

    /// All of it, without the last line ending.
    pub(super) fn text(&self) -> Result<&str, Reason> {
        if self.over {
            return Err(Reason::TooLong);
        }
        str::from_utf8(self.kept()).map_err(|_| Reason::NotText)
    }
}

fn without_ending(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    /// The lines that come of these bytes, whatever pieces they come in.
    fn lines(bytes: &[u8], capacity: usize) -> Vec<(u64, Vec<u8>)> {
        let mut source = Source::try_new(BufReader::with_capacity(capacity, bytes)).unwrap();
        let mut lines = Vec::new();
        let mut line = Vec::new();
        while source.take_line(|piece| line.extend_from_slice(piece)).unwrap() {
            lines.push((source.line(), std::mem::take(&mut line)));
        }
        lines
    }

    #[test]
    fn a_byte_order_mark_counts_at_the_start_only() {
        assert_eq!(
            lines(b"\xef\xbb\xbfa\n\xef\xbb\xbfb", 1),
            [(1, b"a\n".to_vec()), (2, b"\xef\xbb\xbfb".to_vec())]
        );
        assert_eq!(lines(b"\xef\xbb", 8), [(1, b"\xef\xbb".to_vec())]);
        assert_eq!(lines(b"\xef\xbb\xbf", 8), []);
        assert_eq!(lines(b"", 8), []);
    }

    #[test]
    fn what_is_over_is_known_and_not_kept() {
        let mut bounded = Bounded::default();
        bounded.push(&vec![b'x'; MAX_RECORD - 1]);
        bounded.push(b"\n");
        assert_eq!(bounded.text().unwrap().len(), MAX_RECORD - 1, "just as long as it may be");
        bounded.push(b"y");
        assert!(matches!(bounded.text(), Err(Reason::TooLong)));
        assert_eq!(bounded.bytes.len(), MAX_RECORD);
        bounded.clear();
        assert_eq!(bounded.text().unwrap(), "");
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_the_pieces(
            bytes in prop::collection::vec(prop::sample::select(b"a\n\r\xef\xbb\xbf".to_vec()), 0..40),
            capacity in 1_usize..9,
        ) {
            let lines = lines(&bytes, capacity);
            let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
            let expected: Vec<_> = text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            prop_assert!(lines.iter().map(|(number, _)| *number).eq(1..=expected.len() as u64));
            prop_assert_eq!(lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>(), expected);
        }
    }
}

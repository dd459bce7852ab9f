//! An answer book: questions with answers that somebody has approved, in a file.
//!
//! Whoever has an FAQ need not wait for its questions to be asked: the book is read into the cache,
//! and the answers in it are served from the first caller on. A wrong answer in the cache is served
//! again and again, so what is not surely one question with its answer is passed over with a reason,
//! and the rest of the book is read: see [`Skipped`].
//!
//! The three forms hold the same; what one wrote, any reads back equal.
//!
//! | | CSV | JSONL | Markdown |
//! |---|---|---|---|
//! | a record | a row beneath the heading | an object, on one line | what follows a `## Question` |
//! | other wordings | `aliases`: `a\|b`, or a JSON array | `aliases`: an array | `Also: a`, a line for each |
//! | tags | `tags`: likewise | `tags`: an array | `Tags: a, b`, or a JSON array |
//! | time to live | `ttl`: `7d` | `ttl`: `"7d"` | `TTL: 7d` |
//! | pinned | `pinned`: `yes` or `no` | `pinned`: `true` or `false` | `Pinned: yes` |
//!
//! Question and answer are needed, the rest may be left out. Durations are the config's: `90m`,
//! `1h 30m`. What each form asks for besides is said in its module: `csv`, `jsonl` and `markdown`.
//!
//! Files are UTF-8, with a byte order mark or without; lines end with `\n` or `\r\n`. Reading holds
//! one record, of at most [`MAX_RECORD`], and some 50 bytes for each question seen.

mod cell;
mod csv;
mod form;
mod jsonl;
mod markdown;
mod read;
mod record;
mod resume;
mod skipped;
mod source;
mod write;

pub use csv::HeadingError;
pub use form::{Form, UnknownForm};
pub use read::{Numbered, OpenError, OpenProblem, Reader};
pub use record::{Draft, InvalidRecord, Record};
pub use resume::{Resume, Standing};
pub use skipped::{Reason, Skipped};
pub use write::{Unwritable, WriteError, Writer};

/// The longest record there may be in a file, in bytes, line endings included.
pub const MAX_RECORD: usize = 1024 * 1024;

#[cfg(test)]
mod tests;

//! Markdown: a document with a heading for each question.
//!
//! ~~~markdown
//! # Our FAQ
//!
//! ## How do I reset my password?
//! Also: I forgot my password
//! Tags: account, login
//! TTL: 30d
//!
//! Choose *Forgot it?* and follow the letter.
//! ~~~
//!
//! A record begins with a line `## Question` in the first column, outside a code fence, and ends
//! before the next. What stands before the first is passed over. `Also:`, `Tags:`, `TTL:` and
//! `Pinned:` are metadata directly beneath the heading, in any order and any case; the first other
//! line ends them. The rest is the answer, as written, with three exceptions:
//!
//! - Lines `# Title` with nothing but empty lines behind them are a part's title, no answer.
//! - A line outside a fence that begins with a backslash and `# ` or `## ` loses the backslash. That
//!   is how an answer has such a line: `\## Not a question`. One that is to keep a backslash has two.
//! - An answer whose first line looks like metadata must have real metadata above it and an empty
//!   line between, `Pinned: no` if there is nothing else to say. Without, it is passed over:
//!   somebody, or a formatter, has put an empty line beneath the heading.
//!
//! The writer keeps to these rules by itself. It refuses what they cannot express: a question or an
//! alias of several lines, and an answer with a code fence that is not closed or seems not to be.
//! Fences are `CommonMark`'s.

mod document;
mod fence;
mod lines;
mod parse;
mod render;

pub(super) use document::Sections;
pub(super) use render::write;

//! From OpenAI's responses to its chat completions, for a caller of the first whose provider speaks
//! only the second: requests there, answers back.
//!
//! The other way is not needed: who speaks responses speaks chat completions too.

pub mod reply;
pub mod request;
pub mod stream;

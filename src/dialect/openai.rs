//! OpenAI's chat completions.
//!
//! Requests are read in [`request`], answers in [`reply`].

pub mod reply;
pub mod request;

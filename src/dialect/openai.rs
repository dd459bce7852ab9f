//! OpenAI's chat completions.
//!
//! Requests are read in [`request`], answers in [`reply`].

pub mod embeddings;
pub mod reply;
pub mod request;

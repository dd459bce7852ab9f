//! Anthropic's messages.
//!
//! Requests are read in [`request`], answers in [`reply`]; errors are written in [`error`].

pub mod error;
pub mod reply;
pub mod request;

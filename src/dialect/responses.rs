//! OpenAI's responses.
//!
//! Requests are read in [`request`], answers in [`reply`]; errors are written in [`error`].

pub mod error;
pub mod reply;
pub mod request;

/// Begins the ids of answers that were given here. No provider knows them, so that a request which
/// goes on from one of them can be told what to do.
pub const OUR_IDS: &str = "resp_refrain_";

//! The service as a whole, with fakes at its edges and no sockets; the contract of its stores; and
//! the real encoders, where their files are.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod support;

mod admin;
mod book;
mod conversations;
mod embedder;
mod errors;
mod examples;
mod feedback;
mod flights;
mod freshness;
mod hits;
mod ladder;
mod observability_files;
mod operators;
mod shadow;
mod store;
mod upstream;

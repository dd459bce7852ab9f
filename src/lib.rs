//! Refrain: a semantic cache in front of LLM APIs.

pub mod cache;
pub mod chat;
pub mod clock;
pub mod config;
pub mod dialect;
pub mod metrics;
pub mod server;
pub mod upstream;

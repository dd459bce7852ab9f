//! Callers and operators over HTTP.

pub mod listener;

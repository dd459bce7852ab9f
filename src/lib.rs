//! Refrain: a semantic cache in front of LLM APIs.
//!
//! A refrain is the part of a song that comes again; to refrain is to hold back. It answers
//! again what was answered before, and holds back from asking twice. Two promises rank above
//! all: **a hit is right**, so every doubt is a miss; and **the caller gets an answer**, or one
//! honest error, so a failing embedder or store is never the caller's problem.
//!
//! # The parts
//!
//! - [`cache`] holds answers: [`cache::key`] says when two requests are the same,
//!   [`cache::exact`] keeps entries in memory, [`cache::semantic`] finds the same question in
//!   other words and [`cache::verify`] makes sure that it is. [`cache::embedder`] and
//!   [`cache::store`] are the ports to the model and to Qdrant.
//! - [`upstream`] asks the providers: [`upstream::Upstream::send`].
//! - [`gateway`] joins the two: [`gateway::Gateway::answer`] is the story of one request.
//! - [`chat`] is the canonical form of a conversation, [`dialect`] its wire forms.
//! - [`server`] is callers and operators over HTTP; [`app`] puts everything together, and is
//!   the only place that names adapters; [`cli`] is the command line.
//! - [`eval`], [`chaos`] and [`drill`] try the whole from outside: hits on real questions, a
//!   provider that fails on purpose, and a rehearsed bad day.
//! - [`book`] reads and writes files of approved answers, for the cache to begin with.
//! - [`config`], [`metrics`], [`clock`] and [`logging`] serve all of them.
//!
//! Imports point one way: `cli` → `app` → everything; `server` → `gateway` → `cache` and
//! `upstream`, which never import each other. Types of a vendor stay in the adapter that owns
//! them.
//!
//! # One request, walked through
//!
//! 1. [`server::listener`] reads the request under its timers, [`server::body`] its body.
//! 2. The handler asks [`server::auth`] who calls, reads the body in its dialect into a
//!    [`chat::ChatRequest`] and the headers into [`gateway::Directives`].
//! 3. [`gateway::Gateway::answer`] makes the key. The entry is in memory and fresh: an exact hit.
//! 4. Otherwise the call joins the flight that fetches the same answer, or starts one.
//! 5. The flight looks into the store by key, then embeds the question and looks for the same
//!    one in other words, in the same scope: a semantic hit.
//! 6. Otherwise [`upstream::Upstream::send`] asks the model's provider under its four timers.
//! 7. Events are passed on as they come; once the answer is complete, and if it may be stored,
//!    it is in memory at once and in the store soon, off the caller's path.
//! 8. The handler renders the answer as it was asked for, and says in `Cache-Status` whence.

pub mod app;
pub mod book;
pub mod cache;
pub mod chaos;
pub mod chat;
pub mod cli;
pub mod clock;
pub mod config;
pub mod dialect;
pub mod drill;
mod durable;
pub mod eval;
pub mod gateway;
pub mod logging;
pub mod metrics;
pub mod server;
pub mod switches;
pub mod upstream;

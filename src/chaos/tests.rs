//! What each mode puts on the wire, seen by a client that knows no HTTP but what is needed.

mod answers;
mod breaks;
mod bytes;
mod client;
mod errors;
mod record;
mod times;

use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use client::{Client, Response};

const OPENAI: &str = "/v1/chat/completions";
const ANTHROPIC: &str = "/v1/messages";

async fn start(script: Script) -> Chaos {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Chaos::start(listener, script).unwrap()
}

async fn playing(rules: &str) -> Chaos {
    start(script(rules)).await
}

fn script(rules: &str) -> Script {
    rules.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn question(stream: bool) -> Value {
    json!({
        "model": "big-1", "stream": stream, "stream_options": { "include_usage": true },
        "messages": [{ "role": "user", "content": "How are you today?" }],
    })
}

/// The answer to one question in a mode, read until the connection ends.
async fn answer(rules: &str, path: &str, stream: bool) -> Response {
    let chaos = playing(rules).await;
    let mut client = Client::connect(&chaos).await;
    client.ask_last(path, &question(stream)).await;
    client.rest().await
}

async fn whole(rules: &str) -> Response {
    answer(rules, OPENAI, false).await
}

async fn stream(rules: &str) -> Response {
    answer(rules, OPENAI, true).await
}

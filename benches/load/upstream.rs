//! A provider that answers at once, so that a miss shows what Refrain adds to one.

use std::net::{SocketAddr, TcpListener};

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use axum::serve::ListenerExt;
use serde_json::json;

use crate::Failure;

/// Starts the provider in a thread of its own.
pub(crate) fn start() -> Result<SocketAddr, Failure> {
    let socket = TcpListener::bind("127.0.0.1:0")?;
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || runtime.block_on(serve(socket)).expect("a bound socket serves"));
    Ok(address)
}

async fn serve(socket: TcpListener) -> std::io::Result<()> {
    let text =
        "Open the login page, choose Forgot password and follow the link that you get by mail. ".repeat(6);
    let answer = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_800_000_000, "model": "gpt-4o-mini-2024-07-18",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": text, "refusal": null },
            "logprobs": null, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 40, "completion_tokens": 110, "total_tokens": 150 },
        "system_fingerprint": "fp_1"
    })
    .to_string();
    let complete = move || async move { ([(CONTENT_TYPE, "application/json")], answer) };
    let app = Router::new().route("/v1/chat/completions", post(complete));
    let socket = tokio::net::TcpListener::from_std(socket)?.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(socket, app).await
}

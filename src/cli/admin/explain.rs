//! `refrain explain`: hit or miss, and why.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::remote::Remote;
use crate::cli::{Failure, say};

/// `refrain explain`
#[derive(Debug, Args)]
pub(in crate::cli) struct ExplainArgs {
    #[command(flatten)]
    remote: Remote,
    /// The question.
    #[arg(required_unless_present = "body")]
    question: Option<String>,
    /// The model it is asked of.
    #[arg(long, default_value = "default")]
    model: String,
    /// A file with a whole chat request instead of a question.
    #[arg(long, value_name = "FILE", conflicts_with = "question")]
    body: Option<PathBuf>,
    /// How that request is written: as it is sent to /v1/chat/completions, /v1/messages or
    /// /v1/responses.
    #[arg(long, default_value = "chat", value_parser = ["chat", "messages", "responses"])]
    api: String,
    /// The namespace it is asked in.
    #[arg(long)]
    namespace: Option<String>,
    /// The tenant that asks, as entries show it.
    #[arg(long)]
    tenant: Option<String>,
    /// Print the JSON as it is.
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) async fn explain(args: ExplainArgs) -> Result<(), Failure> {
    let body = match &args.body {
        Some(path) => {
            let text = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))?
        }
        None => json!({ "model": args.model, "messages": [{ "role": "user", "content": args.question }] }),
    };
    let headers: Vec<(&str, &str)> =
        [("x-refrain-namespace", &args.namespace), ("x-refrain-tenant", &args.tenant)]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_deref()?)))
            .collect();
    let explained = args.remote.post(&format!("/admin/explain?api={}", args.api), &headers, &body).await?;
    if args.json {
        say(&serde_json::to_string_pretty(&explained)?);
        return Ok(());
    }
    let text = |key: &str| explained[key].as_str().unwrap_or("-").to_owned();
    say(&format!("{}: {}", text("outcome"), text("why")));
    say(&format!("namespace {}  tenant {}  epoch {}", text("namespace"), text("tenant"), explained["epoch"]));
    say(&format!("scope     {}\nid        {}", text("scope"), text("id")));
    for candidate in explained["candidates"].as_array().into_iter().flatten() {
        say(&format!(
            "  {:.4}  {}  {:<12} {}",
            candidate["similarity"].as_f64().unwrap_or(0.0),
            candidate["probability"].as_f64().map_or("     -".to_owned(), |p| format!("{p:.4}")),
            candidate["verdict"].as_str().unwrap_or("-"),
            candidate["question"].as_str().unwrap_or("-"),
        ));
    }
    Ok(())
}

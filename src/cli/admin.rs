//! `refrain stats`, `evict` and `explain`: the admin API from the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use super::{Failure, say};
use crate::cache::key::ExactKey;
use crate::server::EvictRequest;

/// Where the admin API is.
#[derive(Debug, Args)]
struct Remote {
    /// The admin listener.
    #[arg(long, value_name = "URL", env = "REFRAIN_ADMIN_URL", default_value = "http://127.0.0.1:8081")]
    admin: String,
    /// The admin token.
    #[arg(long, value_name = "TOKEN", env = "REFRAIN_ADMIN_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

impl Remote {
    async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.send(client()?.get(self.url(path))).await
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Result<Value, Failure> {
        let mut request = client()?.post(self.url(path)).header(CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body.to_string())).await
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.admin.trim_end_matches('/'))
    }

    async fn send(&self, mut request: RequestBuilder) -> Result<Value, Failure> {
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let reply = request.send().await.map_err(|_| {
            format!("no Refrain answers at {}: is it running, and is --admin right?", self.admin)
        })?;
        let status = reply.status();
        let body = reply.bytes().await?;
        let value: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if status.is_success() {
            return Ok(value);
        }
        let message = value["error"]["message"].as_str().unwrap_or("no reason given");
        Err(format!("{} answered {}: {message}", self.admin, status.as_u16()).into())
    }
}

fn client() -> Result<Client, Failure> {
    // The first to install one wins; all of ours are the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(Client::builder().no_proxy().timeout(Duration::from_mins(1)).build()?)
}

/// `refrain stats`
#[derive(Debug, Args)]
pub(super) struct StatsArgs {
    #[command(flatten)]
    remote: Remote,
    /// Only the last 15m, 1h, … (up to 24h).
    #[arg(long)]
    since: Option<String>,
    /// Print the JSON as it is.
    #[arg(long)]
    json: bool,
}

pub(super) async fn stats(args: &StatsArgs) -> Result<(), Failure> {
    let path = match &args.since {
        Some(since) => format!("/stats?since={}", percent_encoded(since)),
        None => "/stats".to_owned(),
    };
    let stats = args.remote.get(&path).await?;
    if args.json {
        say(&serde_json::to_string_pretty(&stats)?);
        return Ok(());
    }
    row(
        "namespace",
        &["requests", "exact", "semantic", "misses", "hit rate", "tokens saved", "USD saved"]
            .map(str::to_owned),
    );
    let counts = |counts: &Value| {
        let number = |key: &str| counts[key].as_u64().unwrap_or(0).to_string();
        [
            number("requests"),
            number("exact_hits"),
            number("semantic_hits"),
            number("misses"),
            format!("{:.1} %", counts["hit_rate"].as_f64().unwrap_or(0.0) * 100.0),
            counts["tokens_saved"]["total"].as_u64().unwrap_or(0).to_string(),
            format!("{:.2}", counts["money_saved_usd"].as_f64().unwrap_or(0.0)),
        ]
    };
    for (name, namespace) in stats["namespaces"].as_object().into_iter().flatten() {
        row(name, &counts(namespace));
    }
    row("total", &counts(&stats["totals"]));
    say("");
    for (source, latency) in stats["latency"].as_object().into_iter().flatten() {
        let millis =
            |key: &str| latency[key].as_f64().map_or("-".to_owned(), |millis| format!("{millis:.2}"));
        say(&format!(
            "{source:<16} p50 {:>8} ms   p95 {:>8} ms   p99 {:>8} ms",
            millis("p50_ms"),
            millis("p95_ms"),
            millis("p99_ms")
        ));
    }
    Ok(())
}

fn row(name: &str, cells: &[String; 7]) {
    let cells = cells.each_ref().map(|cell| format!("{cell:>12}")).join(" ");
    say(&format!("{name:<20} {cells}"));
}

fn percent_encoded(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes()
        .map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// `refrain evict`
#[derive(Debug, Args)]
#[group(id = "what", required = true, multiple = true)]
pub(super) struct EvictArgs {
    #[command(flatten)]
    remote: Remote,
    /// Answers of this namespace.
    #[arg(long, group = "what")]
    namespace: Option<String>,
    /// Answers with this freshness tag.
    #[arg(long, group = "what")]
    tag: Option<String>,
    /// The answer with this id.
    #[arg(long, group = "what")]
    id: Option<uuid::Uuid>,
    /// Answers that were asked of this model.
    #[arg(long, group = "what")]
    model: Option<String>,
    /// Answers older than this, such as 7d.
    #[arg(long, group = "what", value_parser = humantime::parse_duration)]
    older_than: Option<Duration>,
    /// Answers to questions similar to this one.
    #[arg(long, group = "what", requires = "min_similarity")]
    similar_to: Option<String>,
    /// The least similarity for --similar-to, 0 to 1.
    #[arg(long)]
    min_similarity: Option<f64>,
    /// Everything there is.
    #[arg(long, group = "what")]
    all: bool,
    /// Only count what would go.
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn evict(args: EvictArgs) -> Result<(), Failure> {
    let body = EvictRequest {
        namespace: args.namespace,
        tag: args.tag,
        id: args.id.map(ExactKey::from),
        model: args.model,
        older_than: args.older_than,
        similar_to: args.similar_to,
        min_similarity: args.min_similarity,
        all: args.all,
        dry_run: args.dry_run,
    };
    let evicted = args.remote.post("/admin/evict", &[], &serde_json::to_value(&body)?).await?;
    let verb = if args.dry_run { "would go" } else { "went" };
    say(&format!("{} answers {verb} from memory, {} from the store", evicted["exact"], evicted["store"]));
    if evicted["more"] == true {
        say("There may be more that are similar: they are taken a thousand at a time; run it again.");
    }
    Ok(())
}

/// `refrain explain`
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
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

pub(super) async fn explain(args: ExplainArgs) -> Result<(), Failure> {
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
    let explained = args.remote.post("/admin/explain", &headers, &body).await?;
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
            "  {:.4}  {:<12} {}",
            candidate["similarity"].as_f64().unwrap_or(0.0),
            candidate["verdict"].as_str().unwrap_or("-"),
            candidate["question"].as_str().unwrap_or("-"),
        ));
    }
    Ok(())
}

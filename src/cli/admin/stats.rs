//! `refrain stats`: what the cache did, or how the providers stand.

use clap::Args;
use serde_json::Value;

use super::providers;
use super::remote::{Remote, percent_encoded};
use crate::cli::{Failure, say};

/// `refrain stats`
#[derive(Debug, Args)]
pub(in crate::cli) struct StatsArgs {
    #[command(flatten)]
    remote: Remote,
    /// Only the last 15m, 1h, … (up to 24h).
    #[arg(long)]
    since: Option<String>,
    /// How the providers stand instead: breakers, limits, keys, errors, times and alerts.
    #[arg(long, conflicts_with = "since")]
    providers: bool,
    /// Print the JSON as it is.
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) async fn stats(args: &StatsArgs) -> Result<(), Failure> {
    if args.providers {
        return providers::show(&args.remote, args.json).await;
    }
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

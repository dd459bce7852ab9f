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
    for (name, namespace) in stats["namespaces"].as_object().into_iter().flatten() {
        if let Some(measured) = measured(name, namespace) {
            say(&measured);
        }
    }
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

/// What is known of a namespace's hits in other words by comparing answers, if that is done.
fn measured(name: &str, counts: &Value) -> Option<String> {
    let shadow = counts["shadow_hits"].as_u64().unwrap_or(0);
    let watched = format!("{shadow} hits in other words were only watched");
    let percent = |share: &Value| share.as_f64().unwrap_or(0.0) * 100.0;
    let precision = &counts["precision"];
    let (low, high) = (&precision["interval"][0], &precision["interval"][1]);
    let right = format!(
        "of those compared at least {:.1} % were right ({:.1} to {:.1})",
        percent(&precision["share"]),
        percent(low),
        percent(high)
    );
    match (shadow, precision.is_null()) {
        (0, true) => None,
        (0, false) => Some(format!("{name}: {right}")),
        (_, true) => Some(format!("{name}: {watched}")),
        (_, false) => Some(format!("{name}: {watched}; {right}")),
    }
}

fn row(name: &str, cells: &[String; 7]) {
    let cells = cells.each_ref().map(|cell| format!("{cell:>12}")).join(" ");
    say(&format!("{name:<20} {cells}"));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_measured_is_one_sentence() {
        let precision = json!({ "share": 0.9, "interval": [0.6, 0.98] });
        for (counts, expected) in [
            (json!({ "shadow_hits": 0, "precision": null }), None),
            (
                json!({ "shadow_hits": 3, "precision": null }),
                Some("hr: 3 hits in other words were only watched"),
            ),
            (
                json!({ "shadow_hits": 0, "precision": precision }),
                Some("hr: of those compared at least 90.0 % were right (60.0 to 98.0)"),
            ),
            (
                json!({ "shadow_hits": 3, "precision": precision }),
                Some(
                    "hr: 3 hits in other words were only watched; of those compared at least 90.0 % were right \
                     (60.0 to 98.0)",
                ),
            ),
        ] {
            assert_eq!(measured("hr", &counts).as_deref(), expected);
        }
    }
}

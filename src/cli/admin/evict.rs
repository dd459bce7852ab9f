//! `refrain evict`: take answers back.

use std::time::Duration;

use clap::Args;

use super::remote::Remote;
use crate::cache::key::ExactKey;
use crate::cli::{Failure, say};
use crate::server::EvictRequest;

/// `refrain evict`
#[derive(Debug, Args)]
#[group(id = "what", required = true, multiple = true)]
pub(in crate::cli) struct EvictArgs {
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

pub(in crate::cli) async fn evict(args: EvictArgs) -> Result<(), Failure> {
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

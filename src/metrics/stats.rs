//! The statistics as `GET /stats` gives them: plain data, made from the counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::counts::Counts;
use super::interval::{Interval, wilson};
use super::latency::{Quantiles, seconds};

/// What happened in a window, or since the start, and how things stand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// When the service started; RFC 3339.
    pub started_at: String,
    /// When this was asked; RFC 3339.
    pub now: String,
    /// Where the window begins, RFC 3339: at the whole minute at or before the moment asked for, at
    /// the ten minutes at or before it when it is more than an hour back, at most 24 hours back, and
    /// never before the start.
    pub since: String,
    /// From there to now.
    pub window_seconds: u64,
    /// All namespaces together, within the window.
    pub totals: Summary,
    /// Each namespace, within the window.
    pub namespaces: BTreeMap<String, Summary>,
    /// What the layers hold now.
    pub layers: Layers,
    /// How busy the service is now.
    pub load: Load,
    /// Within the window, across namespaces: whole requests by source, and `embed` and `search`. Within
    /// 1 % when the window is the whole life, else within 7 %.
    pub latency: BTreeMap<String, Quantiles>,
    /// Each provider, within the window.
    pub upstream: BTreeMap<String, ProviderStats>,
    /// Models whose tokens count and whose money does not, for want of a price; since the start.
    pub unpriced_models: Vec<String>,
}

/// What happened to a set of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Requests that have ended: hits, coalesced, misses, bypasses, degraded and errors.
    pub requests: u64,
    /// Answered by the exact layer.
    pub exact_hits: u64,
    /// Answered by the semantic layer.
    pub semantic_hits: u64,
    /// Followed the answer to another caller's identical request.
    pub coalesced: u64,
    /// Went upstream because no layer had an answer.
    pub misses: u64,
    /// Went past the whole cache, by reason.
    pub bypasses: BTreeMap<String, u64>,
    /// Went past the semantic layer alone, by reason. They are counted above as what they ended as.
    pub semantic_bypasses: BTreeMap<String, u64>,
    /// Got something in place of the answer that no provider could give: `stale`, `related` or `rules`.
    pub degraded: BTreeMap<String, u64>,
    /// Ended in an error, by class.
    pub errors: BTreeMap<String, u64>,
    /// Semantic candidates that verification refused, by reason.
    pub refusals: BTreeMap<String, u64>,
    /// Hits in other words that were not served, since their namespace only watches.
    pub shadow_hits: u64,
    /// Hits whose answers were compared with new ones: `agreed`, `differed`, `undecided`; and `skipped`
    /// or `failed`.
    pub samples: BTreeMap<String, u64>,
    /// Of the hits compared, the share that agreed, at least; none compared, none known.
    pub precision: Option<Precision>,
    /// What people said of answers: `right` and `wrong`, and the same of hits in other words.
    pub verdicts: BTreeMap<String, u64>,
    /// Answers that were not written, by reason.
    pub write_skips: BTreeMap<String, u64>,
    /// Answers written.
    pub stored: u64,
    /// Entries removed on request, by layer.
    pub evicted: BTreeMap<String, u64>,
    /// `(exact_hits + semantic_hits) / (requests - bypasses - errors)`: of the requests that the cache
    /// could answer, the share that it did. Coalesced requests are in the denominator alone. None
    /// without such requests.
    pub hit_rate: Option<f64>,
    /// `(exact_hits + semantic_hits) / requests`; none without requests.
    pub hit_rate_all: Option<f64>,
    /// Tokens that hits and coalesced requests did not use.
    pub tokens_saved: Tokens,
    /// What those tokens would have cost, in US dollars, where the model has a price.
    pub money_saved_usd: f64,
    /// How much longer a miss would have taken, by the average miss before each hit.
    pub seconds_saved: f64,
    /// Tokens used upstream.
    pub tokens_spent: Tokens,
    /// What those tokens cost, in US dollars, where the model has a price.
    pub money_spent_usd: f64,
}

/// Numbers of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Of prompts.
    pub prompt: u64,
    /// Of answers.
    pub completion: u64,
    /// Both.
    pub total: u64,
    /// How many of the total are an estimate, since the provider gave no numbers.
    pub estimated: u64,
}

/// What the layers hold, as the caller of [`Metrics::snapshot`](super::Metrics::snapshot) found it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers {
    /// The exact layer.
    pub exact: Layer,
    /// The vector store; none when it does not answer.
    pub semantic: Option<Layer>,
    /// The memo of embeddings.
    pub memo: Layer,
}

/// What one layer holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// How many entries.
    pub entries: u64,
    /// How much memory or disk; none when it is not known.
    pub bytes: Option<u64>,
}

/// How busy the service is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Requests under way.
    pub in_flight_requests: u64,
    /// Connections of callers.
    pub open_connections: u64,
    /// Answers waiting to be written.
    pub write_queue_depth: u64,
}

/// What happened at one provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderStats {
    /// Answered calls.
    pub calls: u64,
    /// Answered calls by model; beyond 64 models the rest under `other`.
    pub models: BTreeMap<String, u64>,
    /// Failed calls by class.
    pub errors: BTreeMap<String, u64>,
    /// From the call to the first content.
    pub first_content: Quantiles,
    /// From the call to the end of the answer.
    pub total: Quantiles,
}

/// A share, and where it lies with 95 % confidence (Wilson's score interval).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// The share seen.
    pub share: f64,
    /// Low and high.
    pub interval: Interval,
}

impl Precision {
    fn of(samples: &BTreeMap<String, u64>) -> Option<Self> {
        let count = |outcome: &str| {
            u32::try_from(samples.get(outcome).copied().unwrap_or_default()).unwrap_or(u32::MAX)
        };
        let (agreed, differed) = (count("agreed"), count("differed"));
        let of = agreed.saturating_add(differed);
        (of > 0).then(|| Self { share: f64::from(agreed) / f64::from(of), interval: wilson(agreed, of) })
    }
}

impl Summary {
    pub(super) fn of(counts: &Counts) -> Self {
        Self {
            requests: counts.requests(),
            exact_hits: counts.exact_hits,
            semantic_hits: counts.semantic_hits,
            coalesced: counts.coalesced,
            misses: counts.misses,
            bypasses: counts.bypasses.to_map(),
            semantic_bypasses: counts.semantic_bypasses.to_map(),
            degraded: counts.degraded.to_map(),
            errors: counts.errors.to_map(),
            refusals: counts.refusals.to_map(),
            shadow_hits: counts.shadow_hits,
            precision: Precision::of(&counts.samples.to_map()),
            samples: counts.samples.to_map(),
            verdicts: counts.verdicts.to_map(),
            write_skips: counts.write_skips.to_map(),
            stored: counts.stored,
            evicted: counts.evictions.to_map(),
            hit_rate: rate(counts.hits(), counts.cacheable()),
            hit_rate_all: rate(counts.hits(), counts.requests()),
            tokens_saved: Tokens::of(
                counts.prompt_tokens_saved,
                counts.completion_tokens_saved,
                counts.estimated_tokens_saved,
            ),
            money_saved_usd: dollars(counts.nanodollars_saved),
            seconds_saved: seconds(counts.micros_saved),
            tokens_spent: Tokens::of(
                counts.prompt_tokens_spent,
                counts.completion_tokens_spent,
                counts.estimated_tokens_spent,
            ),
            money_spent_usd: dollars(counts.nanodollars_spent),
        }
    }
}

impl Tokens {
    fn of(prompt: u64, completion: u64, estimated: u64) -> Self {
        Self { prompt, completion, total: prompt + completion, estimated }
    }
}

/// `part / whole` to four decimals; none of nothing.
#[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
fn rate(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| (part as f64 / whole as f64 * 1e4).round() / 1e4)
}

/// Billionths of a dollar in dollars.
#[expect(clippy::cast_precision_loss, reason = "exact up to nine million dollars")]
pub(super) fn dollars(nanodollars: u64) -> f64 {
    nanodollars as f64 / 1e9
}

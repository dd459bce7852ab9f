//! The second layer: the entry of a question that was asked in other words.
//!
//! Embed, search in the same scope, verify. Whatever fails on the way is a miss with a reason:
//! a caller never waits for this layer longer than its timeouts, and never sees its errors.

mod time_bound;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Entry;
use super::embedder::{EmbedError, Embedding, Encoders};
use super::key::Scope;
use super::store::{Candidate, Store, StoreError};
use super::verify::{Policy, Refusal, Verdict, verify};
use crate::config::Similarity;

pub use time_bound::is_time_bound;

/// Encoders and store, joined.
pub struct SemanticCache {
    encoders: Arc<Encoders>,
    store: Arc<dyn Store>,
    candidates: usize,
}

/// What a lookup found, and what it took.
#[derive(Debug, Default)]
pub struct Lookup {
    /// What was found.
    pub found: Found,
    /// The question's vector, for writing the answer back.
    pub embedding: Option<Embedding>,
    /// How long embedding took.
    pub embed_time: Option<Duration>,
    /// How long the search took.
    pub search_time: Option<Duration>,
}

/// The outcome of a lookup.
#[derive(Debug)]
pub enum Found {
    /// The same question.
    Hit {
        /// Its entry.
        entry: Arc<Entry>,
        /// Cosine similarity to the question asked.
        similarity: f32,
    },
    /// No stored question is the same. The nearest one that was refused, if any.
    Miss(Option<(f32, Refusal)>),
    /// The layer was passed by, for this reason.
    Bypassed(&'static str),
}

impl Default for Found {
    fn default() -> Self {
        Self::Miss(None)
    }
}

/// A candidate with the verdict on it, for explaining.
#[derive(Debug)]
pub struct Judged {
    /// The stored entry and its similarity.
    pub candidate: Candidate,
    /// What verification says of it.
    pub verdict: Verdict,
    /// Whether it may be served: in time, and not purged.
    pub servable: bool,
}

/// Thresholds by encoder, where a namespace's differ from the encoder's own.
pub type Thresholds = BTreeMap<String, Similarity>;

/// Whether an entry may be served to the caller, whatever its question.
pub type Serves<'a> = dyn Fn(&Entry) -> bool + Send + Sync + 'a;

impl SemanticCache {
    /// A layer that looks at `candidates` stored questions for each one asked.
    pub fn new(encoders: Arc<Encoders>, store: Arc<dyn Store>, candidates: usize) -> Self {
        Self { encoders, store, candidates }
    }

    /// The encoders, for embedding what is written back.
    pub fn encoders(&self) -> &Encoders {
        &self.encoders
    }

    /// Looks for the entry of the same question in `scope` that `serves` lets pass.
    pub async fn lookup(
        &self,
        scope: &Scope,
        question: &str,
        thresholds: &Thresholds,
        serves: &Serves<'_>,
    ) -> Lookup {
        let begun = Instant::now();
        let embedding = match self.encoders.embed(question).await {
            Ok(embedding) => embedding,
            Err(error) => {
                if let EmbedError::Failed(reason) = &error {
                    tracing::warn!(%reason, "embedding failed; the question goes past the semantic layer");
                }
                return Lookup { found: Found::Bypassed(error.label()), ..Lookup::default() };
            }
        };
        let embed_time = Some(begun.elapsed());
        let begun = Instant::now();
        let found = match self.judge(scope, question, &embedding, thresholds, serves).await {
            Ok(judged) => choose(judged),
            Err(error) => {
                tracing::warn!(%error, "search failed; the question goes past the semantic layer");
                Found::Bypassed(bypass_label(&error))
            }
        };
        Lookup { found, embedding: Some(embedding), embed_time, search_time: Some(begun.elapsed()) }
    }

    /// The nearest stored questions of `scope` and what verification says of each.
    pub async fn judge(
        &self,
        scope: &Scope,
        question: &str,
        embedding: &Embedding,
        thresholds: &Thresholds,
        serves: &Serves<'_>,
    ) -> Result<Vec<Judged>, StoreError> {
        let policy = Policy { threshold: self.threshold(embedding, thresholds) };
        let candidates = self.store.search(scope, embedding, self.candidates).await?;
        let judged = candidates.into_iter().map(|candidate| Judged {
            verdict: verify(question, &candidate, policy),
            servable: serves(&candidate.entry),
            candidate,
        });
        Ok(judged.collect())
    }

    /// The similarity from which on a question may be the same: the namespace's, else the
    /// encoder's own; a vector of an encoder that is not configured matches nothing.
    pub fn threshold(&self, embedding: &Embedding, thresholds: &Thresholds) -> f32 {
        let Some(encoder) = self.encoders.of(&embedding.embedder) else { return f32::INFINITY };
        thresholds.get(encoder.name()).map_or(encoder.threshold(), |threshold| threshold.get())
    }
}

fn choose(judged: Vec<Judged>) -> Found {
    let mut nearest_refused = None;
    for Judged { candidate, verdict, servable } in judged {
        match verdict {
            Verdict::Same if servable => {
                let similarity = candidate.similarity;
                return Found::Hit { entry: Arc::new(candidate.entry), similarity };
            }
            Verdict::Same => {}
            Verdict::Different(refusal) => {
                nearest_refused.get_or_insert((candidate.similarity, refusal));
            }
        }
    }
    Found::Miss(nearest_refused)
}

fn bypass_label(error: &StoreError) -> &'static str {
    match error {
        StoreError::TimedOut => "store_timeout",
        StoreError::Unavailable(_) | StoreError::Failed(_) | StoreError::Unusable(_) => "store_failed",
    }
}

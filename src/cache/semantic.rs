//! The second layer: the entry of a question that was asked in other words.
//!
//! Embed, search in the same scope, verify. Whatever fails on the way is a miss with a reason:
//! a caller never waits for this layer longer than its timeouts, and never sees its errors.

mod time_bound;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Entry;
use super::embedder::{EmbedError, Embedding, Encoders};
use super::key::Scope;
use super::store::{Candidate, Store, StoreError};
use super::verdicts::Verdicts;
use super::verify::{Judgement, Least, Near, Refusal, Verdict, Verifier, verify};
use crate::config::{Matching, Policy};

pub use time_bound::is_time_bound;

/// Encoders and store, joined.
pub struct SemanticCache {
    encoders: Arc<Encoders>,
    store: Arc<dyn Store>,
    candidates: usize,
    verifier: Verifier,
    verdicts: Verdicts,
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
        /// That one answer serves both, by the encoder's head, where it has one.
        probability: Option<f32>,
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
    /// That one answer serves both questions, by the encoder's head; `None` when it was not asked.
    pub probability: Option<f32>,
    /// Whether it may be served: in time, and not purged.
    pub servable: bool,
}

/// A question, and where and how it is looked for.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// Where.
    pub scope: &'a Scope,
    /// Its text.
    pub question: &'a str,
    /// Its vector.
    pub embedding: &'a Embedding,
    /// What the namespace asks of a match.
    pub matching: &'a Matching,
}

/// Whether an entry may be served to the caller, whatever its question.
pub type Serves<'a> = dyn Fn(&Entry) -> bool + Send + Sync + 'a;

impl SemanticCache {
    /// A layer that looks at `candidates` stored questions for each one asked.
    pub fn new(encoders: Arc<Encoders>, store: Arc<dyn Store>, candidates: usize) -> Self {
        let verifier = Verifier::new(Arc::clone(&encoders));
        let verdicts = Verdicts::new(Arc::clone(&store));
        Self { encoders, store, candidates, verifier, verdicts }
    }

    /// What judges candidates.
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// What people said of pairs.
    pub fn verdicts(&self) -> &Verdicts {
        &self.verdicts
    }

    /// The encoders, for embedding what is written back.
    pub fn encoders(&self) -> &Encoders {
        &self.encoders
    }

    /// Whether two answers say the same, by all that is asked of two questions but the learned judge;
    /// `None` when they cannot be compared.
    pub async fn agree(&self, one: &str, other: &str) -> Option<bool> {
        if one.split_whitespace().eq(other.split_whitespace()) {
            return Some(true);
        }
        let (a, b) = (self.encoders.embed(one).await.ok()?, self.encoders.embed(other).await.ok()?);
        if a.embedder != b.embedder {
            return Some(false);
        }
        let similarity = a.vector.iter().zip(&*b.vector).map(|(a, b)| a * b).sum();
        let least = self.encoders.of(&a.embedder)?.threshold(Policy::Similarity);
        let least = Least { similarity: least, is_judged: false };
        Some(verify(one, other, similarity, least) == Verdict::Same)
    }

    /// Looks for the entry of the same question in `scope` that `serves` lets pass.
    pub async fn lookup(
        &self,
        scope: &Scope,
        question: &str,
        matching: &Matching,
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
        let asked = Asked { scope, question, embedding: &embedding, matching };
        let found = match self.judge(asked, serves).await {
            Ok(judged) => choose(judged),
            Err(error) => {
                tracing::warn!(%error, "search failed; the question goes past the semantic layer");
                Found::Bypassed(bypass_label(&error))
            }
        };
        Lookup { found, embedding: Some(embedding), embed_time, search_time: Some(begun.elapsed()) }
    }

    /// The stored questions nearest to what is asked, and what verification says of each.
    pub async fn judge(&self, asked: Asked<'_>, serves: &Serves<'_>) -> Result<Vec<Judged>, StoreError> {
        let candidates = self.store.search(asked.scope, asked.embedding, self.candidates).await?;
        let mut judged = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let servable = serves(&candidate.entry);
            let near = Near {
                question: &candidate.entry.question,
                similarity: candidate.similarity,
                tokens: candidate.tokens.as_ref(),
            };
            let judgement = self.verifier.judge(asked.question, asked.embedding, near, asked.matching).await;
            let Judgement { mut verdict, probability } = judgement;
            let namespace = &asked.scope.partition.namespace;
            let question = &candidate.entry.question;
            if verdict == Verdict::Same
                && self.verdicts.are_parted(namespace, asked.question, question).await?
            {
                verdict = Verdict::Different(Refusal::Parted);
            }
            judged.push(Judged { candidate, verdict, probability, servable });
        }
        Ok(judged)
    }
}

/// Which of the candidates, nearest first, is served: the one most probably the same of those that
/// can be; the nearer of two as good.
pub fn best(judged: &[Judged]) -> Option<usize> {
    let score = |judged: &Judged| judged.probability.unwrap_or(judged.candidate.similarity);
    let same = judged.iter().enumerate().rev();
    let same = same.filter(|(_, judged)| judged.verdict == Verdict::Same && judged.servable);
    same.max_by(|(_, a), (_, b)| score(a).total_cmp(&score(b))).map(|(index, _)| index)
}

fn choose(mut judged: Vec<Judged>) -> Found {
    let nearest_refused = judged.iter().find_map(|judged| match judged.verdict {
        Verdict::Different(refusal) => Some((judged.candidate.similarity, refusal)),
        Verdict::Same => None,
    });
    match best(&judged).map(|index| judged.swap_remove(index)) {
        Some(Judged { candidate, probability, .. }) => {
            let similarity = candidate.similarity;
            Found::Hit { entry: Arc::new(candidate.entry), similarity, probability }
        }
        None => Found::Miss(nearest_refused),
    }
}

fn bypass_label(error: &StoreError) -> &'static str {
    match error {
        StoreError::TimedOut => "store_timeout",
        StoreError::Unavailable(_) | StoreError::Failed(_) | StoreError::Unusable(_) => "store_failed",
    }
}

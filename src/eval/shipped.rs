//! The verifier that the service runs, as a judge.

use std::sync::Arc;

use async_trait::async_trait;

use super::cosine::cosine;
use super::judge::{Judge, Judgement};
use crate::cache::embedder::{EmbedError, Embedding, Encoders};
use crate::cache::verify::{Near, Refusal, Verdict, Verifier};
use crate::config::Matching;

/// The shipped verifier with the shipped settings.
pub struct Shipped {
    encoders: Arc<Encoders>,
    verifier: Verifier,
    matching: Matching,
}

impl Shipped {
    /// The verifier over these encoders, with what a namespace asks of a match.
    pub fn new(encoders: Arc<Encoders>, matching: Matching) -> Self {
        Self { verifier: Verifier::new(Arc::clone(&encoders)), encoders, matching }
    }

    fn has_head(&self, embedding: &Embedding) -> bool {
        self.verifier.min_probability(embedding, &self.matching).is_some()
    }

    /// A text's vector, or a word that says why there is none. Waits out a busy encoder: here
    /// everything comes at once.
    pub async fn embed(encoders: &Encoders, text: &str) -> Result<Embedding, &'static str> {
        loop {
            match encoders.embed(text).await {
                Err(EmbedError::Busy | EmbedError::TimedOut | EmbedError::Loading) => {
                    tokio::task::yield_now().await;
                }
                outcome => return outcome.map_err(|error| error.label()),
            }
        }
    }
}

#[async_trait]
impl Judge for Shipped {
    fn name(&self) -> &'static str {
        "refrain"
    }

    /// By probability where the encoder has a head, by similarity where it has none.
    async fn judge(&self, asked: &str, stored: &str) -> Judgement {
        let (embedding, other) =
            match (Self::embed(&self.encoders, asked).await, Self::embed(&self.encoders, stored).await) {
                (Ok(embedding), Ok(other)) => (embedding, other),
                (Err(stage), _) | (_, Err(stage)) => return Judgement::refused(stage),
            };
        let Some(similarity) = cosine(&embedding, &other) else {
            return Judgement::refused(Refusal::Language.label());
        };
        let near = Near { question: stored, similarity, tokens: other.tokens.as_ref() };
        let judgement = self.verifier.judge(asked, &embedding, near, &self.matching).await;
        let score = judgement.probability.unwrap_or(similarity);
        match judgement.verdict {
            Verdict::Same => Judgement { score, serves: true, stage: "same" },
            // Only what is on the scale of the others can be ranked among them.
            Verdict::Different(refusal @ Refusal::Improbable) => {
                Judgement { score, serves: false, stage: refusal.label() }
            }
            Verdict::Different(refusal @ Refusal::Similarity) if !self.has_head(&embedding) => {
                Judgement { score, serves: false, stage: refusal.label() }
            }
            Verdict::Different(refusal) => Judgement::refused(refusal.label()),
        }
    }
}

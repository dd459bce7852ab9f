//! The words of a question, as far as they tell questions apart.

use std::collections::BTreeSet;

/// Words that questions have in common whatever they are about.
const FILLERS: [&str; 32] = [
    "a", "an", "and", "are", "be", "can", "could", "do", "does", "for", "have", "how", "i", "in", "is", "it",
    "me", "my", "of", "on", "please", "should", "tell", "the", "there", "to", "we", "what", "where", "with",
    "you", "your",
];

/// A text without case, punctuation and white space.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words {
    in_order: Vec<String>,
    telling: BTreeSet<String>,
}

impl Words {
    /// Splits at everything that is neither letter nor digit; apostrophes count as nothing.
    pub(super) fn of(text: &str) -> Self {
        let text: String = text.to_lowercase().chars().filter(|c| !matches!(c, '\'' | '’')).collect();
        let in_order: Vec<String> = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        let telling = in_order.iter().filter(|word| !FILLERS.contains(&word.as_str())).cloned().collect();
        Self { in_order, telling }
    }

    /// The share of common words in all telling words of both: 0 to 1 (Jaccard's index).
    #[expect(clippy::cast_precision_loss, reason = "counts of words are small")]
    pub(super) fn overlap(&self, other: &Self) -> f64 {
        let common = self.telling.intersection(&other.telling).count();
        let all = self.telling.union(&other.telling).count();
        if all == 0 { 0.0 } else { common as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_does_not_count() {
        assert_eq!(Words::of("What's  Refrain?"), Words::of("whats refrain"));
        assert_ne!(Words::of("a b"), Words::of("b a"));
        assert!(Words::of("?!").in_order.is_empty());
    }

    #[test]
    fn only_telling_words_overlap() {
        let reset = Words::of("How do I reset my password?");
        assert!((reset.overlap(&Words::of("please reset the password")) - 1.0).abs() < 1e-9);
        assert!((reset.overlap(&Words::of("reset password router")) - 2.0 / 3.0).abs() < 1e-9);
        assert!(reset.overlap(&Words::of("How do I do it?")) < 1e-9);
        assert!(Words::of("how do I").overlap(&Words::of("what is it")) < 1e-9);
    }
}

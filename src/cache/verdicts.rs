//! Pairs of questions that a person called different.
//!
//! A wrong hit that was reported must never come again, whatever encoder, head and thresholds say,
//! on any instance and after any restart. So a verdict lies in the store, beside the entries, as a
//! record without a vector under a key that is made of the two questions: asking for it is one look
//! by key, and only before a hit is served. It outlives both entries and every purge of their
//! namespace, for it is about questions and not about answers.

use std::sync::Arc;

use super::Entry;
use super::key::{ExactKey, Scope};
use super::store::{Store, StoreError};
use crate::chat::{ChatReply, Extra, Finish};
use crate::clock::Timestamp;

/// The end of the year 9999. Stores keep signed integers.
const NEVER: Timestamp = Timestamp(253_402_300_799_000);

/// What people said of pairs, by namespace.
pub struct Verdicts {
    store: Arc<dyn Store>,
}

impl Verdicts {
    /// Those that lie in this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// From now on the two never match in this namespace. Once this returns it survives the process.
    pub async fn part(
        &self,
        namespace: &str,
        one: &str,
        other: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let record = Entry {
            key: key(namespace, one, other),
            scope: Scope::of_verdicts(),
            question: one.to_owned(),
            reply: ChatReply {
                model: String::new(),
                text: other.to_owned(),
                finish: Finish::Stop,
                usage: None,
                extra: Extra::default(),
            },
            model: namespace.to_owned(),
            provider: String::new(),
            without_usage: false,
            pinned: false,
            tags: Vec::new(),
            written_at: now,
            expires_at: NEVER,
        };
        self.store.upsert(&record, None).await
    }

    /// Whether somebody said that the two are not the same.
    pub async fn are_parted(&self, namespace: &str, one: &str, other: &str) -> Result<bool, StoreError> {
        Ok(self.store.get(&key(namespace, one, other)).await?.is_some())
    }
}

/// Which of the two was asked first does not matter, nor do letter case and spaces.
fn key(namespace: &str, one: &str, other: &str) -> ExactKey {
    let (one, other) = (plain(one), plain(other));
    let (first, second) = if one <= other { (one, other) } else { (other, one) };
    ExactKey::of_pair(namespace, &first, &second)
}

fn plain(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_the_same_in_either_order_and_spelling_and_no_other_is() {
        let pair = key("faq", "How do I enable it?", "How do I disable it?");
        assert_eq!(pair, key("faq", "how do i  disable it? ", "How do I ENABLE it?"));
        assert_ne!(pair, key("hr", "How do I enable it?", "How do I disable it?"));
        assert_ne!(pair, key("faq", "How do I enable it?", "How do I enable it?"));
        assert_ne!(key("faq", "a b", "c"), key("faq", "a", "b c"));
    }
}

//! Answers kept for later: what an entry is, when it may be served, and the layers that hold it.
//!
//! `key` says when two requests are the same, `exact` holds entries in memory, `semantic` finds
//! the entry of a question asked in other words, `verify` says whether it REALLY is the same
//! question. `embedder` and `store` are the ports to the model and to Qdrant.

pub mod embedder;
pub mod exact;
pub mod follow_up;
pub mod key;
pub mod purge;
pub mod semantic;
pub mod store;
pub mod verdicts;
pub mod verify;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::chat::ChatReply;
use crate::clock::Timestamp;
use key::{ExactKey, Scope};

/// An answer with all that decides whether it may be served again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The exact key; the entry's id everywhere.
    pub key: ExactKey,
    /// The scope it was asked in, partition included.
    pub scope: Scope,
    /// The question's text; empty when the last turn held none.
    pub question: String,
    /// The answer.
    pub reply: ChatReply,
    /// The model that was asked for.
    pub model: String,
    /// The provider that served it.
    pub provider: String,
    /// The provider would have said the usage, but its caller did not ask for it. Such an answer is
    /// not for callers who do.
    #[serde(default)]
    pub without_usage: bool,
    /// Approved by an operator: served until it is taken back, and not replaced by what a provider
    /// says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// Freshness tags, for purging by what the answer was made from.
    pub tags: Vec<String>,
    /// When the answer was asked for. Its age counts from there, as RFC 9111 (section 4.2.3)
    /// counts it: what changed while the model was writing is not in the answer.
    pub written_at: Timestamp,
    /// From when on it may not be served.
    pub expires_at: Timestamp,
}

impl Entry {
    /// Whether the entry may be served at `now` to a caller who wants it no older than `max_age`.
    pub fn is_fresh(&self, now: Timestamp, max_age: Option<Duration>) -> bool {
        now < self.expires_at && max_age.is_none_or(|limit| self.age(now) <= limit)
    }

    /// Whether the entry may be served at `now`, for want of another, up to `window` past its time.
    pub fn is_useful(&self, now: Timestamp, window: Duration) -> bool {
        now < self.expires_at.after(window)
    }

    /// How long ago its time was over; zero before.
    pub fn overdue(&self, now: Timestamp) -> Duration {
        now.since(self.expires_at)
    }

    /// How old the answer is.
    pub fn age(&self, now: Timestamp) -> Duration {
        now.since(self.written_at)
    }

    /// How long it may still be served; zero once expired.
    pub fn time_to_live(&self, now: Timestamp) -> Duration {
        self.expires_at.since(now)
    }

    /// About how many bytes the entry holds in memory; weighs the exact layer.
    pub fn weight(&self) -> usize {
        let extra = if self.reply.extra.is_empty() {
            0
        } else {
            serde_json::to_vec(&self.reply.extra).map_or(0, |json| json.len() * 2)
        };
        let tags: usize = self.tags.iter().map(|tag| tag.len() + size_of::<String>()).sum();
        size_of::<Self>()
            + self.question.len()
            + self.reply.text.len()
            + self.reply.model.len()
            + self.model.len()
            + self.provider.len()
            + self.scope.partition.namespace.len()
            + tags
            + extra
    }
}

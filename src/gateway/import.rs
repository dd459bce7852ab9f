//! Answers that somebody has approved, put into the cache before anybody asks.
//!
//! Each wording of a question becomes an entry of its own, in the scope of a request that callers
//! would send; from then on it is an answer as any other, found to the letter and in other words.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::call::{Route, fuzzy};
use super::{Call, Gateway};
use crate::cache::Entry;
use crate::cache::embedder::{EmbedError, Embedding};
use crate::cache::key::ExactKey;
use crate::cache::store::StoreError;
use crate::chat::{ChatReply, Extra, Finish, Question, Usage, about_tokens};

/// Named as the provider of such answers.
const BOOK: &str = "book";

/// A pinned entry has this long to live, which no process does.
const PINNED: Duration = Duration::from_hours(100 * 365 * 24);

/// A question with its answer.
#[derive(Clone, Copy, Debug)]
pub struct Approved<'a> {
    /// The question and its other wordings.
    pub wordings: &'a [&'a str],
    /// Its answer.
    pub answer: &'a str,
    /// Served until it is taken back, and not replaced by what a provider says.
    pub pinned: bool,
}

/// What became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Entries written, one for each wording.
    pub entries: u64,
    /// Those of them that are found to the letter only: nobody's encoder covers them, they are bound
    /// to their time, or the namespace matches nothing else.
    pub exact_only: u64,
}

/// Why it was not, or not all of it, put into the cache.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The encoder cannot be had now.
    #[error("the question has no vector yet: {0}")]
    Embed(#[from] EmbedError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It was purged while it was on its way.
    #[error("it was evicted while it was on its way")]
    Purged,
}

impl Gateway {
    /// Puts an approved answer where calls like this one, but for the question, find it. When it
    /// returns it is in the store.
    pub async fn import(&self, like: &Call, approved: Approved<'_>) -> Result<Imported, ImportError> {
        let mut imported = Imported::default();
        for wording in approved.wordings {
            let mut call = like.clone();
            call.request.question = Question::try_new(vec![(*wording).to_owned()]);
            let embedding = self.vector(&call).await?;
            let entry = Arc::new(self.approved(&call, wording, approved));
            let leave = self.parts.purges.leave_to_write(&entry).await.ok_or(ImportError::Purged)?;
            self.parts.store.upsert(&entry, embedding.as_ref()).await?;
            drop(leave);
            if !self.remember(&entry) {
                return Err(ImportError::Purged);
            }
            imported.entries += 1;
            imported.exact_only += u64::from(embedding.is_none());
        }
        Ok(imported)
    }

    /// The vector for finding it in other words; none where it never is.
    async fn vector(&self, call: &Call) -> Result<Option<Embedding>, EmbedError> {
        let Ok(question) = fuzzy(call, &self.switched()) else { return Ok(None) };
        match self.parts.semantic.encoders().embed(&question).await {
            Ok(embedding) => Ok(Some(embedding)),
            Err(EmbedError::NotCovered | EmbedError::TooLong { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn approved(&self, call: &Call, wording: &str, approved: Approved<'_>) -> Entry {
        let scope = self.scope(call);
        let now = self.parts.clock.now();
        let time_to_live =
            if approved.pinned { PINNED } else { call.namespace.time_to_live(call.directives.ttl) };
        Entry {
            key: ExactKey::new(&scope, call.request.question.as_ref()),
            scope,
            question: wording.to_owned(),
            reply: reply(call, wording, approved.answer),
            model: call.request.model.clone(),
            provider: BOOK.to_owned(),
            without_usage: false,
            pinned: approved.pinned,
            tags: call.directives.tags.clone(),
            written_at: now,
            expires_at: now.after(time_to_live),
        }
    }

    /// Whether the call asks for an answer in place of one that is not to be replaced.
    pub(super) async fn would_replace_pinned(&self, key: &ExactKey, call: &Call, route: Route) -> bool {
        let kept = match route {
            Route::Refresh => false,
            Route::Cache if call.directives.max_age.is_some() => true,
            _ => return false,
        };
        let holds = |entry: &Entry| {
            entry.pinned
                && !self.parts.purges.has_purged(entry)
                && !(kept && self.serves(entry, call))
                && entry.is_fresh(self.parts.clock.now(), None)
        };
        matches!(self.entry(key).await, Ok(Some(entry)) if holds(&entry))
    }
}

/// The usage is an estimate: what a model would have cost is what is saved.
fn reply(call: &Call, question: &str, answer: &str) -> ChatReply {
    ChatReply {
        model: call.request.model.clone(),
        text: answer.to_owned(),
        finish: Finish::Stop,
        usage: Some(Usage { prompt_tokens: about_tokens(question), completion_tokens: about_tokens(answer) }),
        extra: Extra::default(),
    }
}

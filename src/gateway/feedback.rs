//! What people say of answers, and what follows from it.
//!
//! A wrong answer in other words is the fault of the match: the two questions are parted for ever,
//! and the stored answer stays for those whom it answers. Any other wrong answer is the answer's own
//! fault: it is taken back. A right one is counted, since a share of wrong hits says nothing without
//! those that were right.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{EvictError, Eviction, Gateway};
use crate::cache::key::{ExactKey, Tenant};
use crate::cache::store::{Selector, StoreError};

/// What somebody says of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opinion {
    /// It answered the question.
    Right,
    /// It did not.
    Wrong,
}

/// An opinion on one answer.
#[derive(Clone, Debug)]
pub struct Feedback {
    /// The entry that was served.
    pub entry: ExactKey,
    /// The question asked, where it was not the entry's own; `None` for the entry's own.
    pub question: Option<String>,
    /// What is said of it.
    pub opinion: Opinion,
    /// Who says so; `None` for an operator, who may judge everybody's.
    pub tenant: Option<Tenant>,
}

/// What followed from an opinion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Consequence {
    /// Nothing but that it was counted.
    Counted,
    /// The two questions never match again.
    Parted,
    /// The answer was taken back.
    Evicted,
}

/// Why an opinion was not taken.
#[derive(Clone, Debug, Error)]
pub enum FeedbackError {
    /// There is no such entry, or it is somebody else's.
    #[error("no answer with this id is kept: it may have expired or been taken back")]
    NotKept,
    /// It could not be written down.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The answer could not be taken back.
    #[error(transparent)]
    Evict(#[from] EvictError),
}

impl Gateway {
    /// Takes an opinion. What follows from it is in force, and survives the process, once this
    /// returns.
    pub async fn feedback(self: &Arc<Self>, feedback: Feedback) -> Result<Consequence, FeedbackError> {
        let Feedback { entry: id, question, opinion, tenant } = feedback;
        let entry = self.entry(&id).await?.ok_or(FeedbackError::NotKept)?;
        let partition = &entry.scope.partition;
        let of_caller = tenant.is_some();
        if tenant.is_some_and(|tenant| tenant != partition.tenant) {
            return Err(FeedbackError::NotKept);
        }
        let namespace = Arc::clone(&partition.namespace);
        let other = question.filter(|question| *question != entry.question);
        let consequence = match (opinion, &other) {
            (Opinion::Right, _) => Consequence::Counted,
            // An operator's word counts more than a caller's.
            (Opinion::Wrong, None) if entry.pinned && of_caller => Consequence::Counted,
            (Opinion::Wrong, Some(question)) => {
                let now = self.parts.clock.now();
                self.parts.semantic.verdicts().part(&namespace, question, &entry.question, now).await?;
                Consequence::Parted
            }
            (Opinion::Wrong, None) => {
                let selector = Selector { id: Some(id), ..Selector::default() };
                self.evict(&Eviction { selector, ..Eviction::default() }).await?;
                Consequence::Evicted
            }
        };
        if let Some(namespace) = self.namespaces().get(&namespace) {
            namespace.metrics().judged(match (opinion, other.is_some()) {
                (Opinion::Right, true) => "semantic_right",
                (Opinion::Wrong, true) => "semantic_wrong",
                (Opinion::Right, false) => "right",
                (Opinion::Wrong, false) => "wrong",
            });
        }
        tracing::info!(%id, namespace = &*namespace, ?opinion, ?consequence, "somebody judged an answer");
        Ok(consequence)
    }
}

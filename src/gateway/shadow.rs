//! How often is a hit in other words wrong? Measured on one's own traffic.
//!
//! Nobody has to believe a model card. A part of the hits, or all of them while a namespace only
//! watches (`shadow.serve = false`), is asked upstream as well, and the two answers are laid beside
//! each other. No caller waits for it, and what it costs is counted as spent.
//!
//! That two answers agree is judged without mercy: by the same stages as two questions, numbers and
//! names included. A model that says the same thing in two ways may be counted as differing, so the
//! share of those that agree is a lower bound.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::Instant;

use super::{Call, Gateway};
use crate::cache::Entry;
use crate::chat::ChatReply;
use crate::upstream::{Body, Completion, Piece, Priority, UpstreamError};

/// Hits that are asked upstream at once, so that measuring never crowds out those who wait.
pub(super) const SIDE_BY_SIDE: usize = 4;

/// How long a provider may take over one.
const PATIENCE: Duration = Duration::from_mins(2);

impl Gateway {
    /// Asks upstream as well what was answered from `entry`, if it is this one's turn.
    pub(super) fn sample(self: &Arc<Self>, call: &Call, entry: &Arc<Entry>) {
        if rand::random::<f32>() >= call.namespace.settings().shadow.sample.get() {
            return;
        }
        // A caller's own key is not ours to spend.
        let place = Arc::clone(&self.samples).try_acquire_owned().ok().filter(|_| call.credential.is_none());
        let Some(place) = place else { return call.namespace.metrics().sampled("skipped") };
        let (gateway, entry) = (Arc::clone(self), Arc::clone(entry));
        let mut call = Call { priority: Priority::Batch, ..call.clone() };
        call.deadline = Instant::now() + PATIENCE;
        self.tasks.spawn(async move {
            let _place = place;
            match gateway.ask_in_the_background(&call).await {
                Some(reply) => gateway.compare(&call, &entry, &reply).await,
                None => call.namespace.metrics().sampled("failed"),
            }
        });
    }

    /// Compares an answer that was due with what would have been served in its place.
    pub(super) fn compare_soon(self: &Arc<Self>, call: &Call, entry: Arc<Entry>, reply: ChatReply) {
        let (gateway, call) = (Arc::clone(self), call.clone());
        self.tasks.spawn(async move { gateway.compare(&call, &entry, &reply).await });
    }

    async fn compare(&self, call: &Call, entry: &Entry, reply: &ChatReply) {
        let outcome = match self.parts.semantic.agree(&entry.reply.text, &reply.text).await {
            Some(true) => "agreed",
            Some(false) => "differed",
            None => "undecided",
        };
        call.namespace.metrics().sampled(outcome);
        tracing::debug!(entry = %entry.key, outcome, "a hit was compared with a new answer");
    }

    async fn ask_in_the_background(&self, call: &Call) -> Option<ChatReply> {
        let begun = Instant::now();
        let failed =
            |error: &UpstreamError| self.parts.metrics.upstream_error(error.provider(), error.label());
        let ask = self.ask(call, call.deadline, &failed);
        let Completion { served, body } = self.parts.upstream.send(ask).await.ok()?;
        let reply = match body {
            Body::Whole(whole) => whole.reply,
            Body::Stream(mut pieces) => loop {
                match pieces.next().await? {
                    Ok(Piece::Event(_)) => {}
                    Ok(Piece::Complete(end)) => break end.reply,
                    Err(_) => return None,
                }
            },
        };
        self.account(call, &served, reply.as_ref(), None, None, begun);
        reply
    }
}

//! What may be stored, and storing it off the caller's path.
//!
//! Stored is only a complete answer: terminal event seen, finished by the model itself, with
//! text, not a tool call (unless the namespace says so), and not purged while on its way.

use std::sync::Arc;

use crate::cache::Entry;
use crate::cache::embedder::Embedding;
use crate::cache::key::{ExactKey, Scope};
use crate::cache::store::Selector;
use crate::chat::{ChatReply, Finish, Question};
use crate::clock::Timestamp;
use crate::switches::{Feature, Subject};
use crate::upstream::Served;

use super::call::fuzzy;
use super::{Call, Gateway, Namespace};

/// What an answer's entry needs besides the answer.
pub(super) struct Ticket {
    pub(super) key: ExactKey,
    pub(super) scope: Scope,
    pub(super) asked_at: Timestamp,
    pub(super) embedding: Option<Embedding>,
    /// What would have been served, in a namespace that only watches.
    pub(super) shadow: Option<Arc<Entry>>,
}

impl Gateway {
    /// Keeps the answer for the next caller, if it may be: in memory at once, in the store soon.
    /// Returns whether it was accepted.
    pub(super) fn keep(
        self: &Arc<Self>,
        call: &Call,
        ticket: Ticket,
        served: &Served,
        reply: Option<&ChatReply>,
    ) -> bool {
        let namespace = &call.namespace;
        if let (Some(entry), Some(reply)) = (ticket.shadow, reply) {
            self.compare_soon(call, entry, reply.clone());
        }
        if let Some(reason) = self.unwanted(served, namespace) {
            namespace.metrics().write_skip(reason);
            return false;
        }
        let reply = match storable(reply, namespace) {
            Ok(reply) => reply,
            Err(reason) => {
                namespace.metrics().write_skip(reason);
                return false;
            }
        };
        let time_to_live = namespace.time_to_live(call.directives.ttl);
        let entry = Arc::new(Entry {
            key: ticket.key,
            scope: ticket.scope,
            question: call.request.question.as_ref().map(Question::text).unwrap_or_default(),
            reply: reply.clone(),
            model: call.request.model.clone(),
            provider: served.provider.to_string(),
            without_usage: reply.usage.is_none() && call.request.stream && !call.request.include_usage,
            pinned: false,
            tags: call.directives.tags.clone(),
            written_at: ticket.asked_at,
            expires_at: ticket.asked_at.after(time_to_live),
        });
        if time_to_live.is_zero() {
            namespace.metrics().write_skip("ttl_zero");
            return false;
        }
        let kept = self.parts.exact.get(&entry.key);
        if kept.is_some_and(|kept| kept.written_at > entry.written_at) {
            namespace.metrics().write_skip("older");
            return false;
        }
        if !self.remember(&entry) {
            namespace.metrics().write_skip("purged");
            return false;
        }
        // No vector yet: by the time it is written, a busy or loading encoder may be there.
        let embed_later = fuzzy(call, &self.switched()).ok().filter(|_| ticket.embedding.is_none());
        self.write_back(Arc::clone(namespace), entry, ticket.embedding, embed_later);
        true
    }

    /// Why nothing of this is kept, whatever was answered.
    fn unwanted(&self, served: &Served, namespace: &Namespace) -> Option<&'static str> {
        if !self.is_on(Subject::Feature(Feature::WriteBack)) {
            Some("switched_off")
        } else if served.is_fallback && !namespace.settings().store_fallbacks {
            Some("fallback_model")
        } else {
            None
        }
    }

    /// Keeps the entry in memory, unless it was purged. A purge drops from memory what is there
    /// when it comes, so one that comes between the look and the insertion shows in the second.
    pub(super) fn remember(&self, entry: &Arc<Entry>) -> bool {
        if self.parts.purges.has_purged(entry) {
            return false;
        }
        self.parts.exact.insert(Arc::clone(entry));
        let purged = self.parts.purges.has_purged(entry);
        if purged {
            self.parts.exact.remove(&Selector { id: Some(entry.key), ..Selector::default() });
        }
        !purged
    }

    /// Writes the entry to the store in a task of its own; what does not fit the queue stays in
    /// memory only.
    fn write_back(
        self: &Arc<Self>,
        namespace: Arc<Namespace>,
        entry: Arc<Entry>,
        embedding: Option<Embedding>,
        embed_later: Option<String>,
    ) {
        let Ok(place) = Arc::clone(&self.writes).try_acquire_owned() else {
            namespace.metrics().write_skip("queue_full");
            return;
        };
        let gateway = Arc::clone(self);
        self.tasks.spawn(async move {
            let _place = place;
            let embedding = match embed_later {
                Some(question) => gateway.parts.semantic.encoders().embed(&question).await.ok(),
                None => embedding,
            };
            let Some(_leave) = gateway.parts.purges.leave_to_write(&entry).await else {
                namespace.metrics().write_skip("purged");
                return;
            };
            match gateway.parts.store.upsert(&entry, embedding.as_ref()).await {
                Ok(()) => namespace.metrics().stored(),
                Err(error) => {
                    namespace.metrics().write_skip(error.label());
                    tracing::warn!(entry = %entry.key, %error, "an answer was not written to the store");
                }
            }
        });
    }
}

/// The answer, if it is one that may be stored; else why not.
fn storable<'a>(reply: Option<&'a ChatReply>, namespace: &Namespace) -> Result<&'a ChatReply, &'static str> {
    let reply = reply.ok_or("no_single_answer")?;
    // Some servers send an empty list with every plain answer.
    let holds = |field: &str| {
        let value = reply.extra.message.get(field);
        value.is_some_and(|value| !value.is_null() && value.as_array().is_none_or(|calls| !calls.is_empty()))
    };
    let calls_tools = reply.finish == Finish::ToolCalls || holds("tool_calls") || holds("function_call");
    if calls_tools && !namespace.settings().store_tool_calls {
        return Err("tool_calls");
    }
    match reply.finish {
        Finish::Stop if reply.text.trim().is_empty() && !calls_tools => Err("empty"),
        Finish::Stop | Finish::ToolCalls => Ok(reply),
        Finish::Length => Err("cut_by_length"),
        Finish::ContentFilter => Err("content_filter"),
        Finish::Other(_) => Err("finish_reason"),
    }
}

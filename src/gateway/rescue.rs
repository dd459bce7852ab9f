//! What a caller gets when no provider can answer: the last rungs of the ladder.
//!
//! First the stored answer whose time is over, then answers to similar questions, then rules. Each
//! is marked as what it is, and none is ever stored. There is nothing to rescue where the request
//! itself was at fault, and nothing old for a caller who wants nothing old.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::call::{Route, fuzzy};
use super::flight::{Head, Notes};
use super::keep::Ticket;
use super::{Answer, Call, Gateway, GatewayError, Source, Substitute};
use crate::cache::Entry;
use crate::cache::semantic::Found;
use crate::chat::{ChatReply, ChatRequest, Extra, Finish};
use crate::switches::{Feature, Subject};
use crate::upstream::{Ask, Body, UpstreamError};

/// How long the rules may take: they are in memory.
const RULES: Duration = Duration::from_secs(5);

impl Gateway {
    /// The next best thing to the answer that could not be had; `None` when there is none.
    pub(super) async fn rescue(
        &self,
        call: &Call,
        ticket: &Ticket,
        route: Route,
        error: &UpstreamError,
        notes: Notes,
    ) -> Option<Head> {
        let helpless = matches!(
            error,
            UpstreamError::UnknownModel { .. }
                | UpstreamError::NoTarget(_)
                | UpstreamError::Inexpressible { .. }
        );
        if helpless || error.fault().reaction().fails_at_once() {
            return None;
        }
        if let Some(entry) = self.stale(call, ticket, route).await {
            return Some(Head::Kept(Source::Stale, entry, notes));
        }
        if let Some(reply) = self.related(call, ticket, route).await {
            return Some(Head::Substitute(Substitute::Related, Arc::new(reply), notes));
        }
        let reply = self.rules(call).await?;
        Some(Head::Substitute(Substitute::Rules, Arc::new(reply), notes))
    }

    /// The same for a caller whose time is over while the flight that it follows goes on.
    pub(super) async fn rescue_follower(
        &self,
        call: &Call,
        ticket: &Ticket,
        route: Route,
    ) -> Result<Answer, GatewayError> {
        let error = UpstreamError::DeadlineExceeded;
        match self.rescue(call, ticket, route, &error, Notes::default()).await {
            Some(Head::Kept(source, entry, notes)) => Ok(Answer::kept(ticket.key, source, entry, notes)),
            Some(Head::Substitute(substitute, reply, notes)) => {
                Ok(Answer::substitute(ticket.key, None, substitute, reply, notes))
            }
            Some(Head::Whole(..) | Head::Streaming(..)) | None => Err(error.into()),
        }
    }

    /// The stored answer to this question, past its time.
    async fn stale(&self, call: &Call, ticket: &Ticket, route: Route) -> Option<Arc<Entry>> {
        let window = self.stale_window(call, route)?;
        let now = self.parts.clock.now();
        // Without the usage that the caller asked for, if need be: the other choice is an error.
        let serves = |entry: &Entry| entry.is_useful(now, window) && !self.parts.purges.has_purged(entry);
        if let Some(entry) = self.parts.exact.get(&ticket.key).filter(|entry| serves(entry)) {
            return Some(entry);
        }
        if let Ok(Some(entry)) = self.parts.store.get(&ticket.key).await
            && entry.scope == ticket.scope
            && serves(&entry)
        {
            return Some(Arc::new(entry));
        }
        let question = fuzzy(call, &self.switched()).ok()?;
        let matching = &call.namespace.settings().matching;
        match self.parts.semantic.lookup(&ticket.scope, &question, matching, &serves).await.found {
            Found::Hit { entry, .. } => Some(entry),
            Found::Miss(_) | Found::Bypassed(_) => None,
        }
    }

    /// How old an answer may be beyond its time; `None` when nothing stale may be served.
    fn stale_window(&self, call: &Call, route: Route) -> Option<Duration> {
        if !self.is_on(Subject::Feature(Feature::Stale)) {
            return None;
        }
        let configured = call.namespace.settings().stale_if_error;
        let window = match (route, call.directives.stale_if_error) {
            (Route::Cache | Route::Refresh, Some(wish)) => wish.min(configured),
            (Route::Cache, None) if call.directives.max_age.is_none() => configured,
            _ => return None,
        };
        (!window.is_zero()).then_some(window)
    }

    /// A list of stored answers to similar questions of the same scope.
    async fn related(&self, call: &Call, ticket: &Ticket, route: Route) -> Option<ChatReply> {
        let settings = &call.namespace.settings().related;
        if settings.limit == 0 || !matches!(route, Route::Cache) {
            return None;
        }
        let question = fuzzy(call, &self.switched()).ok()?;
        let embedding = match &ticket.embedding {
            Some(embedding) => embedding.clone(),
            None => self.parts.semantic.encoders().embed(&question).await.ok()?,
        };
        let near = self.parts.store.search(&ticket.scope, &embedding, settings.limit).await.ok()?;
        let near = near.into_iter().filter(|candidate| {
            candidate.similarity >= settings.min_similarity.get() && self.serves(&candidate.entry, call)
        });
        let mut text = String::new();
        for candidate in near {
            let Entry { question, reply, .. } = &candidate.entry;
            let _ = write!(text, "\n\n**{}**\n\n{}", question.trim(), reply.text.trim());
        }
        (!text.is_empty()).then(|| substitute(call, format!("{}{text}", settings.text)))
    }

    /// What the rules say that are the model's last resort.
    async fn rules(&self, call: &Call) -> Option<ChatReply> {
        let request = ChatRequest { stream: false, ..call.request.clone() };
        let ask = Ask::new(&request, Instant::now() + RULES);
        match self.parts.upstream.send_to_last_resort(ask).await? {
            Ok(completion) => match completion.body {
                Body::Whole(whole) => whole.reply,
                Body::Stream(_) => None,
            },
            Err(error) => {
                tracing::warn!(%error, "the last resort failed too");
                None
            }
        }
    }
}

/// A reply that no provider made.
fn substitute(call: &Call, text: String) -> ChatReply {
    let model = call.request.model.clone();
    ChatReply { model, text, finish: Finish::Stop, usage: None, extra: Extra::default() }
}

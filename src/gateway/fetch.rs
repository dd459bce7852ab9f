//! The flight's own side: look into the store, look for the same question in other words, ask the
//! provider, and pass on what comes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::Instant;

use super::call::{Route, fuzzy};
use super::count::{metered, usage};
use super::flight::{Head, Notes, Pilot};
use super::keep::Ticket;
use super::{Call, Gateway, Source};
use crate::cache::Entry;
use crate::cache::semantic::Found;
use crate::chat::{ChatReply, Question, Usage};
use crate::metrics::Source as Counted;
use crate::upstream::{Body, Completion, End, EventKind, Piece, PieceStream, Served, UpstreamError};

/// Of the caller's time, this is kept for what is left to do when no provider has answered: a
/// tenth at most.
const RESCUE: Duration = Duration::from_millis(250);

/// Until when a caller with this deadline waits for the providers.
pub(super) fn last_call(deadline: Instant) -> Instant {
    deadline - RESCUE.min(deadline.saturating_duration_since(Instant::now()) / 10)
}

impl Gateway {
    /// Flies until the answer is whole, or nobody waits for it any more.
    pub(super) async fn fly(self: Arc<Self>, call: Arc<Call>, ticket: Ticket, route: Route, pilot: Pilot) {
        let abandoned = async {
            if self.parts.fill_on_disconnect && !matches!(route, Route::Bypass(_)) {
                std::future::pending::<()>().await;
            }
            pilot.abandoned().await;
        };
        let begun = Instant::now();
        tokio::select! {
            () = self.fetch(&call, ticket, route, &pilot) => {}
            () = abandoned => call.namespace.metrics().request(Counted::Error("cancelled"), begun.elapsed(), None),
        }
    }

    async fn fetch(self: &Arc<Self>, call: &Call, mut ticket: Ticket, route: Route, pilot: &Pilot) {
        let mut notes = Notes::default();
        if let Route::Cache = route
            && let Some((source, entry)) = self.find_kept(call, &mut ticket, &mut notes).await
        {
            return pilot.begin(Ok(Head::Kept(source, entry, notes)));
        }
        let begun = Instant::now();
        let failed =
            |error: &UpstreamError| self.parts.metrics.upstream_error(error.provider(), error.label());
        let ask = self.ask(call, last_call(call.deadline), &failed);
        let Completion { served, body } = match self.parts.upstream.send(ask).await {
            Ok(completion) => completion,
            Err(error) => {
                let head = self.rescue(call, &ticket, route, &error, notes).await;
                tracing::warn!(%error, rescued = head.is_some(), "no provider answered");
                return pilot.begin(head.ok_or(error.into()));
            }
        };
        let ticket = (!matches!(route, Route::Bypass(_))).then_some(ticket);
        match body {
            Body::Whole(whole) => {
                self.account(call, &served, whole.reply.as_ref(), whole.usage, None, begun);
                if let Some(ticket) = ticket {
                    notes.stored = self.keep(call, ticket, &served, whole.reply.as_ref());
                }
                pilot.begin(Ok(Head::Whole(served, Arc::new(whole), notes)));
            }
            Body::Stream(pieces) => self.relay(call, ticket, notes, served, pieces, begun, pilot).await,
        }
    }

    /// Passes a stream's events to the followers, and keeps the answer once it is whole.
    #[expect(clippy::too_many_arguments, reason = "the second half of one story")]
    async fn relay(
        self: &Arc<Self>,
        call: &Call,
        ticket: Option<Ticket>,
        notes: Notes,
        served: Served,
        mut pieces: PieceStream,
        begun: Instant,
        pilot: &Pilot,
    ) {
        let mut first_content = None;
        let mut begun_to_send = false;
        loop {
            match pieces.next().await {
                Some(Ok(Piece::Event(event))) => {
                    if event.kind == EventKind::Content {
                        first_content.get_or_insert_with(|| begun.elapsed());
                    }
                    pilot.event(event);
                    if !begun_to_send {
                        begun_to_send = true;
                        pilot.begin(Ok(Head::Streaming(served.clone(), notes)));
                    }
                }
                Some(Ok(Piece::Complete(end))) => {
                    let End { reply, usage } = *end;
                    self.account(call, &served, reply.as_ref(), usage, first_content, begun);
                    if let Some(ticket) = ticket {
                        self.keep(call, ticket, &served, reply.as_ref());
                    }
                    if !begun_to_send {
                        pilot.begin(Ok(Head::Streaming(served, notes)));
                    }
                    return pilot.end(Ok(reply.map(Arc::new)));
                }
                cut => {
                    let error = match cut {
                        Some(Err(error)) => error,
                        _ => UpstreamError::Broken {
                            provider: Arc::clone(&served.provider),
                            reason: "the stream ended before its terminal event".into(),
                        },
                    };
                    self.parts.metrics.upstream_error(error.provider(), error.label());
                    tracing::warn!(provider = %served.provider, %error, begun_to_send, "a stream broke off");
                    if !begun_to_send {
                        pilot.begin(Err(error.clone().into()));
                    }
                    return pilot.end(Err(error));
                }
            }
        }
    }

    /// Books a call that a provider answered to the end.
    pub(super) fn account(
        &self,
        call: &Call,
        served: &Served,
        reply: Option<&ChatReply>,
        cost: Option<Usage>,
        first_content: Option<Duration>,
        begun: Instant,
    ) {
        self.parts.metrics.upstream_call(&served.provider, &served.model, first_content, begun.elapsed());
        if let Some(reply) = reply {
            let question = call.request.question.as_ref().map(Question::text).unwrap_or_default();
            call.namespace.metrics().spent(usage(reply, &question));
        } else if let Some(cost) = cost {
            call.namespace.metrics().spent(metered(&served.model, cost));
        }
    }

    /// Looks into the store, then for the same question in other words.
    pub(super) async fn find_kept(
        self: &Arc<Self>,
        call: &Call,
        ticket: &mut Ticket,
        notes: &mut Notes,
    ) -> Option<(Source, Arc<Entry>)> {
        // Another flight may have landed between the caller's look and this one.
        if let Some(entry) = self.exact(&ticket.key, call) {
            return Some((Source::Exact, entry));
        }
        if let Some(entry) = self.stored(call, ticket).await {
            return Some((Source::Exact, entry));
        }
        let metrics = call.namespace.metrics();
        let question = match fuzzy(call, &self.switched()) {
            Ok(question) => question,
            Err(reason) => {
                metrics.semantic_bypass(reason);
                notes.semantic_bypass = Some(reason);
                return None;
            }
        };
        let matching = &call.namespace.settings().matching;
        let serves = |entry: &Entry| self.serves(entry, call);
        let lookup = self.parts.semantic.lookup(&ticket.scope, &question, matching, &serves).await;
        ticket.embedding = lookup.embedding;
        if let Some(time) = lookup.embed_time {
            self.parts.metrics.embed(time);
        }
        if let Some(time) = lookup.search_time {
            self.parts.metrics.search(time);
        }
        match lookup.found {
            Found::Hit { entry, .. } if !call.namespace.settings().shadow.serve => {
                metrics.shadow_hit();
                metrics.semantic_bypass("shadow");
                notes.semantic_bypass = Some("shadow");
                ticket.shadow = Some(entry);
                None
            }
            Found::Hit { entry, similarity, probability } => {
                self.sample(call, &entry);
                Some((Source::Semantic { similarity, probability }, entry))
            }
            Found::Miss(nearest) => {
                if let Some((similarity, refusal)) = nearest {
                    metrics.refused(refusal.label());
                    notes.refused = Some((similarity, refusal.label()));
                }
                None
            }
            Found::Bypassed(reason) => {
                metrics.semantic_bypass(reason);
                notes.semantic_bypass = Some(reason);
                None
            }
        }
    }

    /// The entry of this key from the store: written by an earlier process or another instance.
    async fn stored(&self, call: &Call, ticket: &Ticket) -> Option<Arc<Entry>> {
        let entry = match self.parts.store.get(&ticket.key).await {
            Ok(entry) => Arc::new(entry?),
            Err(error) => {
                tracing::warn!(%error, "the store was not read; the request goes on without it");
                return None;
            }
        };
        let ours = entry.scope == ticket.scope && self.serves(&entry, call);
        // A purge may have passed while the store was read.
        (ours && self.remember(&entry)).then_some(entry)
    }
}

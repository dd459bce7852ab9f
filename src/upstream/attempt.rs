//! One call to one target, and what all who watch it learn from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use tokio::time::Instant;

use super::ask::Ask;
use super::breaker::{Outcome, Permit};
use super::fault::Fault;
use super::health::{Call, Finished};
use super::journey::{Admission, Slots};
use super::keys::{Picked, Refusal};
use super::route::Candidate;
use super::target::Wait;
use super::timers::Timers;
use super::{Body, Completion, Piece, PieceStream, Served, UpstreamError};
use crate::chat::Usage;
use crate::config::Secret;
use crate::upstream::fault::Class;

/// Of the time that is left, a call may wait for its first content while others could still be
/// asked after it, in percent.
const SHARE_OF_TIME: u32 = 60;

/// Makes the call. Its answer is whole, or a stream whose first content has come; by then the
/// breaker, the key and the limit have heard of it. The slots are held until the answer ends.
///
/// Dropping the future cancels the call, which nobody is blamed for; `is_lost` says beforehand that
/// another call was faster. Nor is the target blamed for a call that was cut before it was late.
pub(super) async fn attempt(
    timers: &Timers,
    ask: &Ask<'_>,
    admission: Admission,
    is_lost: Arc<AtomicBool>,
) -> Result<Completion, UpstreamError> {
    let Admission { candidate, permit, slots, key, attempt, is_last, .. } = admission;
    let begun = Instant::now();
    let left = ask.deadline.saturating_duration_since(begun);
    let patience = if is_last { left } else { left / 100 * SHARE_OF_TIME };
    let credential = ask.credential.or(key.key());
    let provider = &candidate.choice.endpoint.provider;
    let call = provider.complete(ask.request, &candidate.model, credential);
    let watched = Watched {
        call: Some(candidate.target.health.started(begun)),
        permit: Some(permit),
        begun,
        is_lost,
        candidate: &candidate,
    };
    let answer = timers.watch(provider.name(), timers.deadline().min(ask.deadline), patience, call).await;
    let served = Served {
        provider: Arc::clone(provider.name()),
        model: Arc::clone(&candidate.model),
        attempts: attempt,
        is_fallback: candidate.is_fallback,
    };
    match answer {
        Ok(body) => {
            let is_stream = matches!(body, Body::Stream(_));
            let mut call = watched.answered(is_stream);
            slots.0.succeed();
            key.succeed();
            let (candidate, deadline) = (candidate.clone(), ask.deadline);
            let is_answer = ask.is_for_an_answer();
            let held = Held { slots, candidate, served: served.clone(), begun, deadline, is_answer };
            let body = match body {
                Body::Whole(whole) => {
                    held.finish(call, whole.usage);
                    Body::Whole(whole)
                }
                Body::Stream(pieces) => {
                    call.content(Instant::now());
                    Body::Stream(held.until_its_end(call, pieces))
                }
            };
            Ok(Completion { served, body })
        }
        Err(error) => {
            let fault = error.fault();
            if was_cut_short(&error, timers, &candidate, ask, begun.elapsed()) {
                drop(watched);
            } else {
                watched.failed(fault);
                match fault.class {
                    _ if !fault.reaction().lowers_limit => {}
                    Class::Timeout => slots.0.timed_out(),
                    _ => slots.0.refused(),
                }
            }
            // Counts have a rate of their own: a key that may count no more may still ask.
            let rests =
                if ask.is_for_an_answer() || !fault.reaction().cool_key { rest(key, fault) } else { None };
            tell(&served, &error, fault, rests, begun.elapsed());
            (ask.on_failure)(&error);
            Err(error)
        }
    }
}

/// Whether the caller had less time than the target usually takes: no fault of the target's, and
/// many such callers must not shut it for the others.
fn was_cut_short(
    error: &UpstreamError,
    timers: &Timers,
    candidate: &Candidate,
    ask: &Ask<'_>,
    after: Duration,
) -> bool {
    // For connecting there is a time of its own, which no caller shortens.
    let ran_out = matches!(error, UpstreamError::TimedOut { timer, .. } if *timer != "connect");
    ran_out
        && !timers.allow_no_more_than(after)
        && !candidate.target.is_late(Wait::of(ask.request.stream), after, Instant::now())
}

/// What the key is in for; gives how long.
fn rest(key: Picked<Secret>, fault: Fault) -> Option<Duration> {
    let now = Instant::now();
    let reaction = fault.reaction();
    let until = if reaction.cool_key {
        key.cool(fault.wait.map(|wait| now + wait), now)
    } else if reaction.quarantine_key {
        let refusal = if fault.class == Class::Quota { Refusal::Quota } else { Refusal::Auth };
        key.quarantine(refusal, now)
    } else {
        None
    };
    until.map(|until| until.saturating_duration_since(now))
}

/// Tells the log of a failed attempt; the only place that does.
fn tell(served: &Served, error: &UpstreamError, fault: Fault, key_rests: Option<Duration>, after: Duration) {
    tracing::warn!(
        provider = %served.provider,
        model = %served.model,
        attempt = served.attempts,
        class = fault.class.label(),
        wait = fault.wait.map(tracing::field::debug),
        unknown = fault.unknown.map(tracing::field::display),
        key_rests = key_rests.map(tracing::field::debug),
        after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
        %error,
        "an attempt failed"
    );
}

/// A call on its way to its first content, for those who judge the target by it.
struct Watched<'a> {
    /// Taken when the outcome is known.
    permit: Option<Permit>,
    call: Option<Call>,
    begun: Instant,
    is_lost: Arc<AtomicBool>,
    candidate: &'a Candidate,
}

impl Watched<'_> {
    fn record(&mut self, outcome: Outcome) {
        if let Some(permit) = self.permit.take() {
            permit.record(outcome, Instant::now());
            self.candidate.target.tell_transitions();
        }
    }

    /// The first content came. How long whole bodies take says nothing of it.
    fn answered(mut self, is_stream: bool) -> Call {
        self.record(if is_stream {
            Outcome::Content { after: self.begun.elapsed() }
        } else {
            Outcome::Answered
        });
        self.call.take().expect("the outcome is known only once")
    }

    fn failed(mut self, fault: Fault) {
        let now = Instant::now();
        let counts = fault.reaction().counts_for_breaker;
        self.record(if counts { Outcome::Failed } else { Outcome::Neutral });
        if counts {
            self.candidate.target.note_failure(now);
        }
        if let Some(call) = self.call.take() {
            let label = fault.class.label();
            if counts { call.failed(label, now) } else { call.refused(label, now) }
        }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if self.permit.is_some() && self.is_lost.load(Ordering::Relaxed) {
            self.record(Outcome::Abandoned { after: self.begun.elapsed() });
        }
    }
}

/// What an answer under way holds.
struct Held {
    slots: Slots,
    candidate: Candidate,
    served: Served,
    begun: Instant,
    deadline: Instant,
    /// And no count of tokens, whose time says nothing of answers.
    is_answer: bool,
}

impl Held {
    /// Books an answer that came to its end.
    fn finish(self, call: Call, usage: Option<Usage>) {
        let now = Instant::now();
        let cost = |price: crate::config::Price| {
            usage.map(|usage| {
                let dollars = |tokens: u64, price: f64| {
                    f64::from(u32::try_from(tokens).unwrap_or(u32::MAX)) * price / 1e6
                };
                dollars(usage.prompt_tokens, price.input) + dollars(usage.completion_tokens, price.output)
            })
        };
        let cost_usd = self.candidate.choice.price.and_then(cost);
        let output_tokens = usage.map(|usage| usage.completion_tokens);
        call.finished(Finished { output_tokens, cost_usd }, now);
        self.candidate.target.health.in_time(now <= self.deadline, now);
        if self.is_answer {
            self.candidate.target.note_total(now - self.begun, now);
        }
        // The request has a line of its own that says who answered; this one is for those who look closer.
        tracing::debug!(
            provider = %self.served.provider,
            model = %self.served.model,
            attempt = self.served.attempts,
            output_tokens,
            in_time = now <= self.deadline,
            after_ms = u64::try_from((now - self.begun).as_millis()).unwrap_or(u64::MAX),
            "an attempt was answered"
        );
        drop(self.slots);
    }

    /// Whether a stream that broke off was later than is usual: it stalled, or its end was due. A
    /// long answer to a caller in a hurry is not late.
    fn was_late(&self, error: &UpstreamError, now: Instant) -> bool {
        let UpstreamError::TimedOut { timer, .. } = error else { return false };
        *timer == "stall" || self.candidate.target.is_late(Wait::End, now - self.begun, now)
    }

    /// The stream, with the slots held and the call watched until it ends or is dropped.
    fn until_its_end(self, call: Call, pieces: PieceStream) -> PieceStream {
        let state = (pieces, Some((self, call)));
        stream::unfold(state, |(mut pieces, mut open)| async move {
            let piece = pieces.next().await?;
            match &piece {
                Ok(Piece::Event(_)) => {}
                Ok(Piece::Complete(end)) => {
                    if let Some((held, call)) = open.take() {
                        held.finish(call, end.usage);
                    }
                }
                Err(error) => {
                    if let Some((held, call)) = open.take() {
                        let now = Instant::now();
                        call.failed(error.label(), now);
                        held.candidate.target.note_failure(now);
                        held.candidate.target.health.in_time(false, now);
                        if held.was_late(error, now) {
                            held.slots.0.timed_out();
                        }
                    }
                }
            }
            Some((piece, (pieces, open)))
        })
        .boxed()
    }
}

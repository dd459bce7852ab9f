//! What an answer counts as.

use std::sync::Arc;
use std::time::Duration;

use super::{Answer, AnswerBody, Namespace, Source};
use crate::chat::ChatReply;
use crate::metrics::{Source as Counted, Usage};

/// Characters a token is taken to have where the provider did not count them.
const CHARS_PER_TOKEN: usize = 4;

/// Counts a request that was answered. `latency` is the time to the whole answer, or to the
/// first event of a stream.
pub(super) fn count(namespace: &Arc<Namespace>, answer: &mut Answer, latency: Duration) {
    let source = match (&answer.source, answer.bypass) {
        (_, Some(reason)) => Counted::Bypass(reason),
        (Source::Exact, None) => Counted::Exact,
        (Source::Semantic { .. }, None) => Counted::Semantic,
        (Source::Stale, None) => Counted::Degraded("stale"),
        (Source::Substitute(substitute), None) => Counted::Degraded(substitute.label()),
        (Source::Upstream { coalesced: true, .. }, None) => Counted::Coalesced,
        (Source::Upstream { coalesced: false, .. }, None) => Counted::Miss,
    };
    let free = matches!(source, Counted::Exact | Counted::Semantic | Counted::Coalesced);
    let saved = match &mut answer.body {
        AnswerBody::Kept(entry) => Some(usage(&entry.reply, &entry.question)),
        AnswerBody::Reply(reply) => Some(usage(reply, "")),
        AnswerBody::Verbatim(whole) => whole.reply.as_ref().map(|reply| usage(reply, "")),
        // A stream that is still under way counts what it saves at its end.
        AnswerBody::Events(events) => {
            if free {
                events.count_savings(namespace);
            }
            None
        }
    };
    namespace.metrics().request(source, latency, saved.filter(|_| free));
}

/// The tokens that a provider counted for an answer that is no single one.
pub(super) fn metered(model: &str, cost: crate::chat::Usage) -> Usage<'_> {
    let crate::chat::Usage { prompt_tokens, completion_tokens } = cost;
    Usage { model, prompt_tokens, completion_tokens, estimated: false }
}

/// The tokens an answer cost, or saves when it is served again.
pub(super) fn usage<'a>(reply: &'a ChatReply, question: &str) -> Usage<'a> {
    let estimate = |text: &str| (text.len() / CHARS_PER_TOKEN) as u64;
    let (prompt_tokens, completion_tokens) = match reply.usage {
        Some(usage) => (usage.prompt_tokens, usage.completion_tokens),
        None => (estimate(question), estimate(&reply.text)),
    };
    Usage { model: &reply.model, prompt_tokens, completion_tokens, estimated: reply.usage.is_none() }
}

//! From an answer to a response, in the dialect of the caller.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::header::{AGE, CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};

use crate::chat::ChatReply;
use crate::dialect::Dialect;
use crate::dialect::openai::reply::{Stamp, TERMINAL};
use crate::gateway::{Answer, AnswerBody, EventTail, Source};
use crate::server::Context;
use crate::server::error::ApiError;
use crate::server::request_id::unique;
use crate::upstream::EventKind;

const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// How the caller wants the answer.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) dialect: Dialect,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) refresh: bool,
}

pub(super) fn respond(context: &Context, answer: Answer, form: Form) -> Response {
    let headers = describe(context, &answer, form);
    let body = match answer.body {
        AnswerBody::Kept(entry) => render(context, &entry.reply, form, true),
        AnswerBody::Reply(reply) => render(context, &reply, form, false),
        AnswerBody::Verbatim(whole) => Body::from(whole.bytes.clone()),
        AnswerBody::Events(events) => Body::from_stream(relay(events, form)),
    };
    (headers, body).into_response()
}

fn render(context: &Context, reply: &ChatReply, form: Form, cached: bool) -> Body {
    let dialect = form.dialect;
    let id = dialect.id(unique());
    let created = context.clock.now().as_secs();
    let stamp = Stamp { id: &id, created, cached };
    if form.stream {
        let frames = dialect.render_stream(reply, &stamp, form.include_usage);
        Body::from_stream(stream::iter(frames.map(Ok::<_, Infallible>)))
    } else {
        Body::from(dialect.render_whole(reply, &stamp))
    }
}

/// A provider's events as they come; a break is told in the caller's dialect, without a terminal event.
fn relay(events: EventTail, form: Form) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let Form { dialect, include_usage, .. } = form;
    stream::unfold(Some(events), move |events| async move {
        let mut events = events?;
        loop {
            return match events.next().await {
                Some(Ok(event)) if event.kind == EventKind::Usage && !include_usage => continue,
                Some(Ok(event)) => Some((Ok(dialect.frame(&event.data)), Some(events))),
                Some(Err(error)) => Some((Ok(ApiError::from(error).to_event(dialect)), None)),
                // Anthropic's terminal is an event as any other, and has passed.
                None if dialect == Dialect::Anthropic => None,
                None => Some((Ok(dialect.frame(TERMINAL)), None)),
            };
        }
    })
}

/// The headers that say where an answer is from (RFC 9211, and `x-refrain-*`).
fn describe(context: &Context, answer: &Answer, form: Form) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(12);
    let content_type = if form.stream && !matches!(answer.body, AnswerBody::Verbatim(_)) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        "text/event-stream"
    } else {
        "application/json"
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    let mut put = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    };
    let id = HeaderName::from_static("x-refrain-entry");
    let source = HeaderName::from_static("x-refrain-source");
    match (&answer.source, &answer.body) {
        (Source::Upstream { served, coalesced }, _) => {
            put(source, "upstream".to_owned());
            put(HeaderName::from_static("x-refrain-provider"), served.provider.to_string());
            put(HeaderName::from_static("x-refrain-model"), served.model.to_string());
            put(HeaderName::from_static("x-refrain-attempts"), served.attempts.to_string());
            if served.is_fallback {
                put(HeaderName::from_static("x-refrain-fallback"), "true".to_owned());
            }
            put(CACHE_STATUS, forwarded(answer, *coalesced, form.refresh));
            if let (true, Some((similarity, why))) = (context.debug, answer.refused) {
                put(HeaderName::from_static("x-refrain-similarity"), format!("{similarity:.4}"));
                put(HeaderName::from_static("x-refrain-refused"), why.to_owned());
            }
        }
        (Source::Substitute(substitute), _) => {
            let layer = substitute.label();
            put(source, layer.to_owned());
            put(CACHE_STATUS, format!("refrain; fwd=miss; detail={layer}"));
            return headers;
        }
        (kept, AnswerBody::Kept(entry)) => {
            let now = context.clock.now();
            let layer = match kept {
                Source::Semantic { similarity, probability } => {
                    put(HeaderName::from_static("x-refrain-similarity"), format!("{similarity:.4}"));
                    if let Some(probability) = probability {
                        put(HeaderName::from_static("x-refrain-probability"), format!("{probability:.4}"));
                    }
                    "semantic"
                }
                Source::Stale => "stale",
                _ => "exact",
            };
            put(source, layer.to_owned());
            put(HeaderName::from_static("x-refrain-provider"), entry.provider.clone());
            put(HeaderName::from_static("x-refrain-model"), entry.reply.model.clone());
            put(AGE, entry.age(now).as_secs().to_string());
            // Below zero once the time is over (RFC 9211, section 2.6).
            let ttl = entry.time_to_live(now).as_secs();
            let sign = if entry.overdue(now).is_zero() { "" } else { "-" };
            let ttl = ttl.max(entry.overdue(now).as_secs());
            put(CACHE_STATUS, format!("refrain; hit; ttl={sign}{ttl}; detail={layer}"));
            put(id, entry.key.to_string());
            return headers;
        }
        _ => {}
    }
    put(id, answer.key.to_string());
    headers
}

fn forwarded(answer: &Answer, coalesced: bool, refresh: bool) -> String {
    let mut status = String::from(match answer.bypass {
        Some(_) => "refrain; fwd=bypass",
        None if refresh => "refrain; fwd=request",
        None => "refrain; fwd=miss",
    });
    if coalesced {
        status += "; collapsed";
    }
    if answer.stored {
        status += "; stored";
    }
    if let Some(reason) = answer.bypass.or(answer.semantic_bypass) {
        status += "; detail=";
        status += reason;
    }
    status
}

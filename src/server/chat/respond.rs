//! From an answer to a response, in the dialect of the caller.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::header::{AGE, CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};

use crate::chat::ChatReply;
use crate::dialect::cross::{self, Translator};
use crate::dialect::openai::reply::{Stamp, TERMINAL};
use crate::dialect::responses::reply::Echo;
use crate::dialect::{Dialect, responses};
use crate::gateway::{Answer, AnswerBody, EventTail, Source};
use crate::server::Context;
use crate::server::error::ApiError;
use crate::server::request_id::unique;
use crate::upstream::EventKind;

const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// How the caller wants the answer.
pub(super) struct Form {
    pub(super) dialect: Dialect,
    /// For an answer to chat completions that is to be told as a response: what it repeats of its
    /// request.
    pub(super) echo: Option<Echo>,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) refresh: bool,
}

pub(super) fn respond(context: &Context, answer: Answer, form: Form) -> Response {
    let headers = describe(context, &answer, &form);
    let body = match answer.body {
        AnswerBody::Kept(entry) => render(context, &entry.reply, &form, true),
        AnswerBody::Reply(reply) => render(context, &reply, &form, false),
        AnswerBody::Verbatim(whole) => verbatim(context, &whole.bytes, &form),
        AnswerBody::Events(events) => Body::from_stream(relay(context, events, form)),
    };
    (headers, body).into_response()
}

fn render(context: &Context, reply: &ChatReply, form: &Form, cached: bool) -> Body {
    let dialect = form.dialect;
    let id = dialect.id(unique());
    let stamp = Stamp { cached, ..stamp(context, &id) };
    match (&form.echo, form.stream) {
        (Some(echo), true) => streamed(responses::reply::render_stream(reply, &stamp, echo).collect()),
        (Some(echo), false) => Body::from(responses::reply::render_whole(reply, &stamp, echo)),
        (None, true) => streamed(dialect.render_stream(reply, &stamp, form.include_usage)),
        (None, false) => Body::from(dialect.render_whole(reply, &stamp)),
    }
}

fn streamed(frames: Vec<Bytes>) -> Body {
    Body::from_stream(stream::iter(frames.into_iter().map(Ok::<_, Infallible>)))
}

fn stamp<'a>(context: &Context, id: &'a str) -> Stamp<'a> {
    Stamp { id, created: context.clock.now().as_secs(), cached: false }
}

/// A provider's whole answer, as it is where it was asked for in the caller's own dialect.
fn verbatim(context: &Context, bytes: &Bytes, form: &Form) -> Body {
    let Some(echo) = &form.echo else { return Body::from(bytes.clone()) };
    let id = form.dialect.id(unique());
    match cross::responses::reply::to_responses(bytes, &stamp(context, &id), echo) {
        Ok(response) => Body::from(response),
        Err(error) => {
            tracing::warn!(%error, "a whole answer has no form as a response; it passes as it is");
            Body::from(bytes.clone())
        }
    }
}

/// A provider's events as they come; a break is told in the caller's dialect, without a terminal event.
fn relay(
    context: &Context,
    events: EventTail,
    form: Form,
) -> impl Stream<Item = Result<Bytes, Infallible>> + use<> {
    let Form { dialect, echo, include_usage, .. } = form;
    let id = dialect.id(unique());
    let translator = echo.map(|echo| Translator::to_responses(&stamp(context, &id), &echo));
    let relay = Relay { events: Some(events), translator, dialect, include_usage, sent: 0 };
    stream::unfold(relay, |mut relay| async move { Some((Ok(relay.next().await?), relay)) })
}

/// A stream on its way to the caller.
struct Relay {
    /// `None` once it has ended.
    events: Option<EventTail>,
    translator: Option<Translator>,
    dialect: Dialect,
    include_usage: bool,
    /// Events that went out.
    sent: u64,
}

impl Relay {
    /// The next frames; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let data = match self.events.as_mut()?.next().await {
                Some(Ok(event)) if event.kind == EventKind::Usage && !self.include_usage => continue,
                Some(Ok(event)) => event.data,
                Some(Err(error)) => {
                    self.events = None;
                    return Some(ApiError::from(error).to_event(self.dialect, self.sent));
                }
                None => {
                    self.events = None;
                    // The terminal of the others is an event as any other, and has passed.
                    if self.dialect != Dialect::OpenAi && self.translator.is_none() {
                        return None;
                    }
                    Bytes::from_static(TERMINAL)
                }
            };
            let Some(translator) = &mut self.translator else { return Some(self.dialect.frame(&data)) };
            match translator.push(&data) {
                Ok(said) if said.is_empty() => {}
                Ok(said) => {
                    self.sent += said.len() as u64;
                    let frames: Vec<_> = said.iter().map(|data| self.dialect.frame(data)).collect();
                    return Some(frames.concat().into());
                }
                Err(error) => {
                    tracing::warn!(%error, "a stream has no form as a response; it breaks off");
                    self.events = None;
                    return Some(ApiError::bad_gateway().to_event(self.dialect, self.sent));
                }
            }
        }
    }
}

/// The headers that say where an answer is from (RFC 9211, and `x-refrain-*`).
fn describe(context: &Context, answer: &Answer, form: &Form) -> HeaderMap {
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

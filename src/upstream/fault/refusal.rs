//! From what a provider said to the class of the fault.

use http::HeaderMap;

use super::body::ErrorBody;
use super::{Class, Fault, Fingerprint, phrases, wait, words};
use crate::clock::Timestamp;

/// What a provider sent in place of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'a> {
    /// Its status; 200 for an error inside a success.
    pub status: u16,
    /// Its headers; those of the stream for an error event.
    pub headers: &'a HeaderMap,
    /// Its body, or the data of the error event. The first 64 KiB are looked at.
    pub body: &'a [u8],
    /// When it came, for waits that are given as a date.
    pub now: Timestamp,
}

/// Says what a refusal is about.
///
/// The order of evidence: a nested type or code that can mean one thing only; the status; whether
/// there is a `Retry-After`; a nested type or code that says no more than a status does; and last
/// the message, which may correct what is still coarse. Anything unknown is the caller's fault as
/// a 4xx and the provider's otherwise, and is marked with a fingerprint.
///
/// Takes any bytes, and never panics.
pub fn classify(refusal: &Refusal<'_>) -> Fault {
    let error = ErrorBody::read(refusal.headers, refusal.body);
    let status = error.status.unwrap_or(refusal.status);
    let (class, recognised) = match error.words.iter().find_map(|word| words::certain(word)) {
        Some(class) => (class, true),
        None => coarse(status, refusal, &error),
    };
    let waits = matches!(class, Class::Capacity | Class::RateLimit);
    let wait = wait::wait(refusal.headers, error.retry_delay.as_deref(), refusal.now)
        .or_else(|| waits.then(|| wait::in_words(&error.message)).flatten());
    let texts = error.words.iter().map(String::as_str).chain([error.message.as_str()]);
    Fault {
        class,
        wait,
        may_retry: should_retry(refusal.headers),
        unknown: (!recognised).then(|| Fingerprint::of(status, texts)),
    }
}

/// The class where no word settles it, and whether anything said so.
fn coarse(status: u16, refusal: &Refusal<'_>, error: &ErrorBody) -> (Class, bool) {
    let said = error.words.iter().find_map(|word| words::vague(word));
    let by_status = of_status(status, refusal, error);
    let class = by_status.or(said).unwrap_or(default(status));
    if let Some(better) = phrases::corrected(class, &error.message) {
        return (better, true);
    }
    // A plain status without a word is no riddle, a word that nobody knows is.
    let plain = error.words.is_empty() && (by_status.is_some() || matches!(status, 500 | 502 | 520..=530));
    (class, said.is_some() || plain)
}

/// What a status says by itself. Some say nothing: 500 and 502 may wrap anything, and a 200 does.
fn of_status(status: u16, refusal: &Refusal<'_>, error: &ErrorBody) -> Option<Class> {
    Some(match status {
        // 499: the caller, that is us, has gone.
        400 | 413 | 415 | 422 | 499 => Class::InvalidRequest,
        // A budget that is full of calls under way says when there is room; an empty one does not.
        402 if wait::retry_after(refusal.headers, refusal.now).is_some() => Class::RateLimit,
        402 => Class::Quota,
        // A page in place of an error comes from something in front, which knows no keys.
        403 if error.is_page => Class::NotServed,
        401 | 403 => Class::Auth,
        404 | 405 | 501 => Class::NotServed,
        408 | 504 | 522 | 524 => Class::Timeout,
        409 | 424 => Class::ServerError,
        429 => Class::RateLimit,
        503 | 529 => Class::Capacity,
        _ => return None,
    })
}

const fn default(status: u16) -> Class {
    if matches!(status, 400..=499) { Class::InvalidRequest } else { Class::ServerError }
}

fn should_retry(headers: &HeaderMap) -> Option<bool> {
    match wait::only(headers, "x-should-retry")? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

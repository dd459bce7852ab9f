//! How long a provider asks to wait.
//!
//! Providers that say when to come again mean it: earlier calls fail and count against the
//! limit. They say it in half a dozen forms, and this reads them all. Garbage is no word, so
//! that our own backoff takes over; and no word is longer than [`MAX`], so that a typo of a
//! provider cannot switch it off.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;

use crate::clock::Timestamp;

/// The longest wait that is believed: a day, the longest reset of a provider's limits.
pub const MAX: Duration = Duration::from_hours(24);

/// Limits that say what is left of them and when they are full again.
const BUCKETS: [(&str, &str); 6] = [
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
];

/// How long to wait from `now`, at most [`MAX`]; `None` when nobody says. In this order: the
/// headers of [`retry_after`]; the longest reset of the limits that are used up, or that do not
/// say what is left; and `retry_delay`, which Google puts into the body.
pub fn wait(headers: &HeaderMap, retry_delay: Option<&str>, now: Timestamp) -> Option<Duration> {
    retry_after(headers, now)
        .or_else(|| BUCKETS.iter().filter_map(|bucket| reset(headers, *bucket, now)).max())
        .or_else(|| retry_delay.and_then(span))
}

/// How long `retry-after-ms`, `x-ms-retry-after-ms` or `retry-after` ask to wait, the first of
/// them that can be read: numbers may have fractions, and a date in the past is zero.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let millis = |name| seconds(only(headers, name)?, 0.001);
    millis("retry-after-ms").or_else(|| millis("x-ms-retry-after-ms")).or_else(|| {
        let text = only(headers, "retry-after")?;
        seconds(text, 1.0).or_else(|| until(httpdate::parse_http_date(text).ok()?, now))
    })
}

/// How long a message asks to wait ("Please try again in 1m30s."), for providers that say it
/// nowhere else.
pub(super) fn in_words(message: &str) -> Option<Duration> {
    let message = message.to_ascii_lowercase();
    ["try again in ", "retry in ", "retry after "].iter().find_map(|phrase| {
        let (_, rest) = message.split_once(phrase)?;
        let mut words = rest.split_ascii_whitespace().map(|word| word.trim_end_matches(['.', ',', ';', ')']));
        let (number, unit) = (words.next()?, words.next().unwrap_or_default());
        span(&format!("{number}{unit}")).or_else(|| span(number))
    })
}

/// The value of a header that is there once. Of two, nobody knows which one is meant.
pub(super) fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    Some(value.to_str().ok()?.trim())
}

fn reset(headers: &HeaderMap, (remaining, reset): (&str, &str), now: Timestamp) -> Option<Duration> {
    let left = only(headers, remaining).and_then(|left| left.parse::<f64>().ok());
    if left.is_some_and(|left| left > 0.0) {
        return None;
    }
    let text = only(headers, reset)?;
    span(text).or_else(|| until(humantime::parse_rfc3339_weak(text).ok()?, now))
}

/// A number of units of so many seconds. Neither negative nor infinite.
fn seconds(text: &str, unit: f64) -> Option<Duration> {
    let seconds = text.parse::<f64>().ok()? * unit;
    Duration::try_from_secs_f64(seconds).ok().map(capped)
}

/// `12ms`, `6s`, `1m30.5s`, or plain seconds.
fn span(text: &str) -> Option<Duration> {
    seconds(text, 1.0).or_else(|| humantime::parse_duration(text).ok().map(capped))
}

fn until(then: SystemTime, now: Timestamp) -> Option<Duration> {
    let then = u64::try_from(then.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()?;
    Some(capped(Timestamp(then).since(now)))
}

fn capped(wait: Duration) -> Duration {
    wait.min(MAX)
}

#[cfg(test)]
mod tests;

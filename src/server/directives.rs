//! What a caller says about caching, in headers.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};

use super::error::ApiError;
use crate::gateway::Directives;
use crate::upstream::Priority;

/// Tags on one answer at most, and characters in one.
const MAX_TAGS: usize = 32;
const MAX_TAG_LENGTH: usize = 128;

/// Reads `Cache-Control`, `x-refrain-ttl` and `x-refrain-tags`.
///
/// Unknown directives of `Cache-Control` mean nothing (RFC 9111, section 5.2); one whose number
/// cannot be read counts as 0, which serves nothing too old. The headers of our own are strict.
pub(super) fn directives(headers: &HeaderMap) -> Result<Directives, ApiError> {
    let mut directives = Directives::default();
    for value in headers.get_all(header::CACHE_CONTROL) {
        for directive in value.to_str().unwrap_or_default().split(',') {
            let (name, argument) = directive.split_once('=').unwrap_or((directive, ""));
            match name.trim().to_ascii_lowercase().as_str() {
                "no-store" => directives.no_store = true,
                "no-cache" => directives.no_cache = true,
                "only-if-cached" => directives.only_if_cached = true,
                "max-age" => {
                    let limit = Duration::from_secs(seconds(argument.trim().trim_matches('"')));
                    directives.max_age = Some(directives.max_age.map_or(limit, |other| other.min(limit)));
                }
                "stale-if-error" => {
                    let window = Duration::from_secs(seconds(argument.trim().trim_matches('"')));
                    directives.stale_if_error = Some(window);
                }
                _ => {}
            }
        }
    }
    if let Some(value) = headers.get("x-refrain-ttl") {
        directives.ttl = Some(duration("x-refrain-ttl", value)?);
    }
    directives.tags = tags(headers)?;
    Ok(directives)
}

/// Delta-seconds (RFC 9111, section 1.2.2): too large a number means "very long".
fn seconds(digits: &str) -> u64 {
    const VERY_LONG: u64 = 1 << 31;
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if all_digits { digits.parse().unwrap_or(VERY_LONG) } else { 0 }
}

/// How long the caller waits for the whole answer (`x-refrain-deadline`), if it says so.
pub(super) fn deadline(headers: &HeaderMap) -> Result<Option<Duration>, ApiError> {
    const NAME: &str = "x-refrain-deadline";
    headers.get(NAME).map(|value| duration(NAME, value)).transpose()
}

/// Whether the request may wait longer than others (`x-refrain-priority: batch`).
pub(super) fn priority(headers: &HeaderMap) -> Result<Priority, ApiError> {
    const NAME: &str = "x-refrain-priority";
    match headers.get(NAME).map(HeaderValue::as_bytes) {
        None | Some(b"interactive") => Ok(Priority::Interactive),
        Some(b"batch") => Ok(Priority::Batch),
        Some(_) => {
            let message = "x-refrain-priority: \"interactive\" or \"batch\" is allowed";
            Err(ApiError::bad_request(message, Some(NAME)))
        }
    }
}

fn duration(name: &'static str, value: &HeaderValue) -> Result<Duration, ApiError> {
    let text = value.to_str().unwrap_or_default().trim();
    let seconds = text.parse().map(Duration::from_secs).ok();
    seconds.or_else(|| humantime::parse_duration(text).ok()).ok_or_else(|| {
        let message = format!("{name} is {text:?}: seconds (3600) or a duration (1h) is allowed");
        ApiError::bad_request(message, Some(name))
    })
}

fn tags(headers: &HeaderMap) -> Result<Vec<String>, ApiError> {
    let mut tags: Vec<String> = Vec::new();
    for value in headers.get_all("x-refrain-tags") {
        let text =
            std::str::from_utf8(value.as_bytes()).map_err(|_| bad_tag("x-refrain-tags is not UTF-8"))?;
        tags.extend(text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned));
    }
    check_tags(tags).map_err(bad_tag)
}

/// Tags as an entry has them, sorted and each once; else what is wrong with them.
pub(super) fn check_tags(tags: impl IntoIterator<Item = String>) -> Result<Vec<String>, String> {
    let mut tags: Vec<String> = tags.into_iter().collect();
    if tags.iter().any(|tag| tag.chars().count() > MAX_TAG_LENGTH) {
        return Err(format!("a tag is longer than {MAX_TAG_LENGTH} characters"));
    }
    tags.sort_unstable();
    tags.dedup();
    if tags.len() > MAX_TAGS {
        return Err(format!("{} tags: at most {MAX_TAGS} are allowed", tags.len()));
    }
    Ok(tags)
}

fn bad_tag(message: impl Into<Cow<'static, str>>) -> ApiError {
    ApiError::bad_request(message, Some("x-refrain-tags"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&'static str, &str)]) -> Result<Directives, ApiError> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        directives(&headers)
    }

    #[test]
    fn reads_cache_control() {
        let read =
            read(&[("cache-control", "No-Cache, max-age=60, x=1"), ("cache-control", "max-age=\"30\"")])
                .unwrap();
        assert!(read.no_cache && !read.no_store && !read.only_if_cached);
        assert_eq!(read.max_age, Some(Duration::from_secs(30)));
    }

    #[test]
    fn a_number_that_cannot_be_read_serves_nothing_old() {
        for value in ["max-age", "max-age=", "max-age=-1", "max-age=soon"] {
            assert_eq!(read(&[("cache-control", value)]).unwrap().max_age, Some(Duration::ZERO), "{value}");
        }
    }

    #[test]
    fn a_number_that_is_too_large_means_very_long() {
        let read = read(&[("cache-control", "max-age=99999999999999999999999")]).unwrap();
        assert_eq!(read.max_age, Some(Duration::from_secs(1 << 31)));
    }

    #[test]
    fn reads_ttl_and_tags() {
        let read = read(&[
            ("x-refrain-ttl", "90"),
            ("x-refrain-tags", "kb:hr, doc:1,,kb:hr"),
            ("x-refrain-tags", "人事"),
        ]);
        let read = read.unwrap();
        assert_eq!(read.ttl, Some(Duration::from_secs(90)));
        assert_eq!(read.tags, ["doc:1", "kb:hr", "人事"]);
    }

    #[test]
    fn refuses_what_it_cannot_read() {
        let many = (0..40).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        for (name, value) in [
            ("x-refrain-ttl", "soon"),
            ("x-refrain-ttl", "-5"),
            ("x-refrain-tags", &"x".repeat(200)),
            ("x-refrain-tags", &many),
        ] {
            assert!(read(&[(name, value)]).is_err(), "{name}: {value}");
        }
    }
}

//! Every row of the providers' errors as a case, one file a provider; and what holds for all.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;
use crate::clock::Timestamp;

mod anthropic;
mod any;
mod azure;
mod bedrock;
mod gemini;
mod local;
mod openai;
mod openrouter;

/// Wed, 07 Oct 2026 12:00:00 GMT.
const NOW: Timestamp = Timestamp(1_791_374_400_000);

/// What a provider sends, and what we make of it.
struct Case {
    /// What it is, for the message of a failed test.
    name: &'static str,
    status: u16,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
    class: Class,
    /// RETRY here, another KEY, the NEXT provider, another MODEL only, or FAIL at once.
    then: &'static str,
    wait: Option<Duration>,
    recognised: bool,
}

const fn case(name: &'static str, status: u16, body: &'static str, class: Class, then: &'static str) -> Case {
    Case { name, status, headers: &[], body, class, then, wait: None, recognised: true }
}

impl Case {
    const fn with(self, headers: &'static [(&'static str, &'static str)]) -> Self {
        Self { headers, ..self }
    }

    const fn waits(self, millis: u64) -> Self {
        Self { wait: Some(Duration::from_millis(millis)), ..self }
    }

    const fn unknown(self) -> Self {
        Self { recognised: false, ..self }
    }
}

fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
    list.iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect()
}

fn fault(status: u16, headers: &HeaderMap, body: &[u8]) -> Fault {
    classify(&Refusal { status, headers, body, now: NOW })
}

fn in_words(reaction: Reaction) -> String {
    let words = [
        (reaction.retry_here, "RETRY"),
        (reaction.next_key, "KEY"),
        (reaction.next_provider, "NEXT"),
        (reaction.next_model && !reaction.next_provider, "MODEL"),
        (reaction.fails_at_once(), "FAIL"),
    ];
    words.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(cases: &[Case]) {
    for case in cases {
        let fault = fault(case.status, &headers(case.headers), case.body.as_bytes());
        assert_eq!(fault.class, case.class, "{}: {fault:?}", case.name);
        assert_eq!(fault.wait, case.wait, "{}: {fault:?}", case.name);
        assert_eq!(in_words(fault.reaction()), case.then, "{}: {fault:?}", case.name);
        assert_eq!(fault.recognised(), case.recognised, "{}: {fault:?}", case.name);
        if case.status == 200 {
            assert!(holds_error(case.body.as_bytes()), "{}", case.name);
        }
    }
}

fn classes(of: impl Fn(Reaction) -> bool) -> Vec<&'static str> {
    Class::ALL.into_iter().filter(|class| of(class.reaction())).map(Class::label).collect()
}

#[test]
fn what_helps_against_what() {
    assert_eq!(classes(|reaction| reaction.retry_here), ["capacity", "connect", "server_error"]);
    assert_eq!(classes(|reaction| reaction.at_once), ["connect"]);
    assert_eq!(classes(|reaction| reaction.next_key), ["rate_limit", "quota", "auth"]);
    assert_eq!(classes(|reaction| reaction.cool_key), ["rate_limit"]);
    assert_eq!(classes(|reaction| reaction.quarantine_key), ["quota", "auth"]);
    let elsewhere =
        ["capacity", "rate_limit", "quota", "auth", "not_served", "timeout", "connect", "server_error"];
    assert_eq!(classes(|reaction| reaction.next_provider), elsewhere);
    assert_eq!(classes(|reaction| reaction.next_model && !reaction.next_provider), ["context_length"]);
    assert_eq!(classes(Reaction::fails_at_once), ["invalid_request", "content_filter"]);
    let unwell = ["capacity", "timeout", "connect", "server_error"];
    assert_eq!(classes(|reaction| reaction.counts_for_breaker), unwell);
    assert_eq!(classes(|reaction| reaction.lowers_limit), ["capacity", "timeout"]);
}

#[test]
fn whoever_may_go_to_another_provider_may_go_to_another_model() {
    for class in Class::ALL {
        let reaction = class.reaction();
        assert!(reaction.next_model || !reaction.next_provider, "{}", class.label());
        assert!(reaction.retry_here || !reaction.at_once, "{}", class.label());
    }
}

#[test]
fn the_provider_has_the_last_word_on_retries() {
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let reaction = |status, body: &str, word| {
        in_words(fault(status, &headers(&[("x-should-retry", word)]), body.as_bytes()).reaction())
    };
    assert_eq!(reaction(529, overloaded, "true"), "RETRY NEXT");
    assert_eq!(reaction(529, overloaded, "false"), "NEXT");
    assert_eq!(reaction(529, overloaded, "perhaps"), "RETRY NEXT");
    assert_eq!(reaction(400, "", "true"), "RETRY");
    assert_eq!(reaction(400, "", "false"), "FAIL");
    assert_eq!(reaction(504, "", "true"), "RETRY NEXT");
    // It may succeed later, with this key: another key is still the better idea.
    assert_eq!(reaction(429, "", "true"), "KEY NEXT");
    assert_eq!(reaction(402, "", "true"), "KEY NEXT");
}

#[test]
fn an_unknown_complaint_has_a_name_that_does_not_tell_it() {
    let body = br#"{"error":{"code":"frobnicated","message":"No frobs left for Jane, try 17"}}"#;
    let one = fault(400, &HeaderMap::new(), body).unknown.unwrap();
    let other = br#"{"error":{"code":"frobnicated","message":"No frobs left for Jane, try 4711"}}"#;
    assert_eq!(fault(400, &HeaderMap::new(), other).unknown, Some(one));
    let other = br#"{"error":{"code":"frobnicated","message":"No frobs left for Joe, try 17"}}"#;
    assert_ne!(fault(400, &HeaderMap::new(), other).unknown, Some(one));
    assert_eq!(format!("{one}").len(), 12);
    assert_eq!(fault(401, &HeaderMap::new(), b"").unknown, None);
}

proptest! {
    #[test]
    fn any_bytes_with_any_status_and_headers(
        status in any::<u16>(),
        body in prop::collection::vec(any::<u8>(), 0..512),
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..16), 4),
    ) {
        let mut headers = HeaderMap::new();
        let names = ["retry-after", "x-should-retry", "x-amzn-errortype", "x-ratelimit-reset-tokens"];
        for (name, value) in names.into_iter().zip(&values) {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.append(name, value);
            }
        }
        let fault = fault(status, &headers, &body);
        prop_assert!(fault.wait.is_none_or(|wait| wait <= wait::MAX));
        let _ = holds_error(&body);
    }

    #[test]
    fn anything_that_looks_like_an_error(
        status in 200_u16..600,
        names in prop::collection::vec(
            prop::sample::select(vec![
                "error", "type", "code", "status", "message", "details", "metadata", "raw", "reason",
                "innererror", "violations", "quotaId", "retryDelay", "choices", "response", "detail",
                "throttlingException",
            ]),
            1..8,
        ),
        leaf in "(\"\\PC{0,12}\"|[0-9]{1,30}|null|\\[\\]|\\{\\})",
    ) {
        let mut body = leaf;
        for (depth, name) in names.into_iter().enumerate() {
            let (open, close) = if depth % 3 == 2 { ("[", "]") } else { ("", "") };
            body = format!("{open}{{\"{name}\":{body}}}{close}");
        }
        let _ = fault(status, &HeaderMap::new(), body.as_bytes());
        let _ = holds_error(body.as_bytes());
    }

    #[test]
    fn the_unknown_gets_the_class_of_its_range(
        status in (200_u16..600).prop_filter("known", |status| {
            !matches!(status, 400..=405 | 408 | 409 | 413 | 415 | 422 | 424 | 429 | 499)
                && !matches!(status, 501 | 503 | 504 | 520..=530)
        }),
        word in "zz[a-z]{1,12}",
    ) {
        let expected =
            if matches!(status, 400..=499) { Class::InvalidRequest } else { Class::ServerError };
        let body = format!(r#"{{"error":{{"type":"{word}","message":"{word} {word}"}}}}"#);
        let fault = fault(status, &HeaderMap::new(), body.as_bytes());
        prop_assert_eq!(fault.class, expected);
        prop_assert!(!fault.recognised());
    }

    #[test]
    fn an_unknown_word_beside_a_known_status_is_told(
        status in prop::sample::select(vec![401_u16, 429, 500, 503]),
    ) {
        let plain = fault(status, &HeaderMap::new(), b"");
        let word = fault(status, &HeaderMap::new(), br#"{"error":{"code":"frobnicated"}}"#);
        prop_assert_eq!(plain.class, word.class);
        prop_assert!(plain.recognised() && !word.recognised());
    }
}

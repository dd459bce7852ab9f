//! What any provider may send, or what may stand in front of it.

use crate::upstream::fault::Class::{
    Auth, Capacity, InvalidRequest, NotServed, Quota, RateLimit, ServerError, Timeout,
};

use super::*;

/// A page, with words in it that would mean something in an error.
const CLOUDFLARE: &str = "<!DOCTYPE html>\n<html lang=\"en-US\"><head><title>api.example.com | Bad gateway</title>\
                          </head><body><h1>Bad gateway</h1>Please try again in 5 minutes. High demand. Prompt is \
                          too long. invalid_request_error</body></html>";

const REFUSALS: &[Case] = &[
    case("400 without a body", 400, "", InvalidRequest, "FAIL"),
    case("401 without a body", 401, "", Auth, "KEY NEXT"),
    case("402 without a body", 402, "", Quota, "KEY NEXT"),
    case("403 without a body", 403, "", Auth, "KEY NEXT"),
    case("404 without a body", 404, "", NotServed, "NEXT"),
    case("429 without anything", 429, "", RateLimit, "KEY NEXT"),
    case("429 in a text", 429, "Too Many Requests", RateLimit, "KEY NEXT"),
    case("429, a date", 429, "", RateLimit, "KEY NEXT")
        .with(&[("retry-after", "Wed, 07 Oct 2026 12:00:20 GMT")])
        .waits(20_000),
    case("429, a date of the past", 429, "", RateLimit, "KEY NEXT")
        .with(&[("retry-after", "Wed, 07 Oct 2026 11:00:00 GMT")])
        .waits(0),
    case("429, a garbled header", 429, "", RateLimit, "KEY NEXT").with(&[("retry-after", "soon")]),
    case("500 of a CDN", 500, CLOUDFLARE, ServerError, "RETRY NEXT"),
    case("502 of a CDN", 502, CLOUDFLARE, ServerError, "RETRY NEXT"),
    case("503 of a CDN", 503, CLOUDFLARE, Capacity, "RETRY NEXT"),
    case("504 of a CDN", 504, CLOUDFLARE, Timeout, "NEXT"),
    case("520 of a CDN", 520, CLOUDFLARE, ServerError, "RETRY NEXT"),
    case("522 of a CDN", 522, CLOUDFLARE, Timeout, "NEXT"),
    case("524 of a CDN", 524, CLOUDFLARE, Timeout, "NEXT"),
    // The page of a firewall knows nothing of keys: no key is put aside for it.
    case("403 of a CDN", 403, CLOUDFLARE, NotServed, "NEXT"),
    case(
        "503 of a proxy",
        503,
        "upstream connect error or disconnect/reset before headers. reset reason: connection failure",
        Capacity,
        "RETRY NEXT",
    ),
    case("a redirect", 302, "", ServerError, "RETRY NEXT").unknown(),
    case("418, a status that nobody knows", 418, "", InvalidRequest, "FAIL").unknown(),
    case("599, a status that nobody knows", 599, "", ServerError, "RETRY NEXT").unknown(),
    case("400, a word that nobody knows", 400, r#"{"error":{"code":"frobnicated"}}"#, InvalidRequest, "FAIL")
        .unknown(),
    case(
        "500, a word that nobody knows",
        500,
        r#"{"error":{"code":"frobnicated"}}"#,
        ServerError,
        "RETRY NEXT",
    )
    .unknown(),
    case("429, a number that nobody knows", 429, r#"{"error":{"code":1302}}"#, RateLimit, "KEY NEXT")
        .unknown(),
    case(
        "a problem as in RFC 9457",
        403,
        r#"{"title":"Forbidden","status":403,"detail":"no"}"#,
        Auth,
        "KEY NEXT",
    ),
    case("text in place of an object", 400, r#""bad request""#, InvalidRequest, "FAIL"),
];

#[test]
fn refusals() {
    check(REFUSALS);
}

#[test]
fn bodies_of_a_200_that_are_no_answer() {
    let none = HeaderMap::new();
    for body in [CLOUDFLARE, "OK", "", "null", "[]", "{}", "17", r#"{"hello":"world"}"#] {
        let fault = fault(200, &none, body.as_bytes());
        assert_eq!(fault.class, ServerError, "{body}");
        assert!(!fault.recognised(), "{body}");
    }
    assert_eq!(Fault::empty_answer().class, ServerError);
    assert_eq!(in_words(Fault::empty_answer().reaction()), "RETRY NEXT");
}

#[test]
fn failures_without_words() {
    assert_eq!(in_words(Fault::of(Class::Connect).reaction()), "RETRY NEXT");
    assert!(Fault::of(Class::Connect).reaction().at_once);
    assert_eq!(in_words(Fault::of(Timeout).reaction()), "NEXT");
    assert!(Fault::of(Timeout).recognised());
}

#[test]
fn bodies_meant_to_hurt() {
    let none = HeaderMap::new();
    let deep = [vec![b'['; 100_000], br#"{"error":"#.repeat(10_000)];
    for body in deep {
        assert_eq!(fault(429, &none, &body).class, RateLimit);
        assert!(!holds_error(&body));
    }
    // Only the beginning is looked at, so what it ends with makes no difference.
    let mut huge = br#"{"error":{"message":""#.to_vec();
    huge.resize(64 * 1024 * 1024, b'x');
    huge.extend(br#"","code":"insufficient_quota"}}"#);
    assert_eq!(fault(429, &none, &huge).class, RateLimit);

    let details = vec![r#"{"violations":[{"quotaId":"PerMinute"}]}"#; 1_000].join(",");
    let many = format!(r#"{{"error":{{"details":[{details}]}}}}"#);
    assert_eq!(fault(200, &none, many.as_bytes()).class, RateLimit);
}

#[test]
fn long_words_are_cut_between_characters() {
    for shift in 0..4 {
        let long = format!("{}{}", "x".repeat(shift), "語".repeat(10_000));
        let body = format!(r#"{{"error":{{"code":"{long}","message":"{long}"}}}}"#);
        assert_eq!(fault(429, &HeaderMap::new(), body.as_bytes()).class, RateLimit);
    }
}

#[test]
fn bytes_that_are_no_text() {
    let none = HeaderMap::new();
    let body = b"\xef\xbb\xbf{\"error\":{\"message\":\"\xff\xfe\",\"type\":\"overloaded_error\"}}";
    assert_eq!(fault(500, &none, body).class, Capacity);
    assert_eq!(fault(500, &none, b"\xff\xfe\x00\x01").class, ServerError);
}

#[test]
fn a_header_that_is_no_text() {
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", HeaderValue::from_bytes(b"\xff").unwrap());
    headers.insert("x-should-retry", HeaderValue::from_bytes(b"\xff").unwrap());
    headers.insert("x-amzn-errortype", HeaderValue::from_bytes(b"\xff").unwrap());
    let fault = fault(429, &headers, b"");
    assert_eq!((fault.class, fault.wait, fault.may_retry), (RateLimit, None, None));
}

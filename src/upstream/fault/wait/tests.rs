use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;

/// Wed, 07 Oct 2026 12:00:00 GMT.
const NOW: Timestamp = Timestamp(1_791_374_400_000);

fn headers(list: &[(&str, &str)]) -> HeaderMap {
    let header = |(name, value): &(&str, &str)| {
        (HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap())
    };
    let mut headers = HeaderMap::new();
    for (name, value) in list.iter().map(header) {
        headers.append(name, value);
    }
    headers
}

fn said(list: &[(&str, &str)]) -> Option<Duration> {
    wait(&headers(list), None, NOW)
}

#[expect(clippy::unnecessary_wraps, reason = "what the parsers give")]
const fn millis(millis: u64) -> Option<Duration> {
    Some(Duration::from_millis(millis))
}

#[test]
fn each_header_in_its_own_form() {
    for (name, value, expected) in [
        ("retry-after-ms", "1500", millis(1_500)),
        ("retry-after-ms", "12.5", Some(Duration::from_micros(12_500))),
        ("x-ms-retry-after-ms", "250", millis(250)),
        ("retry-after", "20", millis(20_000)),
        ("retry-after", "0", millis(0)),
        ("retry-after", "0.5", millis(500)),
        ("retry-after", " 7 ", millis(7_000)),
        ("retry-after", "Wed, 07 Oct 2026 12:00:20 GMT", millis(20_000)),
        ("retry-after", "Wednesday, 07-Oct-26 12:00:20 GMT", millis(20_000)),
        ("retry-after", "Wed, 07 Oct 2026 11:59:00 GMT", millis(0)),
        ("x-ratelimit-reset-requests", "12ms", millis(12)),
        ("x-ratelimit-reset-requests", "6s", millis(6_000)),
        ("x-ratelimit-reset-tokens", "1m30s", millis(90_000)),
        ("x-ratelimit-reset-tokens", "6m0s", millis(360_000)),
        ("x-ratelimit-reset-tokens", "1h2m3s", millis(3_723_000)),
        ("x-ratelimit-reset-tokens", "2m59.56s", millis(179_560)),
        ("x-ratelimit-reset-tokens", "59", millis(59_000)),
        ("anthropic-ratelimit-requests-reset", "2026-10-07T12:00:30Z", millis(30_000)),
        ("anthropic-ratelimit-tokens-reset", "2026-10-07T12:00:30.250Z", millis(30_250)),
        ("anthropic-ratelimit-input-tokens-reset", "2026-10-07T12:00:30+00:00", millis(30_000)),
        ("anthropic-ratelimit-output-tokens-reset", "2026-10-07T11:59:59Z", millis(0)),
    ] {
        assert_eq!(said(&[(name, value)]), expected, "{name}: {value}");
    }
}

#[test]
fn garbage_is_no_word() {
    for value in [
        "",
        "NaN",
        "inf",
        "-inf",
        "infinity",
        "-1",
        "-0.001",
        "1e309",
        "soon",
        "0x10",
        "1,5",
        "5 apples",
        "٣",
        "Wed, 07 Oct",
        "Wed, 99 Oct 2026 12:00:20 GMT",
        "2026-10-07T12:00:20Z",
    ] {
        for name in ["retry-after", "retry-after-ms", "x-ms-retry-after-ms"] {
            assert_eq!(said(&[(name, value)]), None, "{name}: {value}");
        }
    }
    for value in
        ["", "soon", "-6s", "6x", "s", "1m-30s", "99999999999999999999s", "NaN", "2026-13-07T12:00:00Z"]
    {
        for name in ["x-ratelimit-reset-requests", "anthropic-ratelimit-tokens-reset"] {
            assert_eq!(said(&[(name, value)]), None, "{name}: {value}");
        }
    }
}

#[test]
fn a_header_that_is_there_twice_is_no_word() {
    assert_eq!(said(&[("retry-after", "5"), ("retry-after", "50")]), None);
    let doubtful = [("retry-after-ms", "5"), ("retry-after-ms", "5"), ("retry-after", "7")];
    assert_eq!(said(&doubtful), millis(7_000));
}

#[test]
fn no_wait_is_longer_than_a_day() {
    for (name, value) in [
        ("retry-after", "1e9"),
        ("retry-after", "86401"),
        ("retry-after-ms", "1e15"),
        ("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"),
        ("x-ratelimit-reset-tokens", "25h"),
        ("anthropic-ratelimit-tokens-reset", "2999-01-01T00:00:00Z"),
    ] {
        assert_eq!(said(&[(name, value)]), Some(MAX), "{name}: {value}");
    }
    assert_eq!(said(&[("retry-after", "86400")]), Some(MAX));
}

#[test]
fn the_first_word_that_can_be_read_counts() {
    let every = [
        ("retry-after-ms", "1"),
        ("x-ms-retry-after-ms", "2"),
        ("retry-after", "0.003"),
        ("x-ratelimit-reset-requests", "4ms"),
    ];
    for (skipped, expected) in (0..every.len()).zip(1..) {
        assert_eq!(said(&every[skipped..]), millis(expected));
    }
    assert_eq!(said(&[("retry-after-ms", "NaN"), ("retry-after", "5")]), millis(5_000));
    assert_eq!(wait(&headers(&[("retry-after", "5")]), Some("46.5s"), NOW), millis(5_000));
    assert_eq!(
        wait(&HeaderMap::new(), Some("46.578569677s"), NOW),
        Some(Duration::from_nanos(46_578_569_677))
    );
    assert_eq!(wait(&HeaderMap::new(), Some("36000s"), NOW), millis(36_000_000));
    assert_eq!(wait(&HeaderMap::new(), Some("soon"), NOW), None);
    assert_eq!(wait(&HeaderMap::new(), None, NOW), None);
}

#[test]
fn only_limits_that_are_used_up_count_and_the_longest_of_them() {
    let openai = |requests, tokens| {
        said(&[
            ("x-ratelimit-remaining-requests", requests),
            ("x-ratelimit-reset-requests", "6s"),
            ("x-ratelimit-remaining-tokens", tokens),
            ("x-ratelimit-reset-tokens", "1m30s"),
        ])
    };
    assert_eq!(openai("0", "1000"), millis(6_000));
    assert_eq!(openai("9", "0"), millis(90_000));
    assert_eq!(openai("0", "0"), millis(90_000));
    assert_eq!(openai("9", "1000"), None);
    assert_eq!(openai("0", "-5"), millis(90_000));

    let anthropic = said(&[
        ("anthropic-ratelimit-requests-remaining", "49"),
        ("anthropic-ratelimit-requests-reset", "2026-10-07T12:01:00Z"),
        ("anthropic-ratelimit-input-tokens-remaining", "0"),
        ("anthropic-ratelimit-input-tokens-reset", "2026-10-07T12:00:12Z"),
        ("anthropic-ratelimit-output-tokens-remaining", "0"),
        ("anthropic-ratelimit-output-tokens-reset", "2026-10-07T11:00:00Z"),
    ]);
    assert_eq!(anthropic, millis(12_000));
}

#[test]
fn messages_say_it_in_words() {
    for (message, expected) in [
        (
            "Rate limit reached on tokens per min (TPM). Please try again in 11.054s. Visit https://x",
            millis(11_054),
        ),
        ("Please try again in 6ms.", millis(6)),
        ("try again in 1m30s (or later)", millis(90_000)),
        ("Please retry in 45.578s.", millis(45_578)),
        ("Please retry after 20 seconds. For improved latency …", millis(20_000)),
        ("Rate limit is exceeded. Try again in 86400 seconds.", Some(MAX)),
        ("Please try again in 5 minutes", millis(300_000)),
        ("Please try again in a moment", None),
        ("Please try again in ", None),
        ("Please try again later.", None),
        ("try again in -5 seconds", None),
    ] {
        assert_eq!(in_words(message), expected, "{message}");
    }
}

proptest! {
    #[test]
    fn never_panics_and_never_exceeds_a_day(
        values in prop::collection::vec(prop::collection::vec(32_u8..=255, 0..24), 13),
        delay in prop::option::of("\\PC{0,24}"),
        message in "((try again|retry) (in|after) )?\\PC{0,24}",
        now in any::<u64>(),
    ) {
        let names = ["retry-after-ms", "x-ms-retry-after-ms", "retry-after"].into_iter();
        let names = names.chain(BUCKETS.iter().flat_map(|(remaining, reset)| [*remaining, *reset]));
        let mut headers = HeaderMap::new();
        for (name, value) in names.zip(&values) {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.append(HeaderName::from_static(name), value);
            }
        }
        prop_assert!(wait(&headers, delay.as_deref(), Timestamp(now)).is_none_or(|wait| wait <= MAX));
        prop_assert!(in_words(&message).is_none_or(|wait| wait <= MAX));
    }

    #[test]
    fn never_panics_on_what_looks_like_a_wait(
        text in "[-+]?[0-9]{0,21}[.:]?[0-9]{0,3}(e[0-9]{1,3})?(ms|s|m|h|d|y|T|Z| GMT)?([0-9.]{0,21}(s|m))?",
    ) {
        for (remaining, reset) in BUCKETS {
            for names in [[remaining, reset], ["retry-after", "retry-after-ms"]] {
                let wait = said(&names.map(|name| (name, text.as_str())));
                prop_assert!(wait.is_none_or(|wait| wait <= MAX));
            }
        }
    }

    #[test]
    fn what_a_provider_writes_is_read_back(seconds in 0_u64..=86_399, millis in 0_u64..1_000) {
        let wait = Duration::from_secs(seconds) + Duration::from_millis(millis);
        for (name, value) in [
            ("retry-after", format!("{seconds}.{millis:03}")),
            ("retry-after-ms", wait.as_millis().to_string()),
            ("x-ratelimit-reset-tokens", format!("{}m{}.{millis:03}s", seconds / 60, seconds % 60)),
        ] {
            let found = said(&[(name, &value)]).unwrap();
            prop_assert!(found.abs_diff(wait) < Duration::from_micros(1), "{}: {}", name, value);
        }
        let then = UNIX_EPOCH + Duration::from_millis(NOW.0) + Duration::from_secs(seconds);
        for (name, value) in [
            ("retry-after", httpdate::fmt_http_date(then)),
            ("anthropic-ratelimit-tokens-reset", humantime::format_rfc3339_seconds(then).to_string()),
        ] {
            prop_assert_eq!(said(&[(name, &value)]), Some(Duration::from_secs(seconds)));
        }
    }
}

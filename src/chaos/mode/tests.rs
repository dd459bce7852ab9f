use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Every form that the documentation shows, and what it reads as.
pub(super) const FORMS: &[(&str, &str)] = &[
    ("ok", "ok"),
    ("latency:200ms", "latency:200ms"),
    ("latency:200ms:sigma=0.5", "latency:200ms:sigma=0.5"),
    ("latency:60s:status:529", "latency:1m:status:529"),
    ("latency:0s:ok", "latency:0s"),
    ("slow-headers:5s", "slow-headers:5s"),
    ("silent", "silent"),
    ("silent:5s", "silent:5s"),
    ("pace:50ms", "pace:50ms"),
    ("contention:capacity=20:base=200ms", "contention:capacity=20:base=200ms"),
    ("contention:base=200ms:capacity=20", "contention:capacity=20:base=200ms"),
    ("keepalive-only", "keepalive-only:every=1s"),
    ("role-only:every=10ms", "role-only:every=10ms"),
    ("stall:after=3:for=30s", "stall:after=3:for=30s"),
    ("stall:after=3", "stall:after=3"),
    ("eof:after=3", "eof:after=3:cut=event"),
    ("eof:after=3:cut=char", "eof:after=3:cut=char"),
    ("fin:after=3", "fin:after=3"),
    ("reset", "reset"),
    ("reset:after=3", "reset:after=3"),
    ("close", "close"),
    ("close-at-accept", "close-at-accept"),
    ("refuse:for=1s", "refuse:for=1s"),
    ("stale", "stale"),
    ("h2:goaway", "h2:goaway"),
    ("no-continue", "no-continue"),
    ("early:413", "early:413"),
    ("status:529", "status:529"),
    ("status:429:retry-after=2", "status:429:retry-after=2"),
    (
        "status:429:retry-after=\"Wed, 21 Oct 2015 07:28:00 GMT\"",
        "status:429:retry-after=\"Wed, 21 Oct 2015 07:28:00 GMT\"",
    ),
    ("status:503:body=html:x-should-retry=false", "status:503:body=html:x-should-retry=false"),
    ("quota:openai", "error:openai-quota"),
    ("error:ollama-busy", "error:ollama-busy"),
    ("error-in-200", "error-in-200"),
    ("error-in-200:vllm-invalid", "error-in-200:vllm-invalid"),
    ("sse-error:first", "sse-error:first"),
    ("sse-error:after=3:error=openai-quota:done", "sse-error:after=3:error=openai-quota:done"),
    ("redirect:http://10.0.0.1/", "redirect:\"http://10.0.0.1/\""),
    ("empty:choices", "empty:choices"),
    ("finish:length", "finish:length"),
    ("half-json", "half-json"),
    ("invalid-utf8", "invalid-utf8"),
    ("wrong-model", "wrong-model:another-model"),
    ("swapped", "swapped"),
    ("date:+1h", "date:+1h"),
    ("date:-90m", "date:-1h30m"),
    ("content-length:long", "content-length:long"),
    ("encoding:br", "encoding:br"),
    ("gzip-bomb", "gzip-bomb:size=64MiB"),
    ("crlf", "crlf"),
    ("split:1", "split:1"),
    ("long-line:1MiB", "long-line:1MiB"),
    ("endless", "endless:gap=0s"),
    ("huge:1GiB", "huge:1GiB"),
    ("headers:count=10000", "headers:count=10000:size=8B"),
    ("chunks:late", "chunks:late"),
    ("done:twice", "done:twice"),
    ("square:on=10s:off=20s:mode=status:529", "square:on=10s:off=20s:mode=status:529"),
    ("flap:5s:reset", "square:on=5s:off=5s:mode=reset"),
    ("percent:30:status:529", "percent:30:status:529"),
    ("percent:0.5:for=60s:stall:after=1", "percent:0.5:for=1m:stall:after=1"),
    ("header:x-ratelimit-reset-requests=soon:ok", "header:x-ratelimit-reset-requests=soon:ok"),
    (" percent : 30 : square : on = 1s : off = 2s : mode = ok ", "percent:30:square:on=1s:off=2s:mode=ok"),
];

#[test]
fn every_form_is_read_and_written() {
    for (text, written) in FORMS {
        let mode: Mode = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(mode.to_string(), *written, "{text}");
        assert_eq!(written.parse::<Mode>(), Ok(mode), "{text}");
    }
}

#[test]
fn what_is_no_mode_is_refused_in_words() {
    let deep = "percent:1:".repeat(20) + "ok";
    for (text, reason) in [
        ("", "there is no mode ``"),
        ("stal", "there is no mode `stal`"),
        ("latency", "the latency is missing"),
        ("latency:soon", "`soon` is not a duration"),
        ("latency:2years", "is more than a year"),
        ("latency:1s:sigma=-1", "`-1` is not between 0 and 5"),
        ("latency:1s:sigma=NaN", "is not between 0 and 5"),
        ("status:99", "is not a status from 200 to 999"),
        ("status:429:retry-after", "`retry-after` is not understood"),
        ("status:429:body=pdf", "`pdf` is not among the words"),
        ("stall:for=3s", "after=… is missing"),
        ("stall:after=-1", "`-1` is not a number"),
        ("contention:capacity=0:base=1s", "`0` is not a number"),
        ("split:0", "`0` is not a number"),
        ("percent:101:ok", "is not between 0 and 100"),
        ("percent:30", "the mode is missing"),
        ("square:on=1s:off=1s", "the mode is missing"),
        ("quota:nobody", "there is no provider error `nobody-quota`"),
        ("sse-error:last", "`last` is not understood"),
        ("huge:1PiB", "is not a number"),
        ("huge:99999999GiB", "is too large"),
        ("date:1h", "is neither +… nor -…"),
        ("ok:really", "`really` is not understood"),
        ("header:x y=1:ok", "name=value is missing"),
        (&deep, "modes within modes"),
    ] {
        let error = text.parse::<Mode>().expect_err(text).to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

fn durations() -> impl Strategy<Value = Duration> {
    (0..100_000_000_u64).prop_map(Duration::from_micros)
}

fn words<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    select(all)
}

fn provider_errors() -> impl Strategy<Value = ProviderError> {
    select(ProviderError::all().collect::<Vec<_>>())
}

fn statuses() -> impl Strategy<Value = Status> {
    let text = || proptest::option::of("[ -~]{0,12}");
    let headers = vec(("x-[a-z]{1,8}", "[ -~é]{0,12}"), 0..3);
    (200..=999_u16, text(), text(), text(), proptest::option::of(words(Page::ALL)), headers).prop_map(
        |(status, code, kind, message, page, headers)| Status { status, code, kind, message, page, headers },
    )
}

fn leaves() -> impl Strategy<Value = Mode> {
    let after = || 0..1000_usize;
    let timed = prop_oneof![
        durations().prop_map(Mode::SlowHeaders),
        proptest::option::of(durations()).prop_map(Mode::Silent),
        durations().prop_map(Mode::Pace),
        (1..u32::MAX, durations()).prop_map(|(capacity, base)| Mode::Contention { capacity, base }),
        durations().prop_map(|every| Mode::KeepaliveOnly { every }),
        durations().prop_map(|every| Mode::RoleOnly { every }),
        (after(), proptest::option::of(durations())).prop_map(|(after, pause)| Mode::Stall { after, pause }),
        durations().prop_map(|pause| Mode::Refuse { pause }),
        durations().prop_map(|gap| Mode::Endless { gap }),
        (any::<bool>(), durations()).prop_map(|(ahead, by)| Mode::Date { ahead, by }),
    ];
    let broken = prop_oneof![
        (after(), words(Cut::ALL)).prop_map(|(after, cut)| Mode::Eof { after, cut }),
        after().prop_map(|after| Mode::Fin { after }),
        proptest::option::of(after()).prop_map(|after| Mode::Reset { after }),
        words(Http2::ALL).prop_map(Mode::Http2),
        (200..=999_u16).prop_map(Mode::Early),
        statuses().prop_map(Mode::Status),
        provider_errors().prop_map(Mode::Error),
        proptest::option::of(provider_errors()).prop_map(Mode::ErrorIn200),
        (proptest::option::of(after()), proptest::option::of(provider_errors()), any::<bool>())
            .prop_map(|(after, error, done)| Mode::SseError { after, error, done }),
        ".{0,20}".prop_map(Mode::Redirect),
    ];
    let bent = prop_oneof![
        words(Empty::ALL).prop_map(Mode::Empty),
        "[ -~]{0,12}".prop_map(Mode::Finish),
        ".{0,12}".prop_map(Mode::WrongModel),
        words(Length::ALL).prop_map(Mode::ContentLength),
        words(Coding::ALL).prop_map(Mode::Encoding),
        (0..=1_u64 << 36).prop_map(|size| Mode::GzipBomb { size }),
        words(Form::ALL).prop_map(Mode::Form),
        (1..usize::MAX).prop_map(Mode::Split),
        (0..=1_usize << 28).prop_map(Mode::LongLine),
        (0..=1_u64 << 36).prop_map(Mode::Huge),
        (after(), after()).prop_map(|(count, size)| Mode::Headers { count, size }),
        words(Chunks::ALL).prop_map(Mode::Chunks),
        words(Done::ALL).prop_map(Mode::Done),
        select(vec![
            Mode::Ok,
            Mode::Close,
            Mode::CloseAtAccept,
            Mode::Stale,
            Mode::NoContinue,
            Mode::HalfJson,
            Mode::InvalidUtf8,
            Mode::Swapped,
        ]),
    ];
    prop_oneof![timed, broken, bent]
}

pub(in crate::chaos) fn modes() -> impl Strategy<Value = Mode> {
    leaves().prop_recursive(3, 8, 1, |inner| {
        let boxed = move || inner.clone().prop_map(Box::new);
        prop_oneof![
            (durations(), 0.0..5.0, boxed()).prop_map(|(median, sigma, then)| Mode::Latency {
                median,
                sigma,
                then
            }),
            (durations(), durations(), boxed()).prop_map(|(on, off, mode)| Mode::Square { on, off, mode }),
            (0.0..=100.0, proptest::option::of(durations()), boxed())
                .prop_map(|(percent, span, mode)| Mode::Percent { percent, span, mode }),
            ("x-[a-z]{1,8}", ".{0,12}", boxed()).prop_map(|(name, value, mode)| Mode::Header {
                name,
                value,
                mode
            }),
        ]
    })
}

proptest! {
    #[test]
    fn a_mode_reads_back_from_its_own_text(mode in modes()) {
        prop_assert_eq!(mode.to_string().parse::<Mode>(), Ok(mode));
    }

    #[test]
    fn no_text_is_too_strange_to_be_refused(text in "[a-z0-9:=\"| é*#;-]{0,40}") {
        let _ = text.parse::<Mode>();
    }
}

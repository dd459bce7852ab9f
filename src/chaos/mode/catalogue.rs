//! The modes in a line each, for people at a command line.

use super::Mode;

/// An example of each mode, and what it does.
const CATALOGUE: &[(&str, &str)] = &[
    ("ok", "the answer"),
    ("latency:200ms:sigma=0.5", "the head comes late, log-normal about the median; a mode may follow"),
    ("slow-headers:5s", "a status line at once, the other headers late"),
    ("silent:5s", "a head at once, the body late, or never without a time"),
    ("pace:50ms", "a pause before each piece of content"),
    (
        "contention:capacity=20:base=200ms",
        "late instead of failing, the more so the more requests are under way",
    ),
    ("keepalive-only:every=1s", "comments for ever, and no content"),
    ("role-only:every=1s", "a role, then empty deltas for ever"),
    ("stall:after=3:for=30s", "a pause in mid-answer, or silence for ever without a time"),
    ("eof:after=3:cut=line", "an early end that HTTP takes for a good one; cut: event, line, char"),
    ("fin:after=3", "the connection closes within the body"),
    ("reset:after=3", "a TCP reset within the body, or before the head without after"),
    ("close", "the request is read, and the connection closes without a byte"),
    ("close-at-accept", "the connection closes as soon as it is open"),
    ("refuse:for=1s", "nobody listens for a while"),
    ("stale", "a connection answers once, and closes when it is used again"),
    ("h2:goaway", "failures of HTTP/2 with prior knowledge: goaway, refused, reset"),
    ("no-continue", "expect: 100-continue is never answered"),
    ("early:413", "an error while the request's body is still under way"),
    (
        "status:429:retry-after=2",
        "an error in the caller's dialect; code, type, message, body=html|text|empty, headers",
    ),
    ("error:openai-rate-limit", "an error in a provider's own words"),
    ("quota:openai", "the quota is used up, in a provider's own words"),
    ("error-in-200:openai-quota", "an error under a status that says all is well"),
    ("sse-error:after=3:error=openai-quota:done", "an error as an event: first, or after pieces of content"),
    ("redirect:http://10.0.0.1/", "a 302, by default to where clouds keep credentials"),
    ("empty:choices", "a success without an answer: choices, content, missing, body"),
    ("finish:length", "another finish reason; null is none"),
    ("half-json", "JSON that is cut in the middle"),
    ("invalid-utf8", "bytes in the content that are no text"),
    ("wrong-model:other", "the answer names another model"),
    ("swapped", "the answer to the attempt before this one"),
    ("date:+1h", "a clock that is off, in the date header"),
    ("content-length:long", "a length that is not that of the body: long, short, both"),
    ("encoding:gzip", "a coding that nobody asked for: gzip, br, zstd, mislabelled, unlabelled, truncated"),
    ("gzip-bomb:size=64MiB", "a thousandth of that on the wire"),
    ("bom", "a byte order mark before the body"),
    ("crlf", "event lines that end in CR LF"),
    ("cr", "event lines that end in CR"),
    ("no-space", "event lines without a space after the colon"),
    ("multi-line", "several data lines in one event"),
    ("split:1", "chunks and writes of that many bytes"),
    ("long-line:1MiB", "content of that size in one event"),
    ("endless:gap=10ms", "content without end"),
    ("huge:1GiB", "content of that size, and then a good end"),
    ("headers:count=10000:size=8B", "more headers than anyone needs"),
    ("chunks:late", "events in disorder: duplicate, reordered, late, no-usage"),
    ("done:twice", "a terminal event that is more or less than it should be: twice, then-more, missing"),
    ("square:on=10s:off=20s:mode=status:529", "another mode in bursts, the first at once"),
    ("flap:5s:reset", "the same with pauses as long as the bursts"),
    ("percent:30:for=60s:status:529", "another mode for a part of the attempts"),
    ("header:x-note=hello:ok", "one more header on another mode's answer"),
];

impl Mode {
    /// An example of each mode in its text form, and what it does in a line.
    pub fn catalogue() -> &'static [(&'static str, &'static str)] {
        CATALOGUE
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::Form;
    use super::super::tests::FORMS;
    use super::*;

    fn name(text: &str) -> &str {
        text.split(':').next().unwrap_or(text).trim()
    }

    #[test]
    fn every_example_is_a_mode() {
        for (example, line) in Mode::catalogue() {
            example.parse::<Mode>().unwrap_or_else(|error| panic!("{error}"));
            assert!(!line.is_empty() && !line.ends_with('.'), "{example}");
        }
    }

    #[test]
    fn every_mode_has_an_example() {
        let listed: BTreeSet<&str> = Mode::catalogue().iter().map(|(example, _)| name(example)).collect();
        let forms = FORMS.iter().map(|(text, _)| name(text)).chain(Form::ALL.iter().map(|form| form.word()));
        let missing: Vec<&str> = forms.filter(|name| !listed.contains(name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}

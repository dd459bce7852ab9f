//! What is wrong with a target, in words that say what to do.

use std::time::{Duration, UNIX_EPOCH};

use crate::clock::Timestamp;
use crate::upstream::UpstreamError;
use crate::upstream::fault::{Class, Fault};

/// A first content that takes longer is worth a word.
const SLOW: Duration = Duration::from_secs(5);

/// Who was asked, and what came of it.
pub(super) struct Asked<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
    /// "key 2"
    pub(super) key: Option<&'a str>,
    pub(super) took: Duration,
    /// The provider's own words.
    pub(super) said: Option<String>,
    pub(super) now: Timestamp,
}

/// A target that answers.
pub(super) fn answered(after: Duration) -> String {
    let time = short(after);
    if after < SLOW {
        format!("answers after {time}")
    } else {
        format!("answers, but {time} to the first content")
    }
}

/// One that does not.
pub(super) fn wrong(error: &UpstreamError, asked: &Asked<'_>) -> String {
    let Asked { provider, took, .. } = asked;
    match error {
        UpstreamError::Connect { reason, .. } => no_connection(reason, provider),
        UpstreamError::TimedOut { timer: "connect", .. } => format!(
            "no connection within {}: is providers.{provider}.url right, and does a firewall let it pass?",
            short(*took)
        ),
        UpstreamError::TimedOut { .. } => {
            format!("no content within {}: it takes the call and does not answer", short(*took))
        }
        UpstreamError::Status { status, fault, .. } => {
            let meaning = refused(*status, *fault, asked);
            match &asked.said {
                Some(said) => format!("{meaning}; it says: {said}"),
                None => meaning,
            }
        }
        UpstreamError::Broken { reason, .. } => {
            format!(
                "what it sends is no answer ({reason}): does providers.{provider}.url lead to OpenAI's API?"
            )
        }
        other => other.to_string(),
    }
}

fn no_connection(reason: &str, provider: &str) -> String {
    let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    if says(&["refused"]) {
        "no connection: refused: is it running?".to_owned()
    } else if says(&["dns", "lookup"]) {
        format!("no connection: its name cannot be looked up: is providers.{provider}.url right?")
    } else if says(&["certificate"]) {
        format!("no connection: its certificate is not accepted ({reason})")
    } else {
        format!("no connection: {reason}")
    }
}

fn refused(status: u16, fault: Fault, asked: &Asked<'_>) -> String {
    let Asked { provider, model, key, said, now, .. } = asked;
    let on_key = key.map(|key| format!(" on {key}")).unwrap_or_default();
    let waits = fault.wait.map(|wait| format!(" for {}", span(wait))).unwrap_or_default();
    // An error inside a success has no status that says anything.
    let with = if status == 200 { String::new() } else { format!(" (status {status})") };
    match fault.class {
        Class::Quota => {
            let until = fault.wait.map(|wait| format!("; the provider says until {}", date(now.after(wait))));
            format!("quota exhausted{on_key}: top up, or wait{}", until.unwrap_or_default())
        }
        Class::Auth => match key {
            Some(key) => format!("{key} is not accepted{with}"),
            None => format!("it wants a key{with}: set providers.{provider}.api_key"),
        },
        Class::RateLimit => format!("rate limited{waits}{on_key}"),
        Class::Capacity => format!("no capacity{waits}{with}: for anybody, so try again later"),
        Class::NotServed if names_a_model(said.as_deref(), model) => {
            format!("the provider has no model {model:?}")
        }
        Class::NotServed => format!("it does not serve this here{with}: is providers.{provider}.url right?"),
        Class::InvalidRequest | Class::ContextLength | Class::ContentFilter => {
            format!("it refuses the question{with}")
        }
        Class::Timeout => format!("it gave up before it had an answer{with}"),
        Class::Connect | Class::ServerError if (300..400).contains(&status) => {
            format!("it sends callers elsewhere{with}: is providers.{provider}.url right?")
        }
        Class::Connect | Class::ServerError => format!("it failed{with}"),
    }
}

/// Whether a "not found" is about the model, and not about the path.
fn names_a_model(said: Option<&str>, model: &str) -> bool {
    let said = said.unwrap_or_default().to_lowercase();
    [&*model.to_lowercase(), "model", "deployment"].iter().any(|word| said.contains(word))
}

/// A time that was measured.
fn short(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

/// A time to wait, not too short.
fn span(time: Duration) -> String {
    match time.as_millis().div_ceil(1000) {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3600)),
    }
}

/// In UTC, to the second.
fn date(time: Timestamp) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(time.as_secs())).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use http::HeaderMap;

    use super::*;
    use crate::chaos::ProviderError;
    use crate::upstream::fault::{Refusal, classify};

    const NOON: Timestamp = Timestamp(1_800_000_000_000);

    fn provider() -> Arc<str> {
        "openai".into()
    }

    fn asked(key: Option<&'static str>, said: &str) -> Asked<'static> {
        let said = (!said.is_empty()).then(|| said.to_owned());
        Asked { provider: "openai", model: "big-9", key, took: Duration::from_secs(15), said, now: NOON }
    }

    fn status(status: u16, fault: Fault) -> UpstreamError {
        UpstreamError::Status { provider: provider(), status, body: Bytes::new(), fault }
    }

    fn waiting(class: Class, wait: u64) -> Fault {
        Fault { wait: Some(Duration::from_secs(wait)), ..Fault::of(class) }
    }

    #[test]
    fn how_fast() {
        assert_eq!(answered(Duration::from_millis(412)), "answers after 412 ms");
        assert_eq!(answered(Duration::from_millis(1_249)), "answers after 1.2 s");
        assert_eq!(answered(Duration::from_millis(8_100)), "answers, but 8.1 s to the first content");
    }

    #[test]
    fn what_a_refusal_means() {
        let key = Some("key 2");
        for (status_code, fault, key, said, words) in [
            (429, Fault::of(Class::Quota), key, "", "quota exhausted on key 2: top up, or wait"),
            (
                429,
                waiting(Class::Quota, 3_600),
                key,
                "",
                "quota exhausted on key 2: top up, or wait; the provider says until 2027-01-15T09:00:00Z",
            ),
            (402, Fault::of(Class::Quota), None, "", "quota exhausted: top up, or wait"),
            (401, Fault::of(Class::Auth), key, "", "key 2 is not accepted (status 401)"),
            (
                401,
                Fault::of(Class::Auth),
                None,
                "",
                "it wants a key (status 401): set providers.openai.api_key",
            ),
            (429, waiting(Class::RateLimit, 20), key, "", "rate limited for 20 s on key 2"),
            (429, waiting(Class::RateLimit, 130), None, "", "rate limited for 3 min"),
            (429, waiting(Class::RateLimit, 7_201), None, "", "rate limited for 3 h"),
            (429, Fault::of(Class::RateLimit), None, "", "rate limited"),
            (
                529,
                Fault::of(Class::Capacity),
                key,
                "",
                "no capacity (status 529): for anybody, so try again later",
            ),
            (200, Fault::of(Class::Capacity), key, "", "no capacity: for anybody, so try again later"),
            (
                404,
                Fault::of(Class::NotServed),
                key,
                "The model `big-9` does not exist",
                "the provider has no model \"big-9\"; it says: The model `big-9` does not exist",
            ),
            (
                404,
                Fault::of(Class::NotServed),
                key,
                "Not Found",
                "it does not serve this here (status 404): is providers.openai.url right?; it says: Not Found",
            ),
            (
                302,
                Fault::of(Class::ServerError),
                key,
                "",
                "it sends callers elsewhere (status 302): is providers.openai.url right?",
            ),
            (500, Fault::of(Class::ServerError), key, "boom", "it failed (status 500); it says: boom"),
        ] {
            assert_eq!(wrong(&status(status_code, fault), &asked(key, said)), words);
        }
    }

    #[test]
    fn whatever_providers_send_has_words_of_its_class() {
        for error in ProviderError::all() {
            let refusal = Refusal {
                status: error.status(),
                headers: &HeaderMap::new(),
                body: error.body().as_bytes(),
                now: NOON,
            };
            let fault = classify(&refusal);
            let said = crate::upstream::fault::message(error.body().as_bytes())
                .unwrap_or_default()
                .replace('\n', " ");
            let words = wrong(&status(error.status(), fault), &asked(Some("key 2"), &said));
            let expected = match fault.class {
                Class::Quota => "top up",
                Class::Auth => "key 2 is not accepted",
                Class::RateLimit => "rate limited",
                Class::Capacity => "no capacity",
                _ => "",
            };
            assert!(words.contains(expected) && !words.contains('\n'), "{error:?}: {words}");
        }
    }

    #[test]
    fn without_an_answer() {
        let connect = |reason: &str| UpstreamError::Connect { provider: provider(), reason: reason.into() };
        let timed_out = |timer| UpstreamError::TimedOut { provider: provider(), timer };
        for (error, words) in [
            (
                connect("tcp connect error: Connection refused (os error 111)"),
                "no connection: refused: is it running?",
            ),
            (connect("dns error: failed to lookup address"), "is providers.openai.url right?"),
            (connect("invalid peer certificate: UnknownIssuer"), "UnknownIssuer"),
            (connect("connection reset"), "no connection: connection reset"),
            (timed_out("connect"), "no connection within 15.0 s: is providers.openai.url right"),
            (timed_out("first_content"), "no content within 15.0 s"),
            (
                UpstreamError::Broken { provider: provider(), reason: "no JSON".into() },
                "what it sends is no answer (no JSON): does providers.openai.url lead to OpenAI's API?",
            ),
        ] {
            let said = wrong(&error, &asked(None, ""));
            assert!(said.contains(words), "{said}");
        }
    }
}

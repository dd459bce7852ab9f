//! What was tried, and what came of it.

use std::time::Duration;

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::asked::Asked;

/// Keys that begin so belong to tests, and are recorded as they are.
const TEST_KEY: &str = "test-";

/// One request to a model, from its head to the last byte of its answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Attempt {
    /// From 1, in the order of arrival.
    pub number: u64,
    /// From the server's start to the end of the request's head.
    #[serde(rename = "at_ms", serialize_with = "millis")]
    pub at: Duration,
    /// Until the answer was sent, or given up; `None` while it is under way.
    #[serde(rename = "took_ms", serialize_with = "optional_millis")]
    pub took: Option<Duration>,
    /// The path asked for; empty on HTTP/2.
    pub path: String,
    /// The model asked for; empty when the body was not read.
    pub model: String,
    /// A key that begins with `test-`; of any other, the first 4 bytes of its SHA-256. Empty without.
    pub key: String,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// What the attempt met, bursts and percentages resolved.
    pub mode: String,
    /// The status sent; `None` when not a byte was.
    pub status: Option<u16>,
    /// Bytes written to the socket, head included.
    pub bytes: u64,
    /// The client closed, reset or half-closed the connection before its answer was sent.
    pub client_closed: bool,
}

impl Attempt {
    /// Notes what the body says.
    pub(super) fn asks(&mut self, asked: &Asked) {
        self.model.clone_from(&asked.model);
        self.stream = asked.stream;
    }
}

/// A key as it may be written down.
pub(super) fn fingerprint(key: &str) -> String {
    if key.is_empty() || key.starts_with(TEST_KEY) {
        return key.to_owned();
    }
    format!("sha256:{}", hex::encode(&Sha256::digest(key)[..4]))
}

fn millis<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    // Microseconds are as fine as anyone reads.
    serializer.serialize_f64((duration.as_secs_f64() * 1e6).round() / 1e3)
}

#[expect(clippy::ref_option, reason = "the signature that serde calls")]
fn optional_millis<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => millis(duration, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_key_is_never_written_down() {
        assert_eq!(fingerprint("test-a"), "test-a");
        assert_eq!(
            fingerprint("sk-secret"),
            "sha256:".to_owned() + &hex::encode(Sha256::digest("sk-secret"))[..8]
        );
        assert_eq!(fingerprint(""), "");
    }

    #[test]
    fn as_json_times_are_milliseconds() {
        let attempt = Attempt { at: Duration::from_micros(1_500), ..Attempt::default() };
        let json = serde_json::to_value(&attempt).unwrap();
        assert_eq!((&json["at_ms"], &json["took_ms"]), (&1.5.into(), &serde_json::Value::Null));
    }
}

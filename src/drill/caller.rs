//! A caller: asks one question over HTTP, and notes what came.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use sse_stream::SseByteStream;
use tokio::time::{Instant, timeout};

use super::figures::{Ending, Sample, Source};
use super::load::Arrival;
use super::scenario::MODEL;

/// So long after the deadline nothing more is expected. Far beyond what a promise allows, so that
/// a service that forgets its deadline is seen to do so.
const HANGS: Duration = Duration::from_secs(10);

/// Asks the service. Clones share connections.
#[derive(Clone)]
pub(super) struct Caller {
    client: Client,
    url: String,
    patience: Duration,
}

/// An answer, as far as it came.
struct Heard {
    ending: Ending,
    first_content: Option<Instant>,
    source: Source,
}

impl Caller {
    /// A caller of the service at `address`, who leaves some time after the deadline.
    pub(super) fn new(address: SocketAddr, deadline: Duration) -> reqwest::Result<Self> {
        // Another part of the process may have installed it already: the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().tcp_nodelay(true).tls_certs_only([]).build()?;
        Ok(Self { client, url: format!("http://{address}/v1/chat/completions"), patience: deadline + HANGS })
    }

    /// Asks what was to be asked at `start` and its time, and reads the answer to its end. Times are
    /// from when it was due, so a late generator counts against the service and not for it.
    pub(super) async fn ask(self, arrival: Arrival, start: Instant) -> Sample {
        let due = start + arrival.at;
        let late = due.elapsed();
        let heard =
            timeout(self.patience, self.exchange(&arrival)).await.unwrap_or_else(|_| Heard::nothing());
        Sample {
            due: arrival.at,
            late,
            question: arrival.question,
            ending: heard.ending,
            first_content: heard.first_content.map(|at| at - due),
            total: due.elapsed(),
            source: heard.source,
        }
    }

    async fn exchange(&self, arrival: &Arrival) -> Heard {
        let question = arrival.text();
        let mut body = json!({ "model": MODEL, "messages": [{ "role": "user", "content": question }] });
        if arrival.stream {
            body["stream"] = true.into();
            // Without its usage an answer is kept for streams alone.
            body["stream_options"] = json!({ "include_usage": true });
        }
        let request = self.client.post(&self.url).header(CONTENT_TYPE, "application/json");
        let Ok(response) = request.body(body.to_string()).send().await else { return Heard::nothing() };
        let status = response.status();
        if !status.is_success() {
            // Its words are for people; it only has to end.
            let ending = match response.bytes().await {
                Ok(_) => Ending::Refused(status.as_u16()),
                Err(_) => Ending::Lost,
            };
            return Heard { ending, ..Heard::nothing() };
        }
        let source = source(response.headers());
        let (said, first_content) =
            if arrival.stream { streamed(response).await } else { whole(response).await };
        // The providers repeat the question.
        let ending = match said {
            Some(text) if text == question => Ending::Answered,
            Some(_) => Ending::Wrong,
            None => Ending::Broken,
        };
        Heard { ending, first_content, source }
    }
}

impl Heard {
    fn nothing() -> Self {
        Self { ending: Ending::Lost, first_content: None, source: Source::default() }
    }
}

/// The text of a whole answer, which is its own first content; no text when it broke off.
async fn whole(response: Response) -> (Option<String>, Option<Instant>) {
    let Ok(body) = response.bytes().await else { return (None, None) };
    let reply: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = reply["choices"][0]["message"]["content"].as_str().map(str::to_owned);
    (text, Some(Instant::now()))
}

/// The text of a stream, if its terminal event came, and when its first content did.
async fn streamed(response: Response) -> (Option<String>, Option<Instant>) {
    let mut events = SseByteStream::new(response.bytes_stream()).boxed();
    let (mut text, mut first_content) = (String::new(), None);
    while let Some(Ok(event)) = events.next().await {
        let data = event.data.unwrap_or_default();
        if data == "[DONE]" {
            return (Some(text), first_content);
        }
        let event: Value = serde_json::from_str(&data).unwrap_or_default();
        let piece = event["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
        if !piece.is_empty() {
            first_content.get_or_insert_with(Instant::now);
            text.push_str(piece);
        }
    }
    (None, first_content)
}

/// Who answered, by the service's own word.
fn source(headers: &HeaderMap) -> Source {
    let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kept = |name: &str, is_hit: bool| Source { name: name.to_owned(), is_hit, is_degraded: !is_hit };
    match said("x-refrain-source") {
        "exact" | "semantic" => kept("memory", true),
        "stale" => kept("memory, past its time", false),
        "upstream" => Source {
            name: format!("{} ({})", said("x-refrain-provider"), said("x-refrain-model")),
            is_hit: false,
            is_degraded: said("x-refrain-fallback") == "true",
        },
        other => kept(other, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &[(&'static str, &str)]) -> Source {
        let headers = headers
            .iter()
            .map(|(name, value)| (reqwest::header::HeaderName::from_static(name), value.parse().unwrap()));
        source(&headers.collect())
    }

    #[test]
    fn headers_say_who_answered() {
        let big = [("x-refrain-source", "upstream"), ("x-refrain-provider", "a"), ("x-refrain-model", "big")];
        assert_eq!(of(&big), Source { name: "a (big)".into(), is_hit: false, is_degraded: false });
        assert!(of(&[&big[..], &[("x-refrain-fallback", "true")]].concat()).is_degraded);
        assert_eq!(
            of(&[("x-refrain-source", "exact"), ("x-refrain-provider", "a")]),
            Source { name: "memory".into(), is_hit: true, is_degraded: false }
        );
        for past in ["stale", "related", "rules"] {
            let source = of(&[("x-refrain-source", past)]);
            assert!(source.is_degraded && !source.is_hit, "{source:?}");
        }
    }
}

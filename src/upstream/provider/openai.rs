//! Anything that speaks OpenAI's chat API.
//!
//! The caller's body passes as it is, with only the model's name mapped; the answer passes as
//! it is too, and is read on the way.
//!
//! The client does less than usual clients do, on purpose. It follows no redirect (a key must
//! not travel to another host), retries nothing that a provider may have begun to work on, and
//! takes no proxy from the environment (`HTTP_PROXY` must not get the questions of a local
//! model; where a proxy is needed, `providers.*.url` names it).

mod events;
mod limit;

use std::error::Error as _;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::StreamExt;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, redirect};
use uuid::Uuid;

use super::{Provider, pieces};
use crate::chat::ChatRequest;
use crate::clock::Clock;
use crate::config::{self, Secret};
use crate::dialect::openai::reply::{Stamp, parse_whole, render_whole};
use crate::upstream::fault::{Refusal, classify};
use crate::upstream::{Body, Piece, PieceStream, UpstreamError, Whole};

/// Of a refusal's body this much is kept, in bytes.
const MAX_REFUSAL: usize = 64 * 1024;

/// Idle connections are closed before the providers' own limits, which begin at about a minute.
const POOL_IDLE: Duration = Duration::from_secs(30);

/// A silent HTTP/2 connection under way is asked for a sign of life after this long.
const PING: Duration = Duration::from_secs(20);

/// A provider behind OpenAI's API.
pub struct OpenAi {
    name: Arc<str>,
    url: String,
    client: Client,
    max_reply: u64,
    clock: Clock,
}

impl OpenAi {
    /// A provider at `url` (up to and without `/chat/completions`). Connects to nothing yet.
    ///
    /// Fails with the reason when `url` is no URL, or (for `https` only) the system has no root
    /// certificates.
    pub fn try_new(name: &str, url: &str, settings: &config::Upstream, clock: Clock) -> Result<Self, String> {
        // Another part of the process may have installed it already: the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = Client::builder()
            .user_agent(concat!("refrain/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(settings.connect_timeout)
            .tcp_nodelay(true)
            .pool_idle_timeout(POOL_IDLE)
            .http2_keep_alive_interval(PING)
            .redirect(redirect::Policy::none())
            .no_proxy();
        if url.starts_with("http://") {
            // Needs no root certificates, so it starts where there are none.
            client = client.tls_certs_only([]);
        }
        let client = client.build().map_err(|error| reason(&error))?;
        let url = format!("{}/chat/completions", url.trim_end_matches('/'));
        reqwest::Url::parse(&url).map_err(|error| format!("{url:?}: {error}"))?;
        Ok(Self { name: name.into(), url, client, max_reply: settings.max_reply.as_u64(), clock })
    }

    /// Whether a key can be sent at all; else why not.
    pub fn check_key(key: &Secret) -> Result<(), &'static str> {
        bearer(key).map(drop)
    }

    async fn call(
        &self,
        request: &ChatRequest,
        model: &str,
        credential: Option<&Secret>,
    ) -> Result<Response, UpstreamError> {
        let unreachable =
            |reason: &str| UpstreamError::Connect { provider: self.name.clone(), reason: reason.into() };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if request.stream {
            headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
            // Compressors gather input, and events must not wait.
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        } else {
            headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        }
        if let Some(key) = credential {
            headers.insert(AUTHORIZATION, bearer(key).map_err(unreachable)?);
        }
        let call = self.client.post(&self.url).headers(headers).body(request.body_for(model));
        call.send().await.map_err(|error| {
            let provider = self.name.clone();
            match (error.is_connect(), error.is_timeout()) {
                (true, true) => UpstreamError::TimedOut { provider, timer: "connect" },
                // Not a byte of an answer came: a connection that could not be made, or a kept one
                // that the provider had closed meanwhile.
                (true, false) | (false, _) => unreachable(&reason(&error)),
            }
        })
    }

    async fn refusal(&self, response: Response) -> UpstreamError {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = limit::first(response.bytes_stream(), MAX_REFUSAL).await;
        let fault = classify(&Refusal { status, headers: &headers, body: &body, now: self.clock.now() });
        UpstreamError::Status { provider: self.name.clone(), status, body, fault }
    }

    async fn whole(&self, response: Response) -> Result<Body, UpstreamError> {
        let bytes = limit::all(self.name.clone(), response.bytes_stream(), self.max_reply).await?;
        match parse_whole(&bytes) {
            Ok(reply) => Ok(Body::Whole(Whole { bytes, reply })),
            Err(fault) => Err(pieces::fault_error(&self.name, fault, bytes)),
        }
    }

    fn stream(&self, response: Response) -> PieceStream {
        let body = limit::each(self.name.clone(), response.bytes_stream(), self.max_reply);
        pieces::pieces(self.name.clone(), events::events(self.name.clone(), body))
    }

    /// A stream that nobody asked for, put together.
    async fn assembled(&self, response: Response) -> Result<Body, UpstreamError> {
        let mut pieces = self.stream(response);
        let mut reply = None;
        while let Some(piece) = pieces.next().await {
            if let Piece::Complete(complete) = piece? {
                reply = complete;
            }
        }
        let Some(reply) = reply else {
            let reason = "a stream, which was not asked for and is no single answer".into();
            return Err(UpstreamError::Broken { provider: self.name.clone(), reason });
        };
        let id = format!("chatcmpl-{}", Uuid::new_v4().simple());
        let stamp = Stamp { id: &id, created: self.clock.now().as_secs(), cached: false };
        let bytes = render_whole(&reply, &stamp);
        Ok(Body::Whole(Whole { bytes, reply: Some(*reply) }))
    }
}

#[async_trait]
impl Provider for OpenAi {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    async fn complete(
        &self,
        request: &ChatRequest,
        model: &str,
        credential: Option<&Secret>,
    ) -> Result<Body, UpstreamError> {
        let response = self.call(request, model, credential).await?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        // What it says it is counts more than what was asked for; without a word, the latter.
        let kind = header(&response, "content-type").unwrap_or_default().to_ascii_lowercase();
        let streamed = kind.starts_with("text/event-stream") || (request.stream && !kind.contains("json"));
        match (streamed, request.stream) {
            (true, true) => Ok(Body::Stream(self.stream(response))),
            (true, false) => self.assembled(response).await,
            (false, _) => self.whole(response).await,
        }
    }
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

fn bearer(key: &Secret) -> Result<HeaderValue, &'static str> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose()))
        .map_err(|_| "the key holds characters that cannot stand in a header")?;
    value.set_sensitive(true);
    Ok(value)
}

/// The whole story of an error, for the log. reqwest's own text stops at the first sentence.
fn reason(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut source = error.source();
    while let Some(error) = source {
        let separator = if text.is_empty() { "" } else { ": " };
        let _ = write!(text, "{separator}{error}");
        source = error.source();
    }
    if text.is_empty() { error.to_string() } else { text }
}

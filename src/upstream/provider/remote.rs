//! A provider behind HTTP: OpenAI, Anthropic, and whoever speaks as they do.
//!
//! Where caller and provider speak one dialect, the caller's body passes as it is, with only the
//! model's name mapped; the answer passes as it is too, and is read on the way. Where they do not,
//! both are translated, or the request is refused before it is sent.
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
use bytes::Bytes;
use futures_util::stream::StreamExt;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url, redirect};
use serde_json::Value;
use uuid::Uuid;

use super::pieces::{self, Reader};
use super::{Protocol, Provider};
use crate::chat::{Api, ChatRequest, Usage};
use crate::clock::Clock;
use crate::config::{self, Secret};
use crate::dialect::Dialect;
use crate::dialect::cross::{CrossFault, Inexpressible, Translator};
use crate::dialect::openai::reply::Stamp;
use crate::upstream::fault::{Refusal, classify};
use crate::upstream::{Body, Piece, PieceStream, UpstreamError, Whole};

/// Of a refusal's body this much is kept, in bytes.
const MAX_REFUSAL: usize = 64 * 1024;

/// Idle connections are closed before the providers' own limits, which begin at about a minute.
const POOL_IDLE: Duration = Duration::from_secs(30);

/// A silent HTTP/2 connection under way is asked for a sign of life after this long.
const PING: Duration = Duration::from_secs(20);

/// A provider that is called over HTTP.
pub struct Remote {
    name: Arc<str>,
    protocol: Protocol,
    url: Url,
    host: String,
    client: Client,
    max_reply: u64,
    clock: Clock,
}

impl Remote {
    /// A provider at `url`, to which the protocol adds the paths of its calls. Connects to nothing yet.
    ///
    /// Fails with the reason when `url` is no URL, or (for `https` only) the system has no root
    /// certificates.
    pub fn try_new(
        name: &str,
        protocol: Protocol,
        url: &str,
        settings: &config::Upstream,
        clock: Clock,
    ) -> Result<Self, String> {
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
        let url = Url::parse(url.trim_end_matches('/')).map_err(|error| format!("{url:?}: {error}"))?;
        Ok(Self {
            name: name.into(),
            protocol,
            host: url.origin().ascii_serialization(),
            url,
            client,
            max_reply: settings.max_reply.as_u64(),
            clock,
        })
    }

    /// Whether a key can be sent at all; else why not.
    pub fn check_key(&self, key: &Secret) -> Result<(), &'static str> {
        self.protocol.key(key).map(drop)
    }

    /// The request's body in the provider's dialect, for its name of the model.
    fn body(&self, request: &ChatRequest, model: &str) -> Result<Bytes, Inexpressible> {
        let ours = self.protocol.dialect();
        if self.protocol.speaks(request.api) {
            return Ok(request.body_for(model));
        }
        let only = match request.api {
            Api::CountTokens => Some("asks for a count of tokens, which only Anthropic gives"),
            Api::Responses => Some("says what only a provider that speaks responses itself can take"),
            Api::Embeddings => Some("asks for embeddings, which Anthropic does not give"),
            Api::Chat | Api::Messages => None,
        };
        if let Some(only) = only {
            return Err(Inexpressible::new("the request", only));
        }
        if request.is_stateful {
            return Err(Inexpressible::new(
                "thread",
                "or container: what Anthropic keeps, no other provider has",
            ));
        }
        // The version says nothing by itself; all else that stands in headers has no counterpart.
        let says = |value: &HeaderValue| !value.as_bytes().trim_ascii().is_empty();
        let told = request.headers.iter().find(|(name, value)| *name != "anthropic-version" && says(value));
        if let Some((name, _)) = told {
            return Err(Inexpressible::new(name.as_str(), "has no counterpart in another dialect"));
        }
        let unreadable = |_| Inexpressible::new("the body", "cannot be read");
        let body: Value = serde_json::from_slice(&request.body).map_err(unreadable)?;
        let mut body = ours.translate_request(&body)?;
        body["model"] = model.into();
        let is_azure = matches!(self.protocol, Protocol::Azure { .. });
        if ours == Dialect::OpenAi && (is_azure || knows_only_completion_tokens(model)) {
            rename(&mut body, "max_tokens", "max_completion_tokens");
        }
        serde_json::to_vec(&body).map(Into::into).map_err(unreadable)
    }

    async fn call(
        &self,
        request: &ChatRequest,
        model: &str,
        credential: Option<&Secret>,
    ) -> Result<Response, UpstreamError> {
        let unreachable =
            |reason: &str| UpstreamError::Connect { provider: self.name.clone(), reason: reason.into() };
        let inexpressible = |what| UpstreamError::Inexpressible { provider: self.name.clone(), what };
        let body = self.body(request, model).map_err(inexpressible)?;
        let is_own = self.protocol.speaks(request.api);
        let mut headers = if is_own { request.headers.clone() } else { HeaderMap::new() };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if request.stream {
            headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
            // Compressors gather input, and events must not wait.
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        } else {
            headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        }
        self.protocol.head(&mut headers, credential).map_err(unreachable)?;
        let url = self.protocol.url(&self.url, request.api, model);
        let call = self.client.post(url).headers(headers).body(body);
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

    async fn whole(&self, response: Response, api: Api) -> Result<Body, UpstreamError> {
        let bytes = limit::all(self.name.clone(), response.bytes_stream(), self.max_reply).await?;
        if matches!(api, Api::CountTokens | Api::Embeddings) {
            let usage = (api == Api::Embeddings).then(|| embedding_usage(&bytes)).flatten();
            return Ok(Body::Whole(Whole { bytes, reply: None, usage }));
        }
        let dialect = Dialect::from(api);
        let broken = |reason: String| {
            let provider = self.name.clone();
            UpstreamError::Broken { provider, reason: reason.into() }
        };
        let mut is_whole = true;
        let bytes = if self.protocol.speaks(api) {
            bytes
        } else {
            // What the provider's own dialect could not give again is not kept in another either.
            is_whole = matches!(self.protocol.dialect().parse_whole(&bytes), Ok(Some(_)));
            let id = dialect.id(Uuid::new_v4());
            match dialect.translate_whole(&bytes, &self.stamp(&id)) {
                Ok(translated) => translated,
                Err(CrossFault::Reply(fault)) => return Err(pieces::fault_error(&self.name, fault, bytes)),
                Err(CrossFault::Inexpressible(what)) => return Err(broken(what.to_string())),
            }
        };
        match dialect.parse_whole(&bytes) {
            Ok(reply) => {
                let told = reply.as_ref().and_then(|reply| reply.usage);
                let usage = told.or_else(|| dialect.usage_of(&bytes));
                Ok(Body::Whole(Whole { bytes, reply: reply.filter(|_| is_whole), usage }))
            }
            Err(fault) => Err(pieces::fault_error(&self.name, fault, bytes)),
        }
    }

    fn stream(&self, response: Response, api: Api) -> PieceStream {
        let body = limit::each(self.name.clone(), response.bytes_stream(), self.max_reply);
        let dialect = Dialect::from(api);
        let id = dialect.id(Uuid::new_v4());
        let translator = (!self.protocol.speaks(api)).then(|| Translator::new(dialect, &self.stamp(&id)));
        let reader = Reader::new(self.name.clone(), dialect, translator);
        pieces::pieces(reader, events::events(self.name.clone(), body))
    }

    /// A stream that nobody asked for, put together.
    async fn assembled(&self, response: Response, api: Api) -> Result<Body, UpstreamError> {
        let mut pieces = self.stream(response, api);
        let mut reply = None;
        while let Some(piece) = pieces.next().await {
            if let Piece::Complete(end) = piece? {
                reply = end.reply;
            }
        }
        let Some(reply) = reply else {
            let reason = "a stream, which was not asked for and is no single answer".into();
            return Err(UpstreamError::Broken { provider: self.name.clone(), reason });
        };
        let dialect = Dialect::from(api);
        let id = dialect.id(Uuid::new_v4());
        let bytes = dialect.render_whole(&reply, &self.stamp(&id));
        Ok(Body::Whole(Whole::new(bytes, Some(reply))))
    }

    fn stamp<'a>(&self, id: &'a str) -> Stamp<'a> {
        Stamp { id, created: self.clock.now().as_secs(), cached: false }
    }
}

#[async_trait]
impl Provider for Remote {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn host(&self) -> Option<&str> {
        Some(&self.host)
    }

    fn takes(&self, request: &ChatRequest) -> Result<(), Inexpressible> {
        // What is in its own dialect, it is to judge itself.
        if self.protocol.speaks(request.api) {
            return Ok(());
        }
        self.body(request, &request.model).map(drop)
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
            (true, true) => Ok(Body::Stream(self.stream(response, request.api))),
            (true, false) => self.assembled(response, request.api).await,
            (false, _) => self.whole(response, request.api).await,
        }
    }
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

/// What embeddings cost: there is nothing but a prompt.
fn embedding_usage(bytes: &[u8]) -> Option<Usage> {
    let body: Value = serde_json::from_slice(bytes).ok()?;
    Some(Usage { prompt_tokens: body["usage"]["prompt_tokens"].as_u64()?, completion_tokens: 0 })
}

/// OpenAI's reasoning models refuse `max_tokens` (at Azure a name does not say which model it is, and
/// all take its successor), and servers that copy OpenAI may not know its
/// successor yet.
fn knows_only_completion_tokens(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    ["o1", "o3", "o4", "gpt-5"].iter().any(|family| name.starts_with(family))
}

fn rename(body: &mut Value, from: &str, to: &str) {
    if let Value::Object(fields) = body
        && let Some(value) = fields.remove(from)
    {
        fields.insert(to.to_owned(), value);
    }
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

//! The way to the providers: one call from here, whatever it takes behind it.

pub mod provider;
mod route;
pub mod timers;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use thiserror::Error;

use crate::chat::{ChatReply, ChatRequest};
use crate::clock::Clock;
use crate::config::{AuthMode, Config, Provider as ProviderConfig, Secret, SecretRef};
use provider::Provider;
use provider::openai::OpenAi;
use provider::rules::Rules;
use route::Routes;
use timers::Timers;

pub use crate::chat::EventKind;

/// The providers, and the routes and timers of the calls to them.
pub struct Upstream {
    routes: Routes,
    timers: Timers,
}

/// Why the providers cannot be set up as configured: one sentence that says what to do.
#[derive(Debug, Error)]
pub enum UpstreamConfigError {
    /// A key that is needed is not there.
    #[error(
        "providers.{provider}.api_key = \"{place}\": there is no key; set it, or set optional = true to leave the \
         provider out"
    )]
    NoKey {
        /// The provider's name.
        provider: String,
        /// Where the key should have been.
        place: SecretRef,
    },
    /// A key cannot be read.
    #[error("providers.{provider}.api_key = \"{place}\": {source}; the key must be readable")]
    UnreadableKey {
        /// The provider's name.
        provider: String,
        /// Where the key is.
        place: SecretRef,
        /// Why it cannot be read.
        source: std::io::Error,
    },
    /// A provider's other settings are wrong.
    #[error("providers.{provider} cannot be used: {reason}")]
    Provider {
        /// The provider's name.
        provider: String,
        /// What is wrong.
        reason: String,
    },
}

impl Upstream {
    /// Sets up the providers and routes of `config`; connects to nothing yet. An optional
    /// provider without a key is left out, with a line in the log.
    pub fn try_new(config: &Config, clock: Clock) -> Result<Self, UpstreamConfigError> {
        let mut providers = Vec::new();
        for (name, settings) in &config.providers {
            providers.extend(connect(config, name, settings, clock)?);
        }
        Ok(Self::with_providers(config, &providers))
    }

    /// The routes and timers of `config` over providers made elsewhere, found by their names. A
    /// provider that is configured but not among them counts as left out.
    pub fn with_providers(config: &Config, providers: &[Arc<dyn Provider>]) -> Self {
        Self { routes: Routes::new(&config.models, providers), timers: Timers::new(&config.upstream) }
    }

    /// Asks the provider of the request's model. `credential` is the caller's own key, to be
    /// used in place of a configured one.
    ///
    /// Gives a stream once its first content is there: until then every failure is an error
    /// here, after that it is the last item of the stream. Dropping the future or the stream
    /// cancels the provider's call.
    pub async fn send(
        &self,
        request: &ChatRequest,
        credential: Option<&Secret>,
    ) -> Result<Completion, UpstreamError> {
        let Some(target) = self.routes.find(&request.model) else {
            return Err(UpstreamError::UnknownModel { model: request.model.clone() });
        };
        let provider = target.provider.name();
        let model = target.model.clone().unwrap_or_else(|| request.model.as_str().into());
        let call = target.provider.complete(request, &model, credential);
        let body = self.timers.watch(provider, self.timers.deadline(), call).await?;
        Ok(Completion { served: Served { provider: provider.clone(), model, attempts: 1 }, body })
    }

    /// The names of the models that can be asked for, sorted; without the `"*"` route.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.routes.names()
    }

    /// The routes in words, one a line: a model and who serves it.
    pub fn routes(&self) -> Vec<String> {
        self.routes.in_words().collect()
    }

    /// Who would serve the model now, as `provider/model`; `None` when nobody would.
    pub fn route_of(&self, model: &str) -> Option<String> {
        let target = self.routes.find(model)?;
        Some(format!("{}/{}", target.provider.name(), target.model.as_deref().unwrap_or(model)))
    }

    /// Whether some provider serves the model.
    pub fn serves(&self, model: &str) -> bool {
        self.routes.find(model).is_some()
    }

    /// The namespace that the config gives to a model, when it gives one.
    pub fn namespace_of(&self, model: &str) -> Option<&str> {
        self.routes.namespace_of(model)
    }
}

/// The provider that `settings` describe; `None` when it is optional and has no key.
fn connect(
    config: &Config,
    name: &str,
    settings: &ProviderConfig,
    clock: Clock,
) -> Result<Option<Arc<dyn Provider>>, UpstreamConfigError> {
    let wrong = |reason| UpstreamConfigError::Provider { provider: name.to_owned(), reason };
    Ok(match settings {
        ProviderConfig::Rules { file } => {
            Some(Arc::new(Rules::try_new(name, file.as_deref(), clock).map_err(wrong)?))
        }
        ProviderConfig::Openai { url, api_key, optional } => {
            // Where callers bring their own keys, ours is not even read: none of them can spend it.
            let place = api_key.as_ref().filter(|_| config.auth.mode != AuthMode::Forward);
            let key = place.map(|place| resolve(name, place)).transpose()?.flatten();
            match place.filter(|_| key.is_none()) {
                Some(place) if *optional => {
                    tracing::info!(provider = name, key = %place, "provider left out: its key is not set");
                    None
                }
                Some(place) => {
                    return Err(UpstreamConfigError::NoKey {
                        provider: name.to_owned(),
                        place: place.clone(),
                    });
                }
                None => {
                    let provider = OpenAi::try_new(name, url, key.as_ref(), &config.upstream, clock);
                    Some(Arc::new(provider.map_err(wrong)?))
                }
            }
        }
    })
}

fn resolve(name: &str, place: &SecretRef) -> Result<Option<Secret>, UpstreamConfigError> {
    place.resolve().map_err(|source| UpstreamConfigError::UnreadableKey {
        provider: name.to_owned(),
        place: place.clone(),
        source,
    })
}

/// Who really served an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The provider's name in the config.
    pub provider: Arc<str>,
    /// The model's name at the provider.
    pub model: Arc<str>,
    /// Calls it took.
    pub attempts: u32,
}

/// A provider's answer, begun: a stream is handed on with its first content.
pub struct Completion {
    /// Who serves it.
    pub served: Served,
    /// The answer.
    pub body: Body,
}

/// An answer as the provider sends it.
#[expect(clippy::large_enum_variant, reason = "there is one a call, and it is not copied around")]
pub enum Body {
    /// All at once.
    Whole(Whole),
    /// Piece by piece.
    Stream(PieceStream),
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Whole {
    /// The provider's body, byte for byte.
    pub bytes: Bytes,
    /// What it says; `None` when it is no single answer (several choices), which is passed on
    /// and never stored.
    pub reply: Option<ChatReply>,
}

/// A streamed answer. Ends after `Complete` or an error; a stream that ends without either was
/// cut, and the upstream module turns that into an error.
pub type PieceStream = BoxStream<'static, Result<Piece, UpstreamError>>;

/// A piece of a streamed answer.
#[derive(Clone, Debug)]
pub enum Piece {
    /// One server-sent event.
    Event(Event),
    /// The terminal event was seen: what the whole stream says, put together. `None` as in
    /// [`Whole::reply`].
    Complete(Option<Box<ChatReply>>),
}

/// One server-sent event in the provider's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event's data, byte for byte; the protocol's terminal (`[DONE]`) is not passed on as
    /// an event.
    pub data: Bytes,
    /// What it is, for timers and for callers who did not ask for usage.
    pub kind: EventKind,
}

/// Why there is no answer, or why it broke off.
#[derive(Clone, Debug, Error)]
pub enum UpstreamError {
    /// No configured model has this name, or its provider is not there.
    #[error("no provider serves the model {model:?}")]
    UnknownModel {
        /// The name asked for.
        model: String,
    },
    /// No connection.
    #[error("{provider} cannot be reached: {reason}")]
    Connect {
        /// The provider's name.
        provider: Arc<str>,
        /// Why, for the log only.
        reason: Arc<str>,
    },
    /// A timer ran out.
    #[error("{provider} did not answer in time ({timer})")]
    TimedOut {
        /// The provider's name.
        provider: Arc<str>,
        /// Which timer: `connect`, `first_content`, `stall` or `total`.
        timer: &'static str,
    },
    /// The provider refused or failed, with a status of its own (or an error inside a 200).
    #[error("{provider} answered {status}")]
    Status {
        /// The provider's name.
        provider: Arc<str>,
        /// Its status; 200 for an error inside a success.
        status: u16,
        /// Its body, for the caller when the fault is the caller's.
        body: Bytes,
        /// Its `Retry-After` header.
        retry_after: Option<String>,
    },
    /// The answer is not what the protocol says, or ended before its terminal event.
    #[error("{provider} sent a broken answer: {reason}")]
    Broken {
        /// The provider's name.
        provider: Arc<str>,
        /// What is wrong with it.
        reason: Arc<str>,
    },
    /// The answer is larger than `upstream.max_reply`.
    #[error("{provider} sent more than {limit} bytes")]
    TooLarge {
        /// The provider's name.
        provider: Arc<str>,
        /// The limit.
        limit: u64,
    },
}

impl UpstreamError {
    /// The provider it comes from; none for an unknown model.
    pub fn provider(&self) -> &str {
        match self {
            Self::UnknownModel { .. } => "none",
            Self::Connect { provider, .. }
            | Self::TimedOut { provider, .. }
            | Self::Status { provider, .. }
            | Self::Broken { provider, .. }
            | Self::TooLarge { provider, .. } => provider,
        }
    }

    /// A word for metrics and logs.
    pub fn label(&self) -> &'static str {
        match self {
            Self::UnknownModel { .. } => "unknown_model",
            Self::Connect { .. } => "connect",
            Self::TimedOut { .. } => "timeout",
            Self::Status { .. } => "status",
            Self::Broken { .. } => "broken",
            Self::TooLarge { .. } => "too_large",
        }
    }
}

#[cfg(test)]
mod tests;

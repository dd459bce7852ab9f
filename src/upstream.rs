//! The way to the providers: one call from here, whatever it takes behind it.

mod completion;
mod error;
pub mod provider;
mod route;
mod setup;
pub mod timers;

use std::sync::Arc;

use crate::chat::ChatRequest;
use crate::clock::Clock;
use crate::config::{Config, Secret};
use provider::Provider;
use route::Routes;
use setup::connect;
use timers::Timers;

pub use crate::chat::EventKind;
pub use completion::{Body, Completion, Event, Piece, PieceStream, Served, Whole};
pub use error::UpstreamError;
pub use setup::UpstreamConfigError;

/// The providers, and the routes and timers of the calls to them.
pub struct Upstream {
    routes: Routes,
    timers: Timers,
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

#[cfg(test)]
mod tests;

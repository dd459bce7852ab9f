//! The way to the providers: one call from here, whatever it takes behind it.
//!
//! On a good day that is one call to the first target. On a bad one, in this order: the caller's
//! **deadline** bounds everything; the **chain** goes from target to target; a **retry** stays with
//! one, out of a budget that all requests share; a **hedge** races a call that is late; a
//! **breaker** keeps calls from a target that is ill, a **limit** from one that is full, and
//! **timers** end the call itself. Each is a policy of its own that knows no other; [`Upstream::send`]
//! is where they meet, and `journey` decides what comes after a failure.
//!
//! Nothing is tried again once the first content has left for the caller.

mod ask;
mod attempt;
pub mod backoff;
pub mod breaker;
pub mod budget;
mod completion;
mod endpoint;
mod error;
pub mod fault;
pub mod health;
pub mod hedge;
mod journey;
pub mod keys;
pub mod limit;
mod plan;
mod policy;
mod preferences;
mod probe;
pub mod provider;
mod race;
mod report;
mod route;
mod setup;
mod slices;
mod target;
pub mod timers;

use std::collections::HashMap;
use std::sync::Arc;

use tokio::time::Instant;

use crate::clock::Clock;
use crate::config::{Config, Secret};
use crate::switches::{Subject, Switches};
use endpoint::Endpoint;
use hedge::Hedge;
use journey::{Admission, Journey};
use plan::{Nobody, plan};
use policy::Policy;
use provider::Provider;
use race::{Lateness, race};
use route::{Candidate, Choice, Route, Routes};
use target::{Targets, Wait};
use timers::Timers;

pub use crate::chat::EventKind;
pub use ask::Ask;
pub use completion::{Body, Completion, End, Event, Piece, PieceStream, Served, Whole};
pub use error::UpstreamError;
pub use limit::Priority;
pub use plan::{Funnel, FunnelStep};
pub use preferences::{InvalidPreference, Preferences, Sort};
pub use probe::{Probe, Trial};
pub use report::{BreakerReport, KeyReport, NoSuchTarget, ProviderReport, ProvidersReport, TargetReport};
pub use setup::UpstreamConfigError;

/// The providers, who serves which model, and the policies of the calls to them.
pub struct Upstream {
    routes: Routes,
    targets: Targets,
    endpoints: Vec<Arc<Endpoint>>,
    timers: Timers,
    policy: Policy,
    /// By the models that are hedged.
    hedges: HashMap<String, Hedge>,
    switches: Arc<Switches>,
    clock: Clock,
}

impl Upstream {
    /// Sets up the providers and routes of `config`; connects to nothing yet. An optional
    /// provider without a key is left out, with a line in the log.
    pub fn try_new(
        config: &Config,
        clock: Clock,
        switches: Arc<Switches>,
    ) -> Result<Self, UpstreamConfigError> {
        Ok(Self::over(config, clock, switches, setup::endpoints(config, clock)?))
    }

    /// The same over providers made elsewhere, found by their names. A provider that is configured
    /// but not among them counts as left out.
    pub fn with_providers(
        config: &Config,
        clock: Clock,
        switches: Arc<Switches>,
        providers: &[Arc<dyn Provider>],
    ) -> Self {
        let keyless = providers.iter().map(|provider| (Arc::clone(provider), Vec::new()));
        Self::with_keyed_providers(config, clock, switches, keyless.collect())
    }

    /// The same, each with the keys that it is called with in turn.
    pub fn with_keyed_providers(
        config: &Config,
        clock: Clock,
        switches: Arc<Switches>,
        providers: Vec<(Arc<dyn Provider>, Vec<Secret>)>,
    ) -> Self {
        let endpoint = |(provider, keys): (Arc<dyn Provider>, Vec<Secret>)| {
            let own = config.providers.get(&**provider.name());
            Endpoint::new(provider, keys, own, &config.upstream.limit)
        };
        Self::over(config, clock, switches, providers.into_iter().map(endpoint).collect())
    }

    fn over(config: &Config, clock: Clock, switches: Arc<Switches>, endpoints: Vec<Arc<Endpoint>>) -> Self {
        let now = Instant::now();
        let settings = &config.upstream;
        let hedged = config.models.iter().filter(|(_, model)| model.hedge);
        let hedge = |name: &String| (name.clone(), Hedge::new(policy::hedges(&settings.hedge), now));
        Self {
            routes: Routes::new(config, &endpoints),
            targets: Targets::new(policy::breakers(&settings.breaker)),
            endpoints,
            timers: Timers::new(settings),
            policy: Policy::new(settings, now),
            hedges: hedged.map(|(name, _)| hedge(name)).collect(),
            switches,
            clock,
        }
    }

    /// Asks those who serve the request's model, one after the other, until one answers.
    ///
    /// Gives a stream once its first content is there: until then every failure is an error
    /// here, after that it is the last item of the stream. Dropping the future or the stream
    /// cancels the provider's call. Ends at the deadline at the latest.
    pub async fn send(&self, ask: Ask<'_>) -> Result<Completion, UpstreamError> {
        let routed = ask.request.without(&preferences::FIELDS);
        let ask = Ask { request: routed.as_ref().unwrap_or(ask.request), ..ask };
        let mut journey = Journey::new(&self.policy, ask, self.plan(&ask)?);
        self.policy.retries.deposit(Instant::now());
        loop {
            let admission = journey.enter().await?;
            let lateness = self.lateness(&ask, &admission);
            match race(&self.timers, &ask, &mut journey, admission, lateness).await {
                Ok(completion) => return Ok(completion),
                Err(failures) => {
                    for (leg, error) in failures {
                        journey.leave(leg, error)?;
                    }
                }
            }
        }
    }

    /// Asks the rules that are the model's last resort, when it has any: for when nothing else can
    /// answer. What they say is no model's answer, and not for keeping.
    pub async fn send_to_last_resort(&self, ask: Ask<'_>) -> Option<Result<Completion, UpstreamError>> {
        let choice = self.routes.of(&ask.request.model)?.last_resort.as_ref()?;
        if !self.is_on(choice, &ask.request.model) || choice.endpoint.provider.takes(ask.request).is_err() {
            return None;
        }
        let candidates = vec![choice.candidate(&ask.request.model, &self.targets, 0, true, Instant::now())];
        let mut journey = Journey::new(&self.policy, ask, candidates);
        let admission = match journey.enter().await {
            Ok(admission) => admission,
            Err(error) => return Some(Err(error)),
        };
        let answer = race(&self.timers, &ask, &mut journey, admission, None).await;
        Some(answer.map_err(|mut failures| failures.remove(0).1))
    }

    fn plan(&self, ask: &Ask<'_>) -> Result<Vec<Candidate>, UpstreamError> {
        let request = ask.request;
        let is_on = |choice: &Choice, asked: &str| self.is_on(choice, asked);
        let candidates = plan(&self.routes, &self.targets, ask, &is_on, &rand::random::<f64>, Instant::now());
        let model = || request.model.clone();
        candidates.map_err(|nobody| match nobody {
            Nobody::Unknown => UpstreamError::UnknownModel { model: model() },
            Nobody::SwitchedOff => UpstreamError::SwitchedOff { model: model() },
            Nobody::Inexpressible(provider, what) => UpstreamError::Inexpressible { provider, what },
            Nobody::Wishes(funnel) => UpstreamError::NoTarget(Arc::new(funnel)),
        })
    }

    fn is_on(&self, choice: &Choice, asked: &str) -> bool {
        let now = self.clock.now();
        let provider = choice.endpoint.name();
        let target = Subject::Target { provider, model: &choice.model(asked) };
        [Subject::Provider(provider), Subject::Model(asked), target]
            .into_iter()
            .all(|subject| self.switches.is_on(subject, now))
    }

    /// When the call is late, if it may be raced: the first one of a request that acts on nothing,
    /// and no probe, which would prove nothing if it lost.
    fn lateness(&self, ask: &Ask<'_>, first: &Admission) -> Option<Lateness<'_>> {
        let may = first.attempt == 1
            && !first.permit.is_probe()
            && ask.may_hedge
            && ask.is_for_an_answer()
            && !ask.may_act();
        let hedge = self.hedges.get(self.routes.name_of(&ask.request.model)?).filter(|_| may)?;
        let now = Instant::now();
        hedge.deposit(now);
        let after = hedge.after(first.candidate.target.usual(Wait::of(ask.request.stream), now))?;
        Some(Lateness { hedge, after })
    }

    /// The names of the models that can be asked for, sorted; without the `"*"` route.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.routes.names()
    }

    /// The routes in words, one a line: a model and who serves it.
    pub fn routes(&self) -> Vec<String> {
        self.routes.in_words().collect()
    }

    /// Who serves the model when all is well, as `provider/model`; `None` when nobody does. It does
    /// not change with the day's troubles.
    pub fn route_of(&self, model: &str) -> Option<String> {
        let first = self.routes.of(model)?.choices.first()?;
        Some(format!("{}/{}", first.endpoint.name(), first.model(model)))
    }

    /// Whether some provider serves the model.
    pub fn serves(&self, model: &str) -> bool {
        self.routes.of(model).is_some_and(|route: &Route| !route.choices.is_empty())
    }

    /// The namespace that the config gives to a model, when it gives one.
    pub fn namespace_of(&self, model: &str) -> Option<&str> {
        self.routes.namespace_of(model)
    }
}

#[cfg(test)]
mod tests;

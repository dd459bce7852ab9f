//! Who serves a model: from the name that callers use to those who can answer, in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::endpoint::Endpoint;
use super::target::{Target, Targets};
use crate::config::{self, ANY, Order, Price};

/// All routes, by the callers' name.
pub(super) struct Routes(BTreeMap<String, Route>);

/// Who serves one model.
pub(super) struct Route {
    /// Those whose provider is there, in the order of the config. Empty when none is.
    pub(super) choices: Vec<Choice>,
    /// Those whose provider is configured and not there.
    pub(super) absent: usize,
    pub(super) order: Order,
    /// Rules to be asked when nothing else can answer.
    pub(super) last_resort: Option<Choice>,
    namespace: Option<String>,
}

/// One who can serve a model, as configured.
#[derive(Clone)]
pub(super) struct Choice {
    pub(super) endpoint: Arc<Endpoint>,
    /// Under what name; the caller's own when `None`.
    model: Option<Arc<str>>,
    /// 1 serves the model itself, higher tiers are other models.
    pub(super) tier: u32,
    pub(super) weight: u32,
    pub(super) reserved: bool,
    /// Tokens it reads, when that is known.
    pub(super) context_window: Option<u64>,
    /// The optional fields that it supports; all when `None`.
    pub(super) parameters: Option<Vec<String>>,
    /// Dollars per million tokens, in and out; known once the model is.
    pub(super) price: Option<Price>,
    prices: Arc<BTreeMap<String, Price>>,
}

/// One who is to be asked.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) target: Arc<Target>,
    /// The model's name at the provider.
    pub(super) model: Arc<str>,
    pub(super) choice: Choice,
    /// Whose model it is, by its place among those that the request names.
    pub(super) rank: usize,
    /// Not the model that was asked for, but another one to fall back to.
    pub(super) is_fallback: bool,
}

impl Routes {
    /// Keeps the targets whose provider is among `endpoints`, in their order.
    pub(super) fn new(config: &config::Config, endpoints: &[Arc<Endpoint>]) -> Self {
        let prices = Arc::new(config.prices.clone());
        let route = |model: &config::Model| Route::new(model, endpoints, &prices);
        Self(config.models.iter().map(|(name, model)| (name.clone(), route(model))).collect())
    }

    /// The names that have a route of their own and someone at its end.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(|(name, route)| !name.ends_with(ANY) && !route.choices.is_empty())
            .map(|(name, _)| name.as_str())
    }

    /// Each route in words.
    pub(super) fn in_words(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(name, route)| {
            if route.choices.is_empty() {
                return format!("{name} -> nobody: none of its providers is there");
            }
            let choices: Vec<_> =
                route.choices.iter().chain(&route.last_resort).map(Choice::in_words).collect();
            format!("{name} -> {}", choices.join(", then "))
        })
    }

    /// Every choice of every route, with the model's name at its provider; `None` where that is
    /// whatever callers say.
    pub(super) fn choices(&self) -> impl Iterator<Item = (&Choice, Option<Arc<str>>)> {
        self.0.iter().flat_map(|(name, route)| {
            let own = (!name.ends_with(ANY)).then(|| Arc::from(name.as_str()));
            let choices = route.choices.iter().chain(&route.last_resort);
            choices.map(move |choice| (choice, choice.model.clone().or_else(|| own.clone())))
        })
    }

    /// The namespace set for the model.
    pub(super) fn namespace_of(&self, model: &str) -> Option<&str> {
        self.of(model)?.namespace.as_deref()
    }

    /// The route of a model; there may be nobody at its end.
    // The longest name that fits. A name with a route of its own never falls to a wider one, not even
    // while nobody is there to serve it: the operator said who may.
    pub(super) fn of(&self, model: &str) -> Option<&Route> {
        self.named(model).map(|(_, route)| route)
    }

    /// The name under which the route of a model stands.
    pub(super) fn name_of(&self, model: &str) -> Option<&str> {
        self.named(model).map(|(name, _)| name.as_str())
    }

    fn named(&self, model: &str) -> Option<(&String, &Route)> {
        let fits = |name: &str| name.strip_suffix(ANY).is_some_and(|start| model.starts_with(start));
        let widest = || self.0.iter().filter(|(name, _)| fits(name)).max_by_key(|(name, _)| name.len());
        self.0.get_key_value(model).or_else(widest)
    }
}

impl Route {
    fn new(
        model: &config::Model,
        endpoints: &[Arc<Endpoint>],
        prices: &Arc<BTreeMap<String, Price>>,
    ) -> Self {
        let choice = |target: &config::Target| {
            let endpoint = endpoints.iter().find(|endpoint| **endpoint.name() == *target.provider)?;
            Some(Choice {
                endpoint: Arc::clone(endpoint),
                model: target.model.as_deref().map(Into::into),
                tier: target.tier.map_or(1, std::num::NonZeroU32::get),
                weight: target.weight.map_or(1, std::num::NonZeroU32::get),
                reserved: target.reserved,
                context_window: target.context_window,
                parameters: target.parameters.clone(),
                price: target.model.as_ref().and_then(|model| prices.get(model)).copied(),
                prices: Arc::clone(prices),
            })
        };
        let mut choices: Vec<_> = model.targets.iter().filter_map(choice).collect();
        let absent = model.targets.len() - choices.len();
        let is_rules = |choice: &Choice| choice.endpoint.is_rules;
        // Alone or first, rules stand in for a model; behind one they are what is left without it.
        let last_resort = choices.iter().skip(1).find(|choice| is_rules(choice)).cloned();
        if choices.first().is_some_and(|first| !is_rules(first)) {
            choices.retain(|choice| !is_rules(choice));
        }
        let last_resort = last_resort.filter(|_| choices.first().is_some_and(|first| !is_rules(first)));
        Self { choices, absent, order: model.order, last_resort, namespace: model.namespace.clone() }
    }
}

impl Choice {
    /// Where its calls go.
    pub(super) fn host(&self) -> Option<&str> {
        self.endpoint.provider.host()
    }

    /// The model's name at the provider, when callers ask for `asked`.
    pub(super) fn model(&self, asked: &str) -> Arc<str> {
        self.model.clone().unwrap_or_else(|| asked.into())
    }

    /// The one to be asked when callers ask for `asked`.
    pub(super) fn candidate(
        &self,
        asked: &str,
        targets: &Targets,
        rank: usize,
        is_fallback: bool,
        now: Instant,
    ) -> Candidate {
        let model = self.model(asked);
        let target = targets.of(&self.endpoint, &model, now);
        let price = self.prices.get(&*model).copied();
        Candidate { target, model, choice: Self { price, ..self.clone() }, rank, is_fallback }
    }

    fn in_words(&self) -> String {
        match &self.model {
            Some(model) => format!("{} ({model})", self.endpoint.name()),
            None => self.endpoint.name().to_string(),
        }
    }
}

impl Candidate {
    pub(super) fn provider(&self) -> &Arc<str> {
        self.choice.endpoint.name()
    }

    /// Whether it serves the same model as the other one.
    pub(super) fn is_same_model_as(&self, other: &Self) -> bool {
        (self.rank, self.choice.tier) == (other.rank, other.choice.tier)
    }

    /// Whether it is the same as the other one, whoever named it.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.provider() == other.provider() && self.model == other.model
    }

    /// Whether a call would be let in now, without a wait.
    pub(super) fn is_free(&self, now: Instant) -> bool {
        let Endpoint { limiter, keys, .. } = &*self.choice.endpoint;
        let slots = limiter.stats(now);
        self.target.lets_in(now) && slots.in_flight < slots.limit && keys.next_free(now).is_none()
    }
}

//! Who serves a model: from the name that callers use to a provider and its own name for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::provider::Provider;
use crate::config;

/// The route for every name that has none of its own.
const ANY: &str = "*";

/// All routes, by the callers' name.
pub(super) struct Routes(BTreeMap<String, Route>);

struct Route {
    /// Empty when none of the providers is there.
    targets: Vec<Target>,
    namespace: Option<String>,
}

/// One who can serve a model.
pub(super) struct Target {
    /// Who.
    pub(super) provider: Arc<dyn Provider>,
    /// Under what name; the caller's own when `None`.
    pub(super) model: Option<Arc<str>>,
}

impl Routes {
    /// Keeps the targets whose provider is among `providers`, in their order.
    pub(super) fn new(models: &BTreeMap<String, config::Model>, providers: &[Arc<dyn Provider>]) -> Self {
        let target = |target: &config::Target| {
            let provider = providers.iter().find(|provider| **provider.name() == *target.provider)?;
            Some(Target { provider: provider.clone(), model: target.model.as_deref().map(Into::into) })
        };
        let route = |model: &config::Model| Route {
            targets: model.targets.iter().filter_map(target).collect(),
            namespace: model.namespace.clone(),
        };
        Self(models.iter().map(|(name, model)| (name.clone(), route(model))).collect())
    }

    /// The first target of the model that is there.
    pub(super) fn find(&self, model: &str) -> Option<&Target> {
        self.route(model)?.targets.first()
    }

    /// The names that have a route of their own and someone at its end.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(|(name, route)| *name != ANY && !route.targets.is_empty())
            .map(|(name, _)| name.as_str())
    }

    /// Each route in words.
    pub(super) fn in_words(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(name, route)| match route.targets.first() {
            Some(Target { provider, model: Some(model) }) => {
                format!("{name} -> {} ({model})", provider.name())
            }
            Some(Target { provider, model: None }) => format!("{name} -> {}", provider.name()),
            None => format!("{name} -> nobody: none of its providers is there"),
        })
    }

    /// The namespace set for the model.
    pub(super) fn namespace_of(&self, model: &str) -> Option<&str> {
        self.route(model)?.namespace.as_deref()
    }

    // A name with a route of its own never falls to the route for any name, not even while
    // nobody is there to serve it: the operator said who may.
    fn route(&self, model: &str) -> Option<&Route> {
        self.0.get(model).or_else(|| self.0.get(ANY))
    }
}

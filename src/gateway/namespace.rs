//! The configured namespaces, ready for use.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::cache::key::Loosening;
use crate::chat::placement::{Placement, PlacementError};
use crate::config::{self, Config};
use crate::metrics::{Metrics, NamespaceMetrics};

/// A namespace: its settings, and where its requests are counted.
pub struct Namespace {
    name: Arc<str>,
    settings: config::Namespace,
    loosening: Loosening,
    placement: Placement,
    metrics: Arc<NamespaceMetrics>,
}

impl Namespace {
    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its settings.
    pub fn settings(&self) -> &config::Namespace {
        &self.settings
    }

    /// What it leaves out of the scope.
    pub fn loosening(&self) -> &Loosening {
        &self.loosening
    }

    /// Where its questions stand.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Where its requests are counted.
    pub fn metrics(&self) -> &NamespaceMetrics {
        &self.metrics
    }

    /// How long an answer may be served when the caller wishes `wish`.
    pub fn time_to_live(&self, wish: Option<Duration>) -> Duration {
        wish.unwrap_or(self.settings.ttl).min(self.settings.max_ttl)
    }
}

impl std::fmt::Debug for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Namespace").field(&self.name).finish()
    }
}

/// A namespace's question cannot be found as the config says.
#[derive(Debug, Error)]
#[error("namespaces.{name}.question: {fault}")]
pub struct InvalidPlacement {
    name: String,
    fault: PlacementError,
}

/// All configured namespaces.
pub struct Namespaces(HashMap<Arc<str>, Arc<Namespace>>);

impl Namespaces {
    /// From the config.
    pub fn try_new(config: &Config, metrics: &Arc<Metrics>) -> Result<Self, InvalidPlacement> {
        let configured = config.namespaces.keys().filter_map(|name| Some((name, config.namespace(name)?)));
        let namespaces = configured.map(|(name, settings)| {
            let loosening = Loosening::new(&settings.scope_ignore);
            let placement = match &settings.question {
                Some(place) => Placement::try_new(place.pattern.as_deref(), place.part.as_deref())
                    .map_err(|fault| InvalidPlacement { name: name.clone(), fault })?,
                None => Placement::Turn,
            };
            let name: Arc<str> = name.as_str().into();
            let metrics = metrics.namespace(&name);
            Ok((Arc::clone(&name), Arc::new(Namespace { name, settings, loosening, placement, metrics })))
        });
        namespaces.collect::<Result<_, _>>().map(Self)
    }

    /// The namespace of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Namespace>> {
        self.0.get(name)
    }

    /// Their names, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.0.keys().map(|name| &**name).collect();
        names.sort_unstable();
        names
    }
}

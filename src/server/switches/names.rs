//! What there is to switch. A slip of the pen must not look like a switch that was flipped.

use std::collections::BTreeSet;

use thiserror::Error;

use crate::config::{ANY, Config};
use crate::switches::{Subject, Target};
use crate::upstream::Upstream;

/// That no line of the config has the name, and yet it may be asked for.
const ONLY_CALLERS: &str =
    "no line of the config has this model: the switch counts when callers ask for exactly this name";

/// A name that is not in the config, and those that are.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no {kind} {name:?} in the config; there are: {}", known.join(", "))]
pub struct UnknownName {
    kind: &'static str,
    name: String,
    known: Vec<String>,
}

/// The names in the config.
#[derive(Debug)]
pub struct Names {
    providers: BTreeSet<String>,
    models: BTreeSet<String>,
    /// Those whose model is said: provider and model.
    targets: BTreeSet<(String, String)>,
    namespaces: BTreeSet<String>,
}

impl Names {
    /// The names in `config`.
    pub fn new(config: &Config) -> Self {
        let targets = config.models.iter().flat_map(|(name, model)| {
            let named =
                model.targets.iter().filter(move |target| !name.ends_with(ANY) || target.model.is_some());
            named.map(move |target| (target.provider.clone(), target.model.as_ref().unwrap_or(name).clone()))
        });
        Self {
            providers: config.providers.keys().cloned().collect(),
            models: config.models.keys().filter(|name| !name.ends_with(ANY)).cloned().collect(),
            targets: targets.collect(),
            namespaces: config.namespaces.keys().cloned().collect(),
        }
    }

    /// Refuses a name that is not there. A provider that is configured but was left out is there. A
    /// model that callers may ask for by the route for any name is too, with a note.
    pub fn find(&self, target: &Target, upstream: &Upstream) -> Result<Option<&'static str>, UnknownName> {
        match target.subject() {
            Subject::Feature(_) => Ok(None),
            Subject::Provider(name) => known("provider", name, &self.providers),
            Subject::Namespace(name) => known("namespace", name, &self.namespaces),
            Subject::Model(name)
                if !name.ends_with(ANY) && !self.models.contains(name) && upstream.serves(name) =>
            {
                Ok(Some(ONLY_CALLERS))
            }
            Subject::Model(name) => known("model", name, &self.models),
            Subject::Target { provider, model } => {
                known("provider", provider, &self.providers)?;
                let is_named = self.targets.contains(&(provider.to_owned(), model.to_owned()));
                Ok((!is_named).then_some(ONLY_CALLERS))
            }
        }
    }
}

fn known(
    kind: &'static str,
    name: &str,
    names: &BTreeSet<String>,
) -> Result<Option<&'static str>, UnknownName> {
    if names.contains(name) {
        return Ok(None);
    }
    Err(UnknownName { kind, name: name.to_owned(), known: names.iter().cloned().collect() })
}

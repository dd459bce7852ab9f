//! Where the settings came from, so that they can be read again, and which of them are others now.

use std::collections::BTreeMap;
use std::path::PathBuf;

use figment::value::{Dict, Value};
use figment::{Figment, Provider};

/// A file and the environment, with what they said.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    pub(super) file: Option<PathBuf>,
    values: Values,
}

/// Settings by their names, as `namespaces.hr.ttl`. What they are is never shown.
type Values = BTreeMap<String, String>;

impl Origin {
    pub(super) fn new(file: Option<PathBuf>, figment: &Figment) -> Self {
        let mut values = Values::new();
        for profile in figment.data().unwrap_or_default().into_values() {
            flatten("", &profile, &mut values);
        }
        Self { file, values }
    }

    /// The names of the settings that differ in `other`, sorted.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let names = self.values.keys().chain(other.values.keys());
        let differ = names.filter(|name| self.values.get(*name) != other.values.get(*name));
        let mut differ: Vec<_> = differ.cloned().collect();
        differ.sort_unstable();
        differ.dedup();
        differ
    }

    /// Takes over the settings of `other` that `take` names.
    pub fn take(&mut self, other: &Self, take: impl Fn(&str) -> bool) {
        self.values.retain(|name, _| !take(name));
        let taken = other.values.iter().filter(|(name, _)| take(name));
        self.values.extend(taken.map(|(name, value)| (name.clone(), value.clone())));
    }
}

fn flatten(at: &str, settings: &Dict, values: &mut Values) {
    for (key, value) in settings {
        let name = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        match value {
            Value::Dict(_, inner) if !inner.is_empty() => flatten(&name, inner, values),
            value => drop(values.insert(name, serde_json::to_string(value).unwrap_or_default())),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn origin(toml: &str) -> super::Origin {
        Config::from_toml(toml).unwrap().origin
    }

    #[test]
    fn differences_are_named_and_not_shown() {
        let before = origin("[namespaces.hr]\nttl = \"1h\"\nscope = { ignore = [\"history\"] }");
        let after = origin("[namespaces.hr]\nttl = \"2h\"\n[server]\nmax_connections = 5");
        let expected = ["namespaces.hr.scope.ignore", "namespaces.hr.ttl", "server.max_connections"];
        assert_eq!(before.differences(&after), expected);
        assert!(before.differences(&before).is_empty());
    }

    #[test]
    fn what_was_taken_over_differs_no_more() {
        let mut before = origin("[namespaces.hr]\nttl = \"1h\"");
        let after = origin("[namespaces.it]\nttl = \"2h\"\n[server]\nmax_connections = 5");
        before.take(&after, |name| name.starts_with("namespaces."));
        assert_eq!(before.differences(&after), ["server.max_connections"]);
    }
}

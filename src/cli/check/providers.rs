//! `refrain check --providers`: who answers, how fast, with which key, and what is wrong.
//!
//! Providers are asked side by side, and each one call at a time: a check must not be the load that
//! a small account or a local model fails under.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use tokio::time::Instant;

use super::Verdict;
use super::words::{Asked, answered, wrong};
use crate::app;
use crate::clock::Clock;
use crate::config::{AuthMode, Config, Provider, SecretRef};
use crate::upstream::fault::Class;
use crate::upstream::{Probe, Trial, UpstreamConfigError, UpstreamError};

/// How long one call may take.
pub(super) const WITHIN: Duration = Duration::from_secs(15);

/// What was checked, and how it went.
type Finding = (String, Verdict);

/// Calls each target with each of its keys, once and `within` that time, and tells of each provider
/// as soon as those before it are through. Fails when the service would not start.
pub(super) async fn check(
    config: &Config,
    within: Duration,
    mut tell: impl FnMut(&str, Verdict),
) -> Result<(), UpstreamConfigError> {
    let upstream = app::providers(config)?;
    let mut trials: HashMap<_, _> = upstream.trials().collect();
    let clock = Clock::system();
    let found = config.providers.iter().map(|(name, settings)| {
        let keys = Key::all(config, settings);
        let desk = Desk { name, keys, callers_bring_keys: brings_keys(config), within, clock };
        desk.findings(trials.remove(name.as_str()))
    });
    let mut found = stream::iter(found).buffered(config.providers.len().max(1));
    while let Some(findings) = found.next().await {
        for (subject, verdict) in findings {
            tell(&subject, verdict);
        }
    }
    Ok(())
}

fn brings_keys(config: &Config) -> bool {
    config.auth.mode == AuthMode::Forward
}

/// A key that the config names.
struct Key {
    /// "key 2"
    name: String,
    place: String,
    is_set: bool,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.place)
    }
}

impl Key {
    /// All of a provider's; none where callers bring theirs.
    fn all(config: &Config, provider: &Provider) -> Vec<Self> {
        if brings_keys(config) {
            return Vec::new();
        }
        let key = |(index, place): (usize, &SecretRef)| Self {
            name: format!("key {}", index + 1),
            place: place.to_string(),
            is_set: matches!(place.resolve(), Ok(Some(_))),
        };
        provider.key_places().enumerate().map(key).collect()
    }
}

/// One provider under test.
struct Desk<'a> {
    name: &'a str,
    keys: Vec<Key>,
    callers_bring_keys: bool,
    within: Duration,
    clock: Clock,
}

impl Desk<'_> {
    /// `trials` is `None` for a provider that is left out.
    async fn findings(self, trials: Option<Vec<Trial>>) -> Vec<Finding> {
        let Some(trials) = trials else {
            let keys: Vec<_> = self.keys.iter().map(Key::to_string).collect();
            let why = format!("left out, because no key is set: {}", keys.join(", "));
            return vec![(self.name.to_owned(), Verdict::Skipped(why))];
        };
        let mut findings = Vec::new();
        for key in self.keys.iter().filter(|key| !key.is_set) {
            let wrong = format!("no key is there: set it, or take it out of providers.{}", self.name);
            findings.push((format!("{}, {key}", self.name), Verdict::Wrong(wrong)));
        }
        if trials.is_empty() {
            let why = "no model has it as a target".to_owned();
            findings.push((self.name.to_owned(), Verdict::Skipped(why)));
        }
        for trial in trials {
            findings.push(match trial {
                Trial::Call(probe) => self.call(&probe).await,
                Trial::AnyModel => {
                    let why = "callers name the model, so there is none to ask for".to_owned();
                    (format!("{}/*", self.name), Verdict::Skipped(why))
                }
                Trial::File(model) => {
                    let text = "answers from a file; there is nobody to call".to_owned();
                    (format!("{}/{model}", self.name), Verdict::Good(text))
                }
            });
        }
        findings
    }

    async fn call(&self, probe: &Probe) -> Finding {
        let begun = Instant::now();
        let answer = probe.call(self.within).await;
        let key = probe.key().and_then(|index| self.keys.iter().filter(|key| key.is_set).nth(index));
        let subject = match key {
            Some(key) => format!("{}/{}, {key}", self.name, probe.model()),
            None => format!("{}/{}", self.name, probe.model()),
        };
        let verdict = match answer {
            Ok(after) => Verdict::Good(answered(after)),
            Err(error) if self.wants_a_callers_key(&error) => {
                Verdict::Good("is there, and wants the key that callers bring".to_owned())
            }
            Err(error) => Verdict::Wrong(wrong(
                &error,
                &Asked {
                    provider: self.name,
                    model: probe.model(),
                    key: key.map(|key| key.name.as_str()),
                    took: begun.elapsed(),
                    said: probe.said(&error),
                    now: self.clock.now(),
                },
            )),
        };
        (subject, verdict)
    }

    fn wants_a_callers_key(&self, error: &UpstreamError) -> bool {
        self.callers_bring_keys && error.fault().class == Class::Auth
    }
}

#[cfg(test)]
mod tests;

//! From the config to providers that can be called.

use std::sync::Arc;

use thiserror::Error;

use super::endpoint::Endpoint;
use super::provider::remote::Remote;
use super::provider::rules::Rules;
use super::provider::{Protocol, Provider};
use crate::clock::Clock;
use crate::config::{AuthMode, Config, Provider as ProviderConfig, Secret, SecretRef};

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

/// The providers of `config` that can be called. An optional one without a key is left out, with
/// a line in the log.
pub(super) fn endpoints(config: &Config, clock: Clock) -> Result<Vec<Arc<Endpoint>>, UpstreamConfigError> {
    let mut endpoints = Vec::new();
    for (name, settings) in &config.providers {
        let Some(keys) = keys(config, name, settings)? else { continue };
        let wrong = |reason| UpstreamConfigError::Provider { provider: name.clone(), reason };
        let provider: Arc<dyn Provider> = match settings {
            ProviderConfig::Rules { file } => {
                Arc::new(Rules::try_new(name, file.as_deref(), clock).map_err(wrong)?)
            }
            ProviderConfig::Openai(remote)
            | ProviderConfig::Anthropic(remote)
            | ProviderConfig::Azure(remote) => {
                let protocol = protocol(settings);
                let url = &remote.url;
                let provider =
                    Remote::try_new(name, protocol, url, &config.upstream, clock).map_err(wrong)?;
                for key in &keys {
                    provider.check_key(key).map_err(|reason| wrong(reason.to_owned()))?;
                }
                Arc::new(provider)
            }
        };
        endpoints.push(Endpoint::new(provider, keys, Some(settings), &config.upstream.limit));
    }
    Ok(endpoints)
}

fn protocol(settings: &ProviderConfig) -> Protocol {
    match settings {
        ProviderConfig::Azure(remote) => Protocol::Azure { version: remote.api_version.clone() },
        ProviderConfig::Anthropic(_) => Protocol::Anthropic,
        ProviderConfig::Openai(remote) => Protocol::OpenAi { responses: remote.responses },
        ProviderConfig::Rules { .. } => Protocol::OpenAi { responses: false },
    }
}

/// The provider's keys, none for one that needs none; `None` when it is optional and has no key.
fn keys(
    config: &Config,
    name: &str,
    settings: &ProviderConfig,
) -> Result<Option<Vec<Secret>>, UpstreamConfigError> {
    let Some(remote) = settings.remote() else { return Ok(Some(Vec::new())) };
    // Where callers bring their own keys, ours are not even read: none of them can spend them.
    if config.auth.mode == AuthMode::Forward {
        return Ok(Some(Vec::new()));
    }
    let places: Vec<&SecretRef> = settings.key_places().collect();
    let mut keys = Vec::new();
    for place in &places {
        keys.extend(resolve(name, place)?);
    }
    let Some(missing) = places.first().filter(|_| keys.is_empty()) else { return Ok(Some(keys)) };
    if remote.optional {
        tracing::info!(provider = name, key = %missing, "provider left out: its key is not set");
        return Ok(None);
    }
    Err(UpstreamConfigError::NoKey { provider: name.to_owned(), place: (*missing).clone() })
}

fn resolve(name: &str, place: &SecretRef) -> Result<Option<Secret>, UpstreamConfigError> {
    place.resolve().map_err(|source| UpstreamConfigError::UnreadableKey {
        provider: name.to_owned(),
        place: place.clone(),
        source,
    })
}

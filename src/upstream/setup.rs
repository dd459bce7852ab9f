//! From the config to providers that can be called.

use std::sync::Arc;

use thiserror::Error;

use super::provider::Provider;
use super::provider::openai::OpenAi;
use super::provider::rules::Rules;
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

/// The provider that `settings` describe; `None` when it is optional and has no key.
pub(super) fn connect(
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

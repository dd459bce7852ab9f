//! Who calls, and may they?
//!
//! The caller's tenant is always a hash of the credential itself, never of a key's name: a name
//! can be given to somebody else, and the new holder must not find the old one's answers. The
//! price is that a rotated key starts with an empty cache.

mod admin;
mod credential;

use std::fmt;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::request::Parts;
use sha2::{Digest, Sha256};
use subtle::{ConditionallySelectable, ConstantTimeEq};
use thiserror::Error;

use crate::cache::key::Tenant;
use crate::config::{self, AuthMode, Secret};

pub use admin::{AdminAuth, AdminAuthError, GuardError};

/// Who calls.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Whose answers this caller may see.
    pub tenant: Tenant,
    /// The caller's name for the log: the key's name, or the tenant's.
    pub name: Arc<str>,
    /// The caller's own credential for the provider; only in forward mode.
    pub credential: Option<Secret>,
}

/// Tells callers apart, as `auth.mode` says.
#[derive(Clone, Debug)]
pub struct Auth(Mode);

#[derive(Clone)]
enum Mode {
    Open,
    Keys(Vec<Key>),
    Forward,
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("Open"),
            Self::Keys(keys) => f.debug_list().entries(keys.iter().map(|key| &key.name)).finish(),
            Self::Forward => f.write_str("Forward"),
        }
    }
}

#[derive(Clone)]
struct Key {
    name: Arc<str>,
    sha256: [u8; 32],
}

/// A key that cannot be used.
#[derive(Debug, Error)]
pub enum AuthConfigError {
    /// Not a SHA-256.
    #[error("auth.keys.{0}.sha256 is no SHA-256: 64 hexadecimal digits are allowed")]
    NoDigest(String),
    /// Two names for one key: the log could not tell them apart.
    #[error("auth.keys.{0} and auth.keys.{1} are the same key")]
    Twice(String, String),
}

/// Why a caller is not let in. The text is for the caller: it says what is wrong with what was
/// sent, and nothing of the keys that are configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AuthError {
    /// No credential.
    #[error("no API key was sent: it belongs into the header \"Authorization: Bearer <key>\"")]
    Missing,
    /// A credential header without a credential.
    #[error("the API key that was sent is empty")]
    Empty,
    /// Not the Bearer scheme.
    #[error("the Authorization header must have the form \"Bearer <key>\"")]
    NotBearer,
    /// Not visible ASCII.
    #[error("the API key holds characters other than visible ASCII")]
    NotText,
    /// Longer than any key.
    #[error("the API key is longer than {} bytes", credential::LONGEST)]
    TooLong,
    /// Several different credentials: whose tenant should it be?
    #[error("the request carries several different API keys")]
    Conflicting,
    /// Not one of the configured ones.
    #[error("the API key is not valid")]
    Unknown,
}

impl Auth {
    /// As the configuration says.
    pub fn try_new(config: &config::Auth) -> Result<Self, AuthConfigError> {
        Ok(Self(match config.mode {
            AuthMode::Open => Mode::Open,
            AuthMode::Forward => Mode::Forward,
            AuthMode::Keys => Mode::Keys(read_keys(config)?),
        }))
    }

    /// Refuses what another web page makes a browser send: in open mode nothing else stands
    /// between any page and the operator's money.
    pub fn guard(&self, request: &Parts) -> Result<(), GuardError> {
        match &self.0 {
            Mode::Open => admin::check_local(&request.headers, &request.uri),
            Mode::Keys(_) | Mode::Forward => Ok(()),
        }
    }

    /// Who sent these headers.
    ///
    /// In open mode credentials do not count at all: SDKs always send some key. Otherwise there
    /// must be exactly one, in `Authorization: Bearer`, `x-api-key` or `api-key`.
    pub fn caller(&self, headers: &HeaderMap) -> Result<Caller, AuthError> {
        match &self.0 {
            Mode::Open => {
                Ok(Caller { tenant: Tenant::anonymous(), name: "anonymous".into(), credential: None })
            }
            Mode::Keys(keys) => {
                let sent = credential::of(headers)?;
                let name = holder(keys, sent).ok_or(AuthError::Unknown)?;
                Ok(Caller { tenant: Tenant::of_credential(sent), name, credential: None })
            }
            Mode::Forward => {
                let sent = credential::of(headers)?;
                let tenant = Tenant::of_credential(sent);
                let name = tenant.as_str().into();
                Ok(Caller { tenant, name, credential: Some(Secret::new(sent)) })
            }
        }
    }
}

fn read_keys(config: &config::Auth) -> Result<Vec<Key>, AuthConfigError> {
    let mut keys: Vec<Key> = Vec::with_capacity(config.keys.len());
    for (name, key) in &config.keys {
        let mut sha256 = [0; 32];
        hex::decode_to_slice(&key.sha256, &mut sha256)
            .map_err(|_| AuthConfigError::NoDigest(name.clone()))?;
        if let Some(same) = keys.iter().find(|other| other.sha256 == sha256) {
            return Err(AuthConfigError::Twice(same.name.to_string(), name.clone()));
        }
        keys.push(Key { name: name.as_str().into(), sha256 });
    }
    Ok(keys)
}

/// Whose key this is. Looks at every key to its end, so that the time taken tells nothing.
fn holder(keys: &[Key], sent: &str) -> Option<Arc<str>> {
    let sent: [u8; 32] = Sha256::digest(sent).into();
    let mut found = u64::MAX;
    for (index, key) in (0_u64..).zip(keys) {
        found.conditional_assign(&index, key.sha256.ct_eq(&sent));
    }
    Some(Arc::clone(&keys.get(usize::try_from(found).ok()?)?.name))
}

#[cfg(test)]
mod tests;

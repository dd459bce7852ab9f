//! Secrets: only ever a reference in the config, never shown once read.

use std::fmt;
use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

/// Where a secret is found: `env:NAME` or `file:/path`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum SecretRef {
    /// An environment variable.
    Env(String),
    /// A file; white space around its content does not count.
    File(PathBuf),
}

impl TryFrom<String> for SecretRef {
    type Error = &'static str;

    // The refused text is not repeated: it may well be the secret itself.
    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Ok(Self::Env(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            _ => Err(
                "a secret is not written into the config: \"env:NAME\" or \"file:/path\" says where it is found",
            ),
        }
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl SecretRef {
    /// Reads the secret; `Ok(None)` when there is none there.
    pub fn resolve(&self) -> Result<Option<Secret>, std::io::Error> {
        let text = match self {
            Self::Env(name) => std::env::var(name).unwrap_or_default(),
            Self::File(path) => match std::fs::read_to_string(path) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
                Err(error) => return Err(error),
            },
        };
        let text = text.trim();
        Ok((!text.is_empty()).then(|| Secret::new(text)))
    }
}

/// A secret in memory. Debug shows nothing of it.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Takes the secret.
    pub fn new(text: &str) -> Self {
        Self(SecretString::from(text))
    }

    /// The secret itself, for the one place that sends or compares it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_itself_is_refused_and_not_repeated() {
        for text in ["sk-canary-4711", "env:", "file:", "canary"] {
            let error = SecretRef::try_from(text.to_owned()).unwrap_err();
            assert!(error.contains("env:NAME") && !error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", Secret::new("sk-canary")), "[secret]");
    }
}

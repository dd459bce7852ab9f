//! What can be switched, and how it is written: `provider:openai`, `target:openai/gpt-4o`.
//!
//! Two forms, because they are asked for on every request and set once a night: a [`Subject`]
//! borrows its names and costs nothing, a [`Target`] owns them, was checked, and goes over the wire.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The longest name, in characters.
const MAX_NAME: usize = 200;

/// What can be switched, by borrowed names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject<'a> {
    /// A provider by its name in the config. Off: it is not called.
    Provider(&'a str),
    /// A model by the name that callers use. Off: no provider is called for it.
    Model(&'a str),
    /// A model at a provider, by the provider's name for it. Off: the provider is not called for it.
    Target {
        /// The provider's name; without a slash.
        provider: &'a str,
        /// The provider's name for the model.
        model: &'a str,
    },
    /// A namespace. Off: its requests go past the cache.
    Namespace(&'a str),
    /// A part of the service.
    Feature(Feature),
}

/// A part of the service that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// Answers to the same question in other words.
    Semantic,
    /// Second calls to another provider when the first is slow.
    Hedging,
    /// Keeping new answers.
    WriteBack,
    /// Answers past their time when every provider fails.
    Stale,
    /// Only answers that are there already; no provider is called. Off by default.
    CacheOnly,
}

impl Feature {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Semantic, Self::Hedging, Self::WriteBack, Self::Stale, Self::CacheOnly];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Hedging => "hedging",
            Self::WriteBack => "write_back",
            Self::Stale => "stale",
            Self::CacheOnly => "cache_only",
        }
    }
}

impl<'a> Subject<'a> {
    /// How it is while nobody has switched it.
    pub fn on_by_default(self) -> bool {
        self != Self::Feature(Feature::CacheOnly)
    }

    fn read(text: &'a str) -> Result<Self, InvalidTarget> {
        let (kind, name) = text.split_once(':').ok_or(InvalidTarget::Kind)?;
        match kind {
            "provider" => Ok(Self::Provider(checked(name)?)),
            "model" => Ok(Self::Model(checked(name)?)),
            "namespace" => Ok(Self::Namespace(checked(name)?)),
            "target" => {
                // Models have slashes in their names (`openai/gpt-4o` at OpenRouter), providers do not.
                let (provider, model) = name.split_once('/').ok_or(InvalidTarget::Slash)?;
                Ok(Self::Target { provider: checked(provider)?, model: checked(model)? })
            }
            "feature" => {
                let feature = Feature::ALL.into_iter().find(|feature| feature.name() == name);
                feature.map(Self::Feature).ok_or(InvalidTarget::Feature)
            }
            _ => Err(InvalidTarget::Kind),
        }
    }
}

fn checked(name: &str) -> Result<&str, InvalidTarget> {
    let sound = !name.is_empty()
        && name.trim() == name
        && name.chars().count() <= MAX_NAME
        && !name.contains(char::is_control);
    if sound { Ok(name) } else { Err(InvalidTarget::Name) }
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider(name) => write!(f, "provider:{name}"),
            Self::Model(name) => write!(f, "model:{name}"),
            Self::Target { provider, model } => write!(f, "target:{provider}/{model}"),
            Self::Namespace(name) => write!(f, "namespace:{name}"),
            Self::Feature(feature) => write!(f, "feature:{}", feature.name()),
        }
    }
}

/// What can be switched: the text of a [`Subject`] that was found sound.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target(String);

impl Target {
    /// What the text says.
    ///
    /// # Panics
    /// Never: a target is only made of text that can be read.
    pub fn subject(&self) -> Subject<'_> {
        Subject::read(&self.0).expect("it was read before it was kept")
    }
}

impl<'a> From<&'a Target> for Subject<'a> {
    fn from(target: &'a Target) -> Self {
        target.subject()
    }
}

impl TryFrom<Subject<'_>> for Target {
    type Error = InvalidTarget;

    /// Checks the names. A provider's name with a slash cannot be told from the model's that
    /// follows it, and is refused there.
    fn try_from(subject: Subject<'_>) -> Result<Self, InvalidTarget> {
        let target: Self = subject.to_string().parse()?;
        if target.subject() == subject { Ok(target) } else { Err(InvalidTarget::Name) }
    }
}

impl FromStr for Target {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for Target {
    type Error = InvalidTarget;

    fn try_from(text: String) -> Result<Self, InvalidTarget> {
        Subject::read(&text)?;
        Ok(Self(text))
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.0
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Text that names nothing that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidTarget {
    /// What kind of thing it is, is missing or unknown.
    #[error("write provider:NAME, model:NAME, target:PROVIDER/MODEL, namespace:NAME or feature:NAME")]
    Kind,
    /// The feature is unknown.
    #[error("the features are semantic, hedging, write_back, stale and cache_only")]
    Feature,
    /// The provider and the model are not told apart.
    #[error("write target:PROVIDER/MODEL")]
    Slash,
    /// The name is no name.
    #[error(
        "a name has 1 to {MAX_NAME} characters, no control characters, no space at its ends, and a provider's before \
         a model no slash"
    )]
    Name,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_kind_has_its_text() {
        for (subject, text) in [
            (Subject::Provider("openai"), "provider:openai"),
            (Subject::Model("gpt-4o"), "model:gpt-4o"),
            (Subject::Model("llama3:8b"), "model:llama3:8b"),
            (Subject::Target { provider: "openai", model: "gpt-4o" }, "target:openai/gpt-4o"),
            (Subject::Target { provider: "openrouter", model: "a/b" }, "target:openrouter/a/b"),
            (Subject::Namespace("hr"), "namespace:hr"),
            (Subject::Feature(Feature::WriteBack), "feature:write_back"),
        ] {
            assert_eq!(subject.to_string(), text);
            assert_eq!(text.parse::<Target>().expect(text).subject(), subject);
        }
    }

    #[test]
    fn anything_else_is_refused_with_what_is_allowed() {
        for (text, error) in [
            ("", InvalidTarget::Kind),
            ("openai", InvalidTarget::Kind),
            ("Provider:openai", InvalidTarget::Kind),
            ("provider:", InvalidTarget::Name),
            ("provider: openai", InvalidTarget::Name),
            ("model:a\nb", InvalidTarget::Name),
            ("target:openai", InvalidTarget::Slash),
            ("target:/gpt-4o", InvalidTarget::Name),
            ("target:openai/", InvalidTarget::Name),
            ("feature:Semantic", InvalidTarget::Feature),
            ("feature:", InvalidTarget::Feature),
        ] {
            assert_eq!(text.parse::<Target>(), Err(error), "{text:?}");
        }
        assert!(format!("model:{}", "模".repeat(MAX_NAME)).parse::<Target>().is_ok());
        assert!(format!("model:{}", "模".repeat(MAX_NAME + 1)).parse::<Target>().is_err());
        let ambiguous = Subject::Target { provider: "a/b", model: "c" };
        assert_eq!(Target::try_from(ambiguous), Err(InvalidTarget::Name));
    }

    #[test]
    fn only_cache_only_is_off_by_default() {
        for feature in Feature::ALL {
            assert_eq!(Subject::Feature(feature).on_by_default(), feature != Feature::CacheOnly);
        }
        assert!(Subject::Provider("cache_only").on_by_default());
    }

    fn name() -> impl Strategy<Value = String> {
        "[\\PC&&[^/]]{1,40}".prop_filter("a name has no space at its ends", |name| name.trim() == name)
    }

    proptest! {
        #[test]
        fn subjects_survive_their_text(kind in 0..5_u8, first in name(), second in name(), n in 0..5_usize) {
            let model = format!("{second}/{first}:{second}");
            let subject = match kind {
                0 => Subject::Provider(&first),
                1 => Subject::Model(&model),
                2 => Subject::Target { provider: &first, model: &model },
                3 => Subject::Namespace(&first),
                _ => Subject::Feature(Feature::ALL[n]),
            };
            let target = Target::try_from(subject).expect("the names are sound");
            prop_assert_eq!(target.subject(), subject);
            prop_assert_eq!(target.to_string(), subject.to_string());
            let json = serde_json::to_string(&target).expect("text is JSON");
            prop_assert_eq!(serde_json::from_str::<Target>(&json).expect("it reads back"), target);
        }

        #[test]
        fn what_can_be_read_is_written_the_same(
            text in prop_oneof!["\\PC*", "(provider|model|target|namespace|feature):\\PC*"],
        ) {
            if let Ok(target) = text.parse::<Target>() {
                prop_assert_eq!(target.subject().to_string(), text);
            }
        }
    }
}

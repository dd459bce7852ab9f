//! How a provider is spoken to: where a call goes, how a key is shown, in which dialect.

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use crate::chat::Api;
use crate::config::Secret;
use crate::dialect::Dialect;

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const API_KEY: HeaderName = HeaderName::from_static("api-key");
const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// The version of Anthropic's API for a request that names none, as one in another dialect.
const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// So begin Anthropic's tokens for a person's own account: they are shown as a bearer's, unlike keys.
const OAUTH_TOKEN: &str = "sk-ant-oat";

/// The API of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's, and whoever copies it.
    OpenAi {
        /// Responses too, and not only chat completions.
        responses: bool,
    },
    /// OpenAI's models at Azure: with an `api-version` each deployment has a path of its own; without
    /// one it is the v1 API, which takes the deployment's name as the model.
    Azure {
        /// `2024-10-21`, say.
        version: Option<String>,
    },
    /// Anthropic's.
    Anthropic,
}

impl Protocol {
    /// The dialect of its requests and answers.
    pub(super) fn dialect(&self) -> Dialect {
        match self {
            Self::OpenAi { .. } | Self::Azure { .. } => Dialect::OpenAi,
            Self::Anthropic => Dialect::Anthropic,
        }
    }

    /// Whether the call can be made as it is, byte for byte.
    pub(super) fn speaks(&self, api: Api) -> bool {
        match api {
            Api::Chat | Api::Embeddings => self.dialect() == Dialect::OpenAi,
            Api::Messages | Api::CountTokens => self.dialect() == Dialect::Anthropic,
            Api::Responses => matches!(self, Self::OpenAi { responses: true }),
        }
    }

    /// Where a call goes at a provider with this base URL.
    pub(super) fn url(&self, base: &Url, api: Api, model: &str) -> Url {
        let mut url = base.clone();
        // A base that cannot have a path was refused at the start.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty();
            match (self, api) {
                (Self::OpenAi { .. }, Api::Responses) => path.push("responses"),
                (Self::OpenAi { .. }, Api::Embeddings) => path.push("embeddings"),
                (Self::Azure { version: None }, Api::Embeddings) => {
                    path.extend(["openai", "v1", "embeddings"])
                }
                (Self::Azure { version: Some(_) }, Api::Embeddings) => {
                    path.extend(["openai", "deployments", model, "embeddings"])
                }
                (Self::OpenAi { .. }, _) => path.extend(["chat", "completions"]),
                (Self::Azure { version: None }, _) => path.extend(["openai", "v1", "chat", "completions"]),
                (Self::Azure { version: Some(_) }, _) => {
                    path.extend(["openai", "deployments", model, "chat", "completions"])
                }
                (Self::Anthropic, Api::CountTokens) => path.extend(["messages", "count_tokens"]),
                (Self::Anthropic, _) => path.push("messages"),
            };
        }
        if let Self::Azure { version: Some(version) } = self {
            url.query_pairs_mut().append_pair("api-version", version);
        }
        url
    }

    /// Puts the key, and what else the API demands, among the headers.
    pub(super) fn head(&self, headers: &mut HeaderMap, key: Option<&Secret>) -> Result<(), &'static str> {
        if let Some(key) = key {
            let (name, value) = self.key(key)?;
            headers.insert(name, value);
        }
        if *self == Self::Anthropic {
            headers.entry(ANTHROPIC_VERSION).or_insert(VERSION);
        }
        Ok(())
    }

    /// The header that shows the key; else why it cannot be sent.
    pub(super) fn key(&self, key: &Secret) -> Result<(HeaderName, HeaderValue), &'static str> {
        let key = key.expose();
        let (name, value) = match self {
            Self::Anthropic if !key.starts_with(OAUTH_TOKEN) => (X_API_KEY, key.to_owned()),
            Self::Azure { .. } => (API_KEY, key.to_owned()),
            Self::OpenAi { .. } | Self::Anthropic => (AUTHORIZATION, format!("Bearer {key}")),
        };
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| "the key holds characters that cannot stand in a header")?;
        value.set_sensitive(true);
        Ok((name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENAI: Protocol = Protocol::OpenAi { responses: true };

    fn url(protocol: &Protocol, base: &str, api: Api) -> String {
        protocol.url(&Url::parse(base).unwrap(), api, "team/gpt 4?").to_string()
    }

    #[test]
    fn each_call_has_its_place() {
        let azure = |version: Option<&str>| Protocol::Azure { version: version.map(str::to_owned) };
        for (protocol, base, api, expected) in [
            (OPENAI, "https://a.test/v1", Api::Chat, "https://a.test/v1/chat/completions"),
            (OPENAI, "https://a.test/v1/", Api::Messages, "https://a.test/v1/chat/completions"),
            (OPENAI, "https://a.test", Api::Chat, "https://a.test/chat/completions"),
            (OPENAI, "https://a.test/v1", Api::Responses, "https://a.test/v1/responses"),
            (OPENAI, "https://a.test/v1", Api::Embeddings, "https://a.test/v1/embeddings"),
            (azure(None), "https://c.test", Api::Embeddings, "https://c.test/openai/v1/embeddings"),
            (OPENAI, "https://a.test/v1?x=1", Api::Chat, "https://a.test/v1/chat/completions?x=1"),
            (Protocol::Anthropic, "https://b.test/v1", Api::Messages, "https://b.test/v1/messages"),
            (Protocol::Anthropic, "https://b.test/v1", Api::Chat, "https://b.test/v1/messages"),
            (
                Protocol::Anthropic,
                "https://b.test/v1",
                Api::CountTokens,
                "https://b.test/v1/messages/count_tokens",
            ),
            (azure(None), "https://c.test", Api::Chat, "https://c.test/openai/v1/chat/completions"),
            (
                azure(Some("2024-10-21")),
                "https://c.test/",
                Api::Chat,
                "https://c.test/openai/deployments/team%2Fgpt%204%3F/chat/completions?api-version=2024-10-21",
            ),
        ] {
            assert_eq!(url(&protocol, base, api), expected);
        }
    }

    #[test]
    fn each_shows_a_key_in_its_own_way() {
        let azure = Protocol::Azure { version: None };
        for (protocol, key, name, expected) in [
            (OPENAI, "sk-1", "authorization", "Bearer sk-1"),
            (Protocol::Anthropic, "sk-ant-api03-1", "x-api-key", "sk-ant-api03-1"),
            (Protocol::Anthropic, "sk-ant-oat01-1", "authorization", "Bearer sk-ant-oat01-1"),
            (azure, "abc", "api-key", "abc"),
        ] {
            let mut headers = HeaderMap::new();
            protocol.head(&mut headers, Some(&Secret::new(key))).unwrap();
            assert_eq!(headers[name], expected);
            assert!(headers[name].is_sensitive());
            let keys = ["authorization", "x-api-key", "api-key"].map(|name| headers.contains_key(name));
            assert_eq!(keys.iter().filter(|there| **there).count(), 1, "and in no other");
            assert_eq!(headers.contains_key("anthropic-version"), protocol == Protocol::Anthropic);
        }
        assert!(OPENAI.key(&Secret::new("a\nb")).is_err());
    }

    #[test]
    fn the_callers_version_is_kept() {
        let mut headers = HeaderMap::new();
        headers.insert(ANTHROPIC_VERSION, HeaderValue::from_static("2099-01-01"));
        Protocol::Anthropic.head(&mut headers, None).unwrap();
        assert_eq!(headers["anthropic-version"], "2099-01-01");
    }
}

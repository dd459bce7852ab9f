//! The settings of the upstream module: its policies, the providers, and who serves which model.

use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use serde::Deserialize;

use super::SecretRef;
use super::section::section;

section!(
    /// The limits of a provider's answer.
    Upstream {
        #[serde(with = "humantime_serde")]
        connect_timeout: Duration,
        #[serde(with = "humantime_serde")]
        first_content_timeout: Duration,
        #[serde(with = "humantime_serde")]
        stall_timeout: Duration,
        #[serde(with = "humantime_serde")]
        total_timeout: Duration,
        max_reply: ByteSize,
    }
);

/// A provider.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Provider {
    /// Anything that speaks OpenAI's chat API.
    Openai {
        /// The base URL, up to and without `/chat/completions`.
        url: String,
        /// The key; none for a local server.
        #[serde(default)]
        api_key: Option<SecretRef>,
        /// Left out when its key is not set.
        #[serde(default)]
        optional: bool,
    },
    /// Answers from a file.
    Rules {
        /// The file; the built-in FAQ when not set.
        #[serde(default)]
        file: Option<PathBuf>,
    },
}

section!(
    /// A model by the name that callers use.
    Model {
        targets: Vec<Target>,
        #[serde(default)]
        namespace: Option<String>,
    }
);

section!(
    /// Who serves a model, and under what name.
    Target {
        provider: String,
        #[serde(default)]
        model: Option<String>,
    }
);

//! The settings of the upstream module: its policies, the providers, and who serves which model.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use serde::Deserialize;

use super::SecretRef;
use super::section::section;

section!(
    /// Limits of time and size, and the policies for bad days.
    Upstream {
        #[serde(with = "humantime_serde")]
        deadline: Duration,
        #[serde(with = "humantime_serde")]
        max_deadline: Duration,
        #[serde(with = "humantime_serde")]
        connect_timeout: Duration,
        #[serde(with = "humantime_serde")]
        first_content_timeout: Duration,
        #[serde(with = "humantime_serde")]
        stall_timeout: Duration,
        #[serde(with = "humantime_serde")]
        total_timeout: Duration,
        max_reply: ByteSize,
        retry: Retry,
        breaker: Breaker,
        hedge: Hedge,
        limit: Limit,
    }
);

section!(
    /// When the same target is tried again.
    Retry {
        attempts: u32,
        per_target: u32,
        #[serde(with = "humantime_serde")]
        base: Duration,
        #[serde(with = "humantime_serde")]
        cap: Duration,
        budget: f64,
        floor: u32,
    }
);

section!(
    /// When a target gets no calls for a while.
    Breaker {
        error_rate: f64,
        #[serde(with = "humantime_serde")]
        window: Duration,
        min_calls: u32,
        slow_factor: f64,
        #[serde(with = "humantime_serde")]
        slow_for: Duration,
        #[serde(with = "humantime_serde")]
        cool_down: Duration,
        #[serde(with = "humantime_serde")]
        max_cool_down: Duration,
        #[serde(with = "humantime_serde")]
        ramp: Duration,
    }
);

section!(
    /// When a second call races the first, for the models that say so.
    Hedge {
        budget: f64,
        #[serde(with = "humantime_serde")]
        min_delay: Duration,
    }
);

section!(
    /// How many calls run at once, and how many requests wait for their turn.
    Limit {
        min_in_flight: NonZeroU32,
        max_in_flight: NonZeroU32,
        queue: usize,
        #[serde(with = "humantime_serde")]
        queue_timeout: Duration,
        tenant_in_flight: u32,
    }
);

/// A provider.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Provider {
    /// Anything that speaks OpenAI's chat API.
    Openai(Remote),
    /// Anthropic, or who speaks its Messages API.
    Anthropic(Remote),
    /// OpenAI's models at Azure.
    Azure(Remote),
    /// Answers from a file.
    Rules {
        /// The file; the built-in FAQ when not set.
        #[serde(default)]
        file: Option<PathBuf>,
    },
}

section!(
    /// A provider that is called over HTTP.
    Remote {
        url: String,
        #[serde(default)]
        api_key: Option<SecretRef>,
        #[serde(default)]
        api_keys: Vec<SecretRef>,
        #[serde(default)]
        optional: bool,
        #[serde(default)]
        api_version: Option<String>,
        #[serde(default)]
        responses: bool,
        #[serde(default)]
        region: Option<String>,
        #[serde(default)]
        max_in_flight: Option<NonZeroU32>,
        #[serde(default)]
        requests_per_minute: Option<NonZeroU32>,
        #[serde(default)]
        tokens_per_minute: Option<NonZeroU32>,
    }
);

impl Provider {
    /// The settings of one that is called over HTTP.
    pub fn remote(&self) -> Option<&Remote> {
        match self {
            Self::Openai(remote) | Self::Anthropic(remote) | Self::Azure(remote) => Some(remote),
            Self::Rules { .. } => None,
        }
    }

    /// Where its keys are found, in the order in which they are numbered; nowhere for one that needs
    /// none.
    pub fn key_places(&self) -> impl Iterator<Item = &SecretRef> {
        self.remote().into_iter().flat_map(|remote| remote.api_key.iter().chain(&remote.api_keys))
    }
}

/// Ends the name of a model that stands for all whose names begin so; alone it is for any.
pub const ANY: &str = "*";

section!(
    /// A model by the name that callers use.
    Model {
        targets: Vec<Target>,
        #[serde(default)]
        namespace: Option<String>,
        #[serde(default)]
        order: Order,
        #[serde(default)]
        hedge: bool,
    }
);

/// In what order the targets of one tier are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// As written.
    #[default]
    Priority,
    /// At random, in proportion to their weights.
    Weight,
    /// The soonest first content first.
    Latency,
    /// The cheapest first.
    Price,
}

section!(
    /// Who serves a model, and under what name.
    Target {
        provider: String,
        #[serde(default)]
        model: Option<String>,
        #[serde(default)]
        tier: Option<NonZeroU32>,
        #[serde(default)]
        weight: Option<NonZeroU32>,
        #[serde(default)]
        reserved: bool,
        #[serde(default)]
        context_window: Option<u64>,
        #[serde(default)]
        parameters: Option<Vec<String>>,
    }
);

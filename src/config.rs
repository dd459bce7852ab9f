//! Every setting, as plain data.
//!
//! `config/default.toml` is the only home of defaults and says what each setting means; a file
//! and then the environment overlay it. An invalid value stops the start, naming file, key,
//! value and what is allowed.

mod fault;
mod origin;
mod secret;
mod section;
mod upstream;
mod validate;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use figment::Figment;
use figment::providers::{Env, Format, Toml};
use serde::Deserialize;
use thiserror::Error;

pub use origin::Origin;
pub use secret::{Secret, SecretRef};
use section::section;
pub use upstream::{ANY, Breaker, Hedge, Limit, Model, Order, Provider, Remote, Retry, Target, Upstream};

/// What `config/default.toml` says.
pub const DEFAULTS: &str = include_str!("../config/default.toml");

/// The environment variables that overlay the files: `REFRAIN__SECTION__KEY`.
const ENV_PREFIX: &str = "REFRAIN__";

/// All settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.toml says what each setting means")]
pub struct Config {
    pub server: Server,
    pub admin: Admin,
    pub auth: Auth,
    pub log: Log,
    pub cache: Cache,
    pub embedder: Embedder,
    pub encoders: BTreeMap<String, Encoder>,
    pub store: Store,
    pub upstream: Upstream,
    pub providers: BTreeMap<String, Provider>,
    pub models: BTreeMap<String, Model>,
    pub namespaces: BTreeMap<String, NamespaceOverlay>,
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
    pub switches: Switches,
    pub reload: Reload,
    #[serde(skip)]
    pub origin: Origin,
}

section!(
    /// What is switched as long as no operator says otherwise.
    Switches {
        off: Vec<String>,
        on: Vec<String>,
    }
);

section!(
    /// How changes of the file are noticed.
    Reload {
        #[serde(with = "humantime_serde")]
        poll_interval: Duration,
    }
);

section!(
    /// The callers' listener and the limits of a request.
    Server {
        listen: SocketAddr,
        #[serde(with = "humantime_serde")]
        header_timeout: Duration,
        #[serde(with = "humantime_serde")]
        body_timeout: Duration,
        #[serde(with = "humantime_serde")]
        idle_timeout: Duration,
        max_connections: usize,
        max_body: ByteSize,
        max_headers: ByteSize,
        max_json_depth: usize,
        debug: bool,
        #[serde(with = "humantime_serde")]
        shutdown_grace: Duration,
    }
);

section!(
    /// The operator's listener.
    Admin {
        listen: SocketAddr,
        #[serde(default)]
        token: Option<SecretRef>,
    }
);

section!(
    /// Who may call.
    Auth {
        mode: AuthMode,
        #[serde(default)]
        keys: BTreeMap<String, AuthKey>,
    }
);

/// How callers are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMode {
    /// Anyone, one tenant.
    Open,
    /// Named keys, each its own tenant.
    Keys,
    /// The caller's own key goes upstream.
    Forward,
}

section!(
    /// A caller's key.
    AuthKey {
        sha256: String,
    }
);

section!(
    /// What is logged, and how.
    Log {
        format: LogFormat,
        filter: String,
        prompts: bool,
    }
);

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// For people.
    Text,
    /// For machines.
    Json,
}

section!(
    /// How answers are kept.
    Cache {
        fill_on_disconnect: bool,
        write_queue: usize,
        exact: Exact,
    }
);

section!(
    /// The exact layer.
    Exact {
        max_bytes: ByteSize,
    }
);

section!(
    /// The encoders' common settings.
    Embedder {
        models: Vec<String>,
        folder: PathBuf,
        runtime: PathBuf,
        workers: usize,
        queue: usize,
        #[serde(with = "humantime_serde")]
        timeout: Duration,
        memo_bytes: ByteSize,
    }
);

section!(
    /// What is known of one encoder.
    Encoder {
        #[serde(default)]
        folder: Option<PathBuf>,
        pooling: Pooling,
        prefix: String,
        covers: Covers,
        window: usize,
        threshold: Similarity,
        load: Load,
        #[serde(default)]
        verifier: Option<Verifier>,
    }
);

section!(
    /// The learned judge of an encoder's candidates.
    Verifier {
        files: String,
        floor: Similarity,
        strict: Probability,
        balanced: Probability,
        loose: Probability,
    }
);

/// How sure a namespace must be that two questions are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// As good as never wrong.
    Strict,
    /// The default.
    Balanced,
    /// More hits, some of them wrong.
    Loose,
    /// By similarity alone, without the learned judge.
    Similarity,
}

/// What a namespace asks of a question in other words.
#[derive(Clone, Debug)]
pub struct Matching {
    /// How sure it must be.
    pub policy: Policy,
    /// The least similarities, by encoder, where they differ from the encoders' own.
    pub thresholds: BTreeMap<String, Similarity>,
}

/// How token vectors become one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// The first token's.
    Cls,
    /// Their mean.
    Mean,
}

/// What text an encoder is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Covers {
    /// English only.
    English,
    /// Any language.
    All,
}

/// When an encoder is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Before the service is ready.
    Start,
    /// In the background, when the first text needs it.
    Lazy,
}

section!(
    /// Where entries lie.
    Store {
        path: PathBuf,
        #[serde(default)]
        url: Option<String>,
        #[serde(default)]
        api_key: Option<SecretRef>,
        collection_prefix: String,
        #[serde(default)]
        replication_factor: Option<NonZeroU32>,
        #[serde(with = "humantime_serde")]
        read_timeout: Duration,
        #[serde(with = "humantime_serde")]
        write_timeout: Duration,
        candidates: usize,
        #[serde(with = "humantime_serde")]
        poll_interval: Duration,
        #[serde(with = "humantime_serde")]
        sweep_interval: Duration,
    }
);

section!(
    /// What a namespace sets itself; the rest comes from `namespaces.default`.
    NamespaceOverlay {
        #[serde(default, with = "humantime_serde")]
        ttl: Option<Duration>,
        #[serde(default, with = "humantime_serde")]
        max_ttl: Option<Duration>,
        #[serde(default)]
        semantic: Option<bool>,
        #[serde(default)]
        policy: Option<Policy>,
        #[serde(default)]
        thresholds: Option<BTreeMap<String, Similarity>>,
        #[serde(default)]
        time_bound_bypass: Option<bool>,
        #[serde(default)]
        follow_ups: Option<FollowUps>,
        #[serde(default)]
        shadow: Option<Shadow>,
        #[serde(default)]
        question: Option<QuestionPlace>,
        #[serde(default)]
        scope: Option<ScopeSettings>,
        #[serde(default)]
        store_tool_calls: Option<bool>,
        #[serde(default)]
        store_fallbacks: Option<bool>,
        #[serde(default, with = "humantime_serde")]
        stale_if_error: Option<Duration>,
        #[serde(default)]
        related: Option<Related>,
    }
);

section!(
    /// How hits in other words are measured on one's own traffic.
    #[derive(Copy)]
    Shadow {
        serve: bool,
        sample: Probability,
    }
);

/// What becomes of a question that leans on what was said before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FollowUps {
    /// It never matches in other words.
    Bypass,
    /// It matches as any other, in the same history.
    Match,
}

section!(
    /// Where the question stands in the last turn.
    QuestionPlace {
        #[serde(default)]
        pattern: Option<String>,
        #[serde(default)]
        part: Option<String>,
    }
);

section!(
    /// Answers to similar questions, for when there is no other.
    Related {
        limit: usize,
        min_similarity: Similarity,
        text: String,
    }
);

section!(
    /// How a namespace loosens the scope.
    ScopeSettings {
        ignore: Vec<String>,
    }
);

/// A namespace with all its settings.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "settings that do not depend on each other")]
#[expect(missing_docs, reason = "config/default.toml says what each setting means")]
pub struct Namespace {
    pub ttl: Duration,
    pub max_ttl: Duration,
    pub semantic: bool,
    pub matching: Matching,
    pub time_bound_bypass: bool,
    pub follow_ups: FollowUps,
    pub shadow: Shadow,
    pub question: Option<QuestionPlace>,
    pub scope_ignore: Vec<String>,
    pub store_tool_calls: bool,
    pub store_fallbacks: bool,
    pub stale_if_error: Duration,
    pub related: Related,
}

section!(
    /// Dollars per million tokens.
    #[derive(Copy)]
    Price {
        input: f64,
        output: f64,
    }
);

/// A probability used as a threshold: 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Deserialize)]
#[serde(try_from = "f64")]
pub struct Probability(f32);

impl Probability {
    /// The number.
    pub fn get(self) -> f32 {
        self.0
    }
}

impl TryFrom<f64> for Probability {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        unit(value).ok_or_else(|| format!("{value} is no probability: 0 to 1 is allowed")).map(Self)
    }
}

/// A cosine similarity used as a threshold: 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Deserialize)]
#[serde(try_from = "f64")]
pub struct Similarity(f32);

impl Similarity {
    /// The number.
    pub fn get(self) -> f32 {
        self.0
    }
}

impl TryFrom<f64> for Similarity {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        unit(value).ok_or_else(|| format!("{value} is no similarity: 0 to 1 is allowed")).map(Self)
    }
}

fn unit(value: f64) -> Option<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "a threshold needs no more digits")]
    (0.0..=1.0).contains(&value).then_some(value as f32)
}

/// Why there is no valid configuration. One line a fault.
#[derive(Debug, Error)]
#[error("{}", .0.join("\n"))]
pub struct ConfigError(Vec<String>);

impl Config {
    /// The defaults, overlaid by `file` when there is one, and then by the environment.
    pub fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        if let Some(path) = file
            && !path.is_file()
        {
            return Err(ConfigError(vec![format!("{}: there is no such config file", path.display())]));
        }
        let mut figment = Figment::from(Toml::string(DEFAULTS));
        if let Some(path) = file {
            figment = figment.merge(Toml::file_exact(path));
        }
        Self::extract(file, &figment.merge(Env::prefixed(ENV_PREFIX).split("__")))
    }

    /// The configuration from where another one came.
    pub fn load_again(origin: &Origin) -> Result<Self, ConfigError> {
        Self::load(origin.file.as_deref())
    }

    /// The file that overlays the defaults.
    pub fn file(&self) -> Option<&Path> {
        self.origin.file.as_deref()
    }

    /// The defaults, overlaid by a TOML text; for tests and examples.
    pub fn from_toml(overlay: &str) -> Result<Self, ConfigError> {
        Self::extract(None, &Figment::from(Toml::string(DEFAULTS)).merge(Toml::string(overlay)))
    }

    fn extract(file: Option<&Path>, figment: &Figment) -> Result<Self, ConfigError> {
        let mut config: Self = figment.extract().map_err(|errors| {
            ConfigError(errors.into_iter().map(|error| fault::in_words(figment, &error)).collect())
        })?;
        config.validate()?;
        config.origin = Origin::new(file.map(Path::to_owned), figment);
        Ok(config)
    }

    /// How long past its time an answer may be of use to some namespace.
    pub fn longest_stale(&self) -> Duration {
        let windows = self.namespaces.keys().filter_map(|name| Some(self.namespace(name)?.stale_if_error));
        windows.max().unwrap_or_default()
    }

    /// The namespace with all its settings; `None` when it is not configured.
    pub fn namespace(&self, name: &str) -> Option<Namespace> {
        let own = self.namespaces.get(name)?;
        let base = self.namespaces.get("default")?;
        Some(Namespace {
            ttl: own.ttl.or(base.ttl)?,
            max_ttl: own.max_ttl.or(base.max_ttl)?,
            semantic: own.semantic.or(base.semantic)?,
            matching: Matching {
                policy: own.policy.or(base.policy)?,
                thresholds: own.thresholds.clone().or_else(|| base.thresholds.clone())?,
            },
            time_bound_bypass: own.time_bound_bypass.or(base.time_bound_bypass)?,
            follow_ups: own.follow_ups.or(base.follow_ups)?,
            shadow: own.shadow.or(base.shadow)?,
            question: own.question.clone().or_else(|| base.question.clone()),
            scope_ignore: own.scope.clone().or_else(|| base.scope.clone())?.ignore,
            store_tool_calls: own.store_tool_calls.or(base.store_tool_calls)?,
            store_fallbacks: own.store_fallbacks.or(base.store_fallbacks)?,
            stale_if_error: own.stale_if_error.or(base.stale_if_error)?,
            related: own.related.clone().or_else(|| base.related.clone())?,
        })
    }
}

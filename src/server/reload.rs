//! Settings that change without a restart.
//!
//! Why not all of them: what holds connections, models, breakers or a place on the disk is safer to
//! start anew. What people change by the day is what namespaces promise, whose keys are good, and
//! what is switched off; that is taken over as one, after the whole configuration was found to be
//! valid. An invalid one changes nothing, and the answer names what is wrong. The rest is named too:
//! it waits for a restart.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use thiserror::Error;

use super::auth::{Auth, AuthConfigError};
use super::error::ApiError;
use super::switches::UnknownName;
use super::{Context, Names};
use crate::config::{AuthMode, Config, ConfigError, Origin};
use crate::gateway::{InvalidPlacement, Namespaces};
use crate::switches::{InvalidTarget, Target};
use crate::upstream::Upstream;

/// What is in force, and where it came from.
pub struct Reload {
    in_force: Mutex<Origin>,
    /// Answers are not kept for longer than this beyond their time, whatever is reloaded.
    longest_stale: Duration,
    auth_mode: AuthMode,
}

/// What became of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reloaded {
    /// Settings that are others now.
    pub in_force: Vec<String>,
    /// Settings that are others in the file and wait for a restart.
    pub after_restart: Vec<String>,
}

/// Why everything stays as it was.
#[derive(Debug, Error)]
pub enum ReloadError {
    /// The file or the environment is not valid.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The callers' keys are not.
    #[error("{0}")]
    Auth(#[from] AuthConfigError),
    /// A namespace's question cannot be found.
    #[error("{0}")]
    Placement(#[from] InvalidPlacement),
    /// A switch is not written as one.
    #[error("switches names {0:?}: {1}")]
    Target(String, InvalidTarget),
    /// A switch for what is not there.
    #[error("switches: {0}")]
    Name(#[from] UnknownName),
}

/// What the config switches.
pub fn configured_switches(config: &Config, upstream: &Upstream) -> Result<Vec<(Target, bool)>, ReloadError> {
    let names = Names::new(config);
    let (off, on) = (config.switches.off.iter(), config.switches.on.iter());
    let all = off.map(|text| (text, false)).chain(on.map(|text| (text, true)));
    all.map(|(text, on)| {
        let target = text.parse::<Target>().map_err(|error| ReloadError::Target(text.clone(), error))?;
        names.find(&target, upstream)?;
        Ok((target, on))
    })
    .collect()
}

impl Reload {
    /// What a service was started with.
    pub fn new(config: &Config) -> Self {
        Self {
            in_force: Mutex::new(config.origin.clone()),
            longest_stale: config.longest_stale(),
            auth_mode: config.auth.mode,
        }
    }

    /// Whether a setting changes without a restart.
    fn is_live(&self, name: &str, new: &Config) -> bool {
        let is_in = |section: &str| name.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'));
        if name.ends_with(".stale_if_error") {
            return is_in("namespaces") && new.longest_stale() <= self.longest_stale;
        }
        is_in("namespaces") || is_in("switches") || (is_in("auth.keys") && new.auth.mode == self.auth_mode)
    }
}

impl Context {
    /// Reads the settings again. Blocks on the disk. All that changes without a restart changes at
    /// once, or nothing does; requests under way end as they began.
    pub fn reload(&self) -> Result<Reloaded, ReloadError> {
        let mut in_force = self.reload.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        let new = Config::load_again(&in_force)?;
        let auth = Auth::try_new(&new.auth)?;
        let namespaces = Namespaces::try_new(&new, &self.metrics)?;
        let switches = configured_switches(&new, self.gateway.upstream())?;
        let live = |name: &str| self.reload.is_live(name, &new);
        let (changed, after_restart) =
            in_force.differences(&new.origin).into_iter().partition::<Vec<_>, _>(|name| live(name));
        let has = |section: &str| changed.iter().any(|name| name.starts_with(section));
        if has("namespaces.") {
            self.gateway.set_namespaces(namespaces);
            self.names.store(Arc::new(Names::new(&new)));
        }
        if has("auth.keys.") {
            self.auth.store(Arc::new(auth));
        }
        if has("switches.") {
            self.switches.configure(switches);
        }
        in_force.take(&new.origin, live);
        Ok(Reloaded { in_force: changed, after_restart })
    }

    /// Reloads, and tells the log.
    pub fn reload_and_tell(&self) -> Result<Reloaded, ReloadError> {
        let outcome = self.reload();
        match &outcome {
            Ok(Reloaded { in_force, after_restart }) if after_restart.is_empty() => {
                tracing::info!(?in_force, "the configuration was read again");
            }
            Ok(Reloaded { in_force, after_restart }) => {
                tracing::warn!(
                    ?in_force,
                    ?after_restart,
                    "the configuration was read again; some of it waits for a restart"
                );
            }
            Err(error) => {
                tracing::error!(%error, "the configuration is not valid; everything stays as it was");
            }
        }
        outcome
    }
}

/// `POST /admin/reload`
pub(super) async fn reload(State(context): State<Arc<Context>>) -> Result<Json<Reloaded>, ApiError> {
    let reloading = tokio::task::spawn_blocking(move || context.reload_and_tell());
    let outcome = reloading.await.map_err(|_| ApiError::internal())?;
    outcome.map(Json).map_err(|error| ApiError::bad_request(error.to_string(), None))
}

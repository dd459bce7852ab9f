//! A bad day, rehearsed before it comes.
//!
//! Breakers, budgets and fallbacks are settings that nobody sees work until the day they must. A
//! drill starts the whole service in this process, in front of providers that fail on purpose
//! ([`chaos`](crate::chaos)), and asks it as independent callers would: an open loop, in which
//! nobody waits for anybody else's answer, so a stall is met by all who come meanwhile and not
//! hidden by a generator that waits along.
//!
//! Each [`Scenario`] has three phases: all is well, the bad day, and all is well again. What callers
//! saw is put beside each other ([`Figures`]), and the scenario's promises are judged by it.
//!
//! The providers are the drill's own, and so are the service's settings: timers and breakers that
//! take minutes on a real day are scaled to the length of the drill, and every report states them.

mod caller;
mod figures;
mod load;
mod promise;
mod report;
mod rig;
mod scenario;
mod terms;
mod timetable;

use std::time::Duration;

use thiserror::Error;

use crate::app::StartError;
use crate::config::ConfigError;
use caller::Caller;
use rig::Rig;
use terms::Terms;
use timetable::Timetable;

pub use figures::{Figures, Quantiles};
pub use promise::{Judged, Verdict};
pub use report::{Phases, Report};
pub use scenario::Scenario;

/// How a drill is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How long, all phases together; answers under way at the end are waited for.
    pub length: Duration,
    /// Requests a second while all is well; above 0.
    pub rate: f64,
    /// Where arrivals, questions and faults are drawn from. The same seed gives the same load; what
    /// a machine makes of it is never quite the same.
    pub seed: u64,
    /// How long a caller waits for a whole answer.
    pub deadline: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { length: Duration::from_secs(20), rate: 50.0, seed: 1, deadline: Duration::from_secs(3) }
    }
}

/// Why a drill could not be run. A promise that breaks is no error, but what a drill is for.
#[derive(Debug, Error)]
pub enum DrillError {
    /// The drill's own settings of the service, say a deadline that is no duration.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The service does not start.
    #[error("{0}")]
    Start(#[from] StartError),
    /// No free port, or no temporary folder.
    #[error("the drill cannot be set up: {0}")]
    Io(#[from] std::io::Error),
    /// The client that asks.
    #[error("the drill cannot ask: {0}")]
    Client(#[from] reqwest::Error),
}

/// Rehearses one scenario: starts service and providers on loopback and free ports, asks for as
/// long as told, stops them and judges. `tick` is told how far the drill has come.
///
/// Dropping the future ends the drill, and removes its temporary folder.
pub async fn rehearse(
    scenario: Scenario,
    settings: &Settings,
    tick: impl Fn(Duration),
) -> Result<Report, DrillError> {
    let times = Timetable::of(settings.length);
    let plot = scenario.plot(settings, &times);
    let terms = Terms::new(settings, plot.limit);
    let rig = Rig::start(&plot, &terms, settings.seed).await?;
    let caller = Caller::new(rig.address(), settings.deadline)?;
    let record = load::run(&rig, caller, &plot, &times, settings, tick).await;
    rig.stop().await;
    Ok(Report::new(scenario, settings, &terms, plot, &times, &record))
}

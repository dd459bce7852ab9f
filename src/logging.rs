//! The log: what is written, in which form, and how without ever holding up a request.
//!
//! It goes to standard error; standard output belongs to the start message and to what commands
//! print. Whoever logs only copies a line into a buffer, and one thread writes the buffer out: a
//! terminal or a pipe that stalls costs lines, which are counted and reported, never an answer.

mod lines;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use thiserror::Error;
use tracing::Dispatch;
use tracing_subscriber::filter::{EnvFilter, ParseError};
use tracing_subscriber::fmt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use crate::config::{self, LogFormat};
use lines::Lines;

pub use lines::Guard;

/// The environment variable that wins over `log.filter`.
const FILTER_VARIABLE: &str = "RUST_LOG";

/// Why there is no log.
#[derive(Debug, Error)]
pub enum LoggingError {
    /// The filter cannot be read.
    #[error("{key}: {filter:?} is no log filter: allowed are levels and targets like info,refrain=debug")]
    Filter {
        /// Where it is set.
        key: &'static str,
        /// What it says.
        filter: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// The writing thread does not start.
    #[error("the log's thread does not start")]
    Thread(#[source] io::Error),
    /// Somebody else logs already.
    #[error("the log has been set up before")]
    Twice(#[source] TryInitError),
}

/// Logs the whole process to standard error, from now until the guard is dropped. The guard's drop
/// writes what is still in the buffer, waiting at most a second for an output that stalls.
///
/// `RUST_LOG` wins over the setting when it is set and not empty.
pub fn init(settings: &config::Log) -> Result<Guard, LoggingError> {
    let stderr = io::stderr();
    let terminal = stderr.is_terminal();
    let format = match settings.format {
        LogFormat::Json => Format::Json,
        LogFormat::Auto if !terminal => Format::Json,
        LogFormat::Auto | LogFormat::Text => Format::Text { colors: terminal && wants_colors() },
    };
    let filter = filter(std::env::var(FILTER_VARIABLE).ok(), &settings.filter)?;
    let (dispatch, guard) = to(stderr, format, filter)?;
    dispatch.try_init().map_err(LoggingError::Twice)?;
    Ok(guard)
}

/// Whether the filter that would hold can be read.
pub fn check(settings: &config::Log) -> Result<(), LoggingError> {
    filter(std::env::var(FILTER_VARIABLE).ok(), &settings.filter).map(|_| ())
}

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text {
        /// Whether with terminal colors.
        colors: bool,
    },
    /// For machines: one object a line.
    Json,
}

/// A log to any output, for whom it is set as default. Lines are written until the guard is dropped.
pub fn to(
    output: impl Write + Send + 'static,
    format: Format,
    filter: EnvFilter,
) -> Result<(Dispatch, Guard), LoggingError> {
    let lines = Arc::new(Lines::with_capacity(lines::CAPACITY));
    let log = fmt().with_env_filter(filter).with_writer(Arc::clone(&lines));
    let dispatch = match format {
        Format::Text { colors } => Dispatch::new(log.with_ansi(colors).finish()),
        Format::Json => Dispatch::new(log.json().flatten_event(true).with_span_list(false).finish()),
    };
    let own = dispatch.clone();
    let report = move |lines| {
        tracing::dispatcher::with_default(&own, || {
            tracing::warn!(lines, "the log's output stalled: lines were dropped");
        });
    };
    let guard = lines::write_out(lines, output, report).map_err(LoggingError::Thread)?;
    Ok((dispatch, guard))
}

fn filter(variable: Option<String>, setting: &str) -> Result<EnvFilter, LoggingError> {
    let variable = variable.filter(|filter| !filter.trim().is_empty());
    let (key, filter) = match variable {
        Some(filter) => (FILTER_VARIABLE, filter),
        None => ("log.filter", setting.to_owned()),
    };
    let parsed = EnvFilter::builder().parse(&filter);
    parsed.map_err(|source| LoggingError::Filter { key, filter, source })
}

/// Whether the user has not asked for plain text, as <https://no-color.org> says.
fn wants_colors() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

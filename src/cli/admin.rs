//! The admin API from the command line: a file for each command.

mod evict;
mod explain;
mod remote;
mod stats;

pub(super) use evict::{EvictArgs, evict};
pub(super) use explain::{ExplainArgs, explain};
pub(super) use stats::{StatsArgs, stats};

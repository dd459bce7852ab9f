//! The admin API from the command line: a file for each command.

mod breaker;
mod evict;
mod explain;
mod export;
mod import;
mod providers;
mod reload;
mod remote;
mod stats;
mod switch;
mod table;
mod user;

pub(super) use breaker::{BreakerArgs, breaker};
pub(super) use evict::{EvictArgs, evict};
pub(super) use explain::{ExplainArgs, explain};
pub(super) use export::{ExportArgs, export};
pub(super) use import::{ImportArgs, import};
pub(super) use reload::{ReloadArgs, reload};
pub(super) use stats::{StatsArgs, stats};
pub(super) use switch::{SwitchArgs, switch};

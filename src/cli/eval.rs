//! `refrain eval`: hits and wrong hits on a stream of questions, as a running service sees it.

use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::{Failure, say};
use crate::config::Config;
use crate::eval::{Replay, Report, read_stream};

/// `refrain eval`
#[derive(Debug, Args)]
pub(super) struct EvalArgs {
    /// Questions in order of arrival: tab-separated columns `class` and `text`, with a heading.
    /// Two questions of one class have the same answer.
    #[arg(long, value_name = "FILE", required = true)]
    replay: Vec<PathBuf>,
    /// A file of settings that differ from the defaults.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Only the first N questions.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn eval(args: EvalArgs) -> Result<(), Failure> {
    let config = Config::load(args.config.as_deref())?;
    if !args.json {
        say(Report::HEADING);
    }
    for path in &args.replay {
        let mut stream = read_stream(path).map_err(|reason| format!("{}: {reason}", path.display()))?;
        stream.truncate(args.limit.unwrap_or(usize::MAX));
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let bar = ProgressBar::new(stream.len() as u64);
        bar.set_style(ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} {eta}")?);
        bar.set_prefix(name.clone());
        let report = Replay::start(config.clone(), &stream).await?.run(name, &stream, || bar.inc(1)).await?;
        bar.finish_and_clear();
        say(&if args.json { serde_json::to_string(&report)? } else { report.to_string() });
    }
    Ok(())
}

//! `refrain drill`: rehearse a bad day before it comes.

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::serve::asked_to_stop;
use super::{Failure, say};
use crate::config::Config;
use crate::drill::{Report, Scenario, Settings, rehearse};
use crate::logging;

/// All scenarios, one after the other.
const ALL: &str = "all";

/// `refrain drill`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DrillArgs {
    /// What goes wrong.
    #[arg(long, value_name = "NAME", default_value = ALL, value_parser = scenarios())]
    scenario: String,
    /// How long each scenario takes, in seconds.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Requests a second on an ordinary day. A p99 is judged from 100 answers on.
    #[arg(long, value_name = "N", default_value_t = 50.0, value_parser = rate)]
    rate: f64,
    /// How long a caller waits for an answer.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = humantime::parse_duration)]
    deadline: Duration,
    /// Where arrivals and faults are drawn from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The last line is one JSON object.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  refrain drill                                              every scenario, two minutes
  refrain drill --scenario slow-provider --seconds 60        a longer look at one
  refrain drill --scenario contention --rate 200 --json      a higher load, and figures for programs
  RUST_LOG=warn refrain drill --scenario outage              with the service's log of the bad day";

fn scenarios() -> PossibleValuesParser {
    Scenario::ALL.map(Scenario::name).into_iter().chain([ALL]).collect::<Vec<_>>().into()
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.1..=10_000.0).contains(rate));
    rate.ok_or_else(|| format!("{text:?} is no rate: 0.1 to 10000 is allowed"))
}

/// What programs read.
#[derive(Debug, Serialize)]
struct Reports<'a> {
    /// Every promise that could be judged was kept.
    kept: bool,
    scenarios: &'a [Report],
}

pub(super) async fn drill(args: &DrillArgs) -> Result<(), Failure> {
    // The service's own words are for those who ask for them: RUST_LOG wins over this.
    let _log = logging::init(&Config::from_toml("log.filter = \"off\"")?.log)?;
    let settings = Settings {
        length: Duration::from_secs(args.seconds),
        rate: args.rate,
        seed: args.seed,
        deadline: args.deadline,
    };
    let chosen = Scenario::named(&args.scenario).map_or(Scenario::ALL.to_vec(), |scenario| vec![scenario]);
    let mut reports = Vec::new();
    for scenario in chosen {
        let bar = bar(scenario, settings.length)?;
        let tick = |at: Duration| bar.set_position(u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
        let report = tokio::select! {
            report = rehearse(scenario, &settings, tick) => report?,
            () = asked_to_stop() => return Err("stopped before its end".into()),
        };
        bar.finish_and_clear();
        say(&report.to_string());
        reports.push(report);
    }
    let broken: Vec<String> = reports.iter().flat_map(Report::broken).collect();
    if args.json {
        say(&serde_json::to_string(&Reports { kept: broken.is_empty(), scenarios: &reports })?);
    }
    match broken.as_slice() {
        [] => Ok(()),
        [one] => Err(format!("a promise broke: {one}").into()),
        more => Err(format!("{} promises broke:\n{}", more.len(), more.join("\n")).into()),
    }
}

fn bar(scenario: Scenario, length: Duration) -> Result<ProgressBar, Failure> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let bar = ProgressBar::new(u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
    bar.set_style(ProgressStyle::with_template("{prefix} {wide_bar} {eta}")?);
    bar.set_prefix(scenario.name());
    Ok(bar)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Cli, Command};
    use super::*;

    fn parse(args: &[&str]) -> Result<DrillArgs, clap::Error> {
        match Cli::try_parse_from(["refrain", "drill"].iter().chain(args))?.command {
            Command::Drill(args) => Ok(args),
            other => panic!("another command: {other:?}"),
        }
    }

    #[test]
    fn without_arguments_all_is_drilled_as_the_library_would() {
        let args = parse(&[]).unwrap();
        let Settings { length, rate, seed, deadline } = Settings::default();
        assert_eq!((args.scenario.as_str(), args.json), ("all", false));
        assert_eq!((Duration::from_secs(args.seconds), args.seed, args.deadline), (length, seed, deadline));
        assert!((args.rate - rate).abs() < f64::EPSILON);
    }

    #[test]
    fn every_scenario_can_be_named() {
        for scenario in Scenario::ALL {
            assert_eq!(parse(&["--scenario", scenario.name()]).unwrap().scenario, scenario.name());
        }
        let wrong = parse(&["--scenario", "flood"]).unwrap_err().to_string();
        assert!(wrong.contains("capacity-burst") && wrong.contains("all"), "{wrong}");
    }

    #[test]
    fn what_cannot_be_drilled_is_refused() {
        for args in [
            ["--seconds", "0"],
            ["--seconds", "3601"],
            ["--rate", "0"],
            ["--rate", "NaN"],
            ["--rate", "inf"],
            ["--deadline", "soon"],
            ["--seed", "-1"],
        ] {
            assert_eq!(parse(&args).unwrap_err().exit_code(), 2, "{args:?}");
        }
    }

    #[test]
    fn the_help_says_that_no_config_is_read() {
        let help = parse(&["--help"]).unwrap_err().to_string();
        assert!(help.contains("reads no config file"), "{help}");
    }
}

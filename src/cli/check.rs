//! `refrain check`: what is right and what is wrong, a line each.

mod providers;
mod words;

use clap::Args;

use super::{ConfigFile, Failure, say};
use crate::app;
use crate::config::Config;
use crate::logging;

/// What is checked.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    file: ConfigFile,
    /// Instead of the other checks, call each target once with each of its keys, and say who answers,
    /// how fast, and what is wrong. Costs a few tokens each; works beside a running service.
    #[arg(long)]
    providers: bool,
}

/// How a check went, in words.
#[derive(Debug)]
enum Verdict {
    Good(String),
    Wrong(String),
    Skipped(String),
}

impl From<Result<String, String>> for Verdict {
    fn from(result: Result<String, String>) -> Self {
        result.map_or_else(Self::Wrong, Self::Good)
    }
}

/// Of how many checks how many failed.
#[derive(Default)]
struct Score {
    failed: usize,
    checks: usize,
}

impl Score {
    /// Says how one check went, and counts it.
    fn line(&mut self, name: &str, verdict: Verdict) {
        let (mark, text) = match verdict {
            Verdict::Good(text) => ("ok   ", text),
            Verdict::Wrong(text) => ("WRONG", text),
            Verdict::Skipped(text) => ("skip ", text),
        };
        self.failed += usize::from(mark == "WRONG");
        self.checks += usize::from(mark != "skip ");
        for text in text.lines() {
            say(&format!("{mark} {name}: {text}"));
        }
    }

    fn verdict(&self) -> Result<(), Failure> {
        let Self { failed, checks } = self;
        if *failed == 0 { Ok(()) } else { Err(format!("{failed} of {checks} checks failed").into()) }
    }
}

pub(super) async fn check(args: &CheckArgs) -> Result<(), Failure> {
    let mut score = Score::default();
    let config = match args.file.load() {
        Ok(config) => config,
        Err(error) => {
            score.line("config", Verdict::Wrong(error.to_string()));
            return Err("1 of 1 checks failed; the others need a valid config".into());
        }
    };
    let place = args.file.config.as_ref().map_or("defaults".into(), |path| path.display().to_string());
    score.line("config", Verdict::Good(place));
    if args.providers {
        let asked =
            providers::check(&config, providers::WITHIN, |name, verdict| score.line(name, verdict)).await;
        if let Err(error) = asked {
            score.line("providers", Verdict::Wrong(error.to_string()));
        }
    } else {
        check_all(&config, &mut score).await;
    }
    score.verdict()
}

async fn check_all(config: &Config, score: &mut Score) {
    let log = logging::check(&config.log).map(|()| config.log.filter.clone());
    for (name, result) in [
        ("log", log.map_err(|error| error.to_string())),
        ("access", app::check_access(config)),
        ("models", app::check_encoders(config)),
        ("store", app::check_store(config).await),
        ("providers", app::check_providers(config)),
    ] {
        score.line(name, result.into());
    }
}

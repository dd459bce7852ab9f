//! `refrain eval`: hits and wrong hits, on labelled pairs, on streams, and of a running service.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use indicatif::ProgressBar;
use serde::de::IntoDeserializer;
use serde::{Deserialize, Serialize};

use super::{Failure, say};
use crate::cache::embedder::Encoders;
use crate::config::{Config, Load, Policy};
use crate::eval::cosine::{Cosine, Vectors};
use crate::eval::judge::{Contender, Progress};
use crate::eval::read::{read_pairs, read_stream};
use crate::eval::shipped::Shipped;
use crate::eval::stream::CANDIDATES;
use crate::eval::{Replay, Report, pairs, picture, report, stream};

/// `refrain eval`
#[derive(Debug, Args)]
pub(super) struct EvalArgs {
    /// Labelled pairs: tab-separated columns `a`, `b`, `label` (1: one answer serves both) and
    /// `kind`, with a heading. Measures the verifier beside bare similarity.
    #[arg(long, value_name = "FILE")]
    pairs: Vec<PathBuf>,
    /// Questions in order of arrival: tab-separated columns `class` and `text`, with a heading. Two
    /// questions of one class have the same answer. Measures the verifier beside bare similarity.
    #[arg(long, value_name = "FILE")]
    stream: Vec<PathBuf>,
    /// The same, asked one after the other of a service that starts with an empty cache.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["pairs", "stream"])]
    replay: Vec<PathBuf>,
    /// A file of settings that differ from the defaults.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How sure a hit must be, where it differs from namespaces.default.policy: strict, balanced,
    /// loose or similarity. For pairs and streams.
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    policy: Option<Policy>,
    /// Only the first N rows.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// A picture (SVG) of hit rate against error, a curve for each policy. With several files the
    /// name of each is put before the ending.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Print JSON: a line for each file.
    #[arg(long)]
    json: bool,
}

pub(super) async fn eval(args: EvalArgs) -> Result<(), Failure> {
    let config = Config::load(args.config.as_deref())?;
    if !args.pairs.is_empty() || !args.stream.is_empty() {
        let encoders = load_encoders(&config)?;
        let judge = Bench::new(&config, encoders, args.policy)?;
        for path in &args.pairs {
            let mut rows = read_pairs(path)?;
            rows.truncate(args.limit.unwrap_or(usize::MAX));
            tell(&args, path, &judge.pairs(&stem(path), &rows).await)?;
        }
        for path in &args.stream {
            let mut rows = read_stream(path)?;
            rows.truncate(args.limit.unwrap_or(usize::MAX));
            tell(&args, path, &judge.stream(&stem(path), &rows).await)?;
        }
    }
    if !args.replay.is_empty() && !args.json {
        say(Report::HEADING);
    }
    for path in &args.replay {
        let mut rows = read_stream(path)?;
        rows.truncate(args.limit.unwrap_or(usize::MAX));
        let bar = bar(&stem(path), rows.len());
        let replay = Replay::start(config.clone(), &rows).await?;
        let report = replay.run(stem(path), &rows, || bar.inc(1)).await?;
        bar.finish_and_clear();
        say(&if args.json { serde_json::to_string(&report)? } else { report.to_string() });
    }
    Ok(())
}

/// What the verifier is measured with.
struct Bench {
    encoders: Arc<Encoders>,
    shipped: Contender,
    bar: ProgressBar,
}

impl Bench {
    fn new(config: &Config, encoders: Arc<Encoders>, policy: Option<Policy>) -> Result<Self, Failure> {
        let namespace = config.namespace("default").ok_or("there is no namespace \"default\"")?;
        let mut matching = namespace.matching;
        matching.policy = policy.unwrap_or(matching.policy);
        let shipped = Shipped::new(Arc::clone(&encoders), matching);
        Ok(Self { encoders, shipped: Contender::shipped(Arc::new(shipped)), bar: bar("", 0) })
    }

    async fn pairs(&self, set: &str, rows: &[pairs::Pair]) -> report::Report<pairs::Figures> {
        let vectors = self.vectors(rows.iter().flat_map(|row| [row.a.as_str(), row.b.as_str()])).await;
        let others = [Cosine::peers("cosine", vectors)];
        let report = pairs::measure(set, rows, &self.shipped, &others, &|step| self.tick(step)).await;
        self.bar.finish_and_clear();
        report
    }

    async fn stream(&self, set: &str, rows: &[stream::Question]) -> report::Report<stream::Figures> {
        let vectors = self.vectors(rows.iter().map(|row| row.text.as_str())).await;
        let others = [Cosine::peers("cosine", Arc::clone(&vectors))];
        let tick = |step: Progress<'_>| self.tick(step);
        let report = stream::measure(set, rows, &vectors, CANDIDATES, &self.shipped, &others, &tick).await;
        self.bar.finish_and_clear();
        report
    }

    async fn vectors<'a>(&self, texts: impl Iterator<Item = &'a str>) -> Arc<Vectors> {
        let embed = async |text: &str| Shipped::embed(&self.encoders, text).await;
        Arc::new(Vectors::embed(texts, embed, &|step| self.tick(step)).await)
    }

    fn tick(&self, progress: Progress<'_>) {
        self.bar.set_prefix(progress.step.to_owned());
        self.bar.set_length(progress.of as u64);
        self.bar.set_position(progress.done as u64);
    }
}

/// All encoders, loaded before the first question.
fn load_encoders(config: &Config) -> Result<Arc<Encoders>, Failure> {
    let mut encoders = config.encoders.clone();
    for encoder in encoders.values_mut() {
        encoder.load = Load::Start;
    }
    Ok(Arc::new(Encoders::try_new(&config.embedder, &encoders)?))
}

fn tell<F: report::Figures>(args: &EvalArgs, path: &Path, report: &report::Report<F>) -> Result<(), Failure>
where
    report::Report<F>: Display + Serialize,
{
    if let Some(picture) = &args.picture {
        let several = args.pairs.len() + args.stream.len() > 1;
        let name =
            if several { picture.with_extension(format!("{}.svg", stem(path))) } else { picture.clone() };
        std::fs::write(&name, picture::svg(report)?)
            .map_err(|error| format!("{}: {error}", name.display()))?;
    }
    say(&if args.json { serde_json::to_string(report)? } else { report.to_string() });
    Ok(())
}

/// A policy as the configuration names it.
fn policy(name: &str) -> Result<Policy, serde::de::value::Error> {
    Policy::deserialize(name.into_deserializer())
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn bar(name: &str, length: usize) -> ProgressBar {
    let bar = super::bar("{prefix} {wide_bar} {pos}/{len} {eta}", length as u64);
    bar.set_prefix(name.to_owned());
    bar
}

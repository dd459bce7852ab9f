//! The command line: each command is thin over the library.
//!
//! Exit codes: 0 done, 1 failed or found wanting, 2 the command line is wrong; `run` gives its
//! command's.

mod admin;
mod chaos;
mod check;
mod drill;
mod eval;
mod run;
mod serve;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};

use crate::config::{Config, ConfigError};

/// A semantic cache in front of LLM APIs.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  refrain serve                                    start with the defaults
  refrain serve --config refrain.toml              start with settings of your own
  refrain run -- python ask.py                     a command that asks through Refrain
  refrain check --config refrain.toml              say what is wrong before you start
  refrain check --providers                        ask each provider once: who answers, how fast
  refrain stats --since 1h                         what the cache did in the last hour
  refrain evict --namespace hr --dry-run           how many answers would go
  refrain import faq.csv --namespace hr            answers before anybody asks
  refrain export hr.jsonl --namespace hr           what the cache holds, as a file
  refrain explain \"how do I reset my password?\"    hit or miss, and why
  refrain stats --providers                        who is ill, who is full, what is switched
  refrain switch off provider:openai --reason \"answers nonsense\" --for 2h
  refrain reload                                   after a change of the config file
  refrain drill --scenario outage                  rehearse a bad day: what callers would see";

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the service.
    Serve(ConfigFile),
    /// Run a command whose OpenAI and Anthropic clients ask through Refrain.
    ///
    /// Uses the Refrain that runs at server.listen, or starts one until the command ends; sets the base
    /// URLs of the SDKs for it (OpenAI's and Anthropic's variables), and says at the end what was saved.
    /// The exit code is the command's.
    Run(run::RunArgs),
    /// Check config, models, store and providers: a line each.
    Check(check::CheckArgs),
    /// Show what the cache did.
    Stats(admin::StatsArgs),
    /// Take answers back.
    Evict(admin::EvictArgs),
    /// Read an answer book into the cache: a file of questions with approved answers.
    ///
    /// Goes on where an earlier import of the same book was interrupted, and says what it passed over
    /// and why. Sent again, a book writes the same entries again.
    Import(admin::ImportArgs),
    /// Write what the cache holds as an answer book.
    Export(admin::ExportArgs),
    /// Say whether a question would hit or miss, and why. Nothing is sent upstream.
    Explain(admin::ExplainArgs),
    /// Show what an operator has switched, and switch: in force at once, no restart.
    Switch(admin::SwitchArgs),
    /// Take hold of the breaker of a provider's model, until a restart.
    Breaker(admin::BreakerArgs),
    /// Take over what changed in the config, without a restart.
    Reload(admin::ReloadArgs),
    /// Measure hits and wrong hits on pairs and streams of questions.
    Eval(eval::EvalArgs),
    /// Be a provider that fails on purpose.
    Chaos(chaos::ChaosArgs),
    /// Rehearse a bad day: Refrain under load, in front of providers that fail.
    ///
    /// Starts Refrain and providers that fail on purpose, all in this process and on loopback, asks
    /// as independent callers would, and says what they saw before, during and after the bad day.
    /// Fails when a promise breaks.
    ///
    /// The drill uses providers and settings of its own, scaled to its length and stated in its
    /// output: it reads no config file, and calls nobody outside. A debug build on a busy machine is
    /// slower than the service; for figures use a release build, or lower the load with --rate.
    Drill(drill::DrillArgs),
}

#[derive(Debug, Args)]
struct ConfigFile {
    /// A file of settings that differ from the defaults.
    #[arg(long, value_name = "FILE", env = "REFRAIN_CONFIG")]
    config: Option<PathBuf>,
}

impl ConfigFile {
    fn load(&self) -> Result<Config, ConfigError> {
        Config::load(self.config.as_deref().map(Path::new))
    }
}

/// A command's failure, as one or more lines for people.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Reads the command line and runs the command.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("the runtime does not start: {error}")),
    };
    let result = runtime.block_on(async {
        match cli.command {
            Command::Serve(file) => serve::serve(&file).await,
            Command::Run(args) => return run::run(&args).await.map(ExitCode::from),
            Command::Check(args) => check::check(&args).await,
            Command::Stats(args) => admin::stats(&args).await,
            Command::Evict(args) => admin::evict(args).await,
            Command::Import(args) => admin::import(args).await,
            Command::Export(args) => admin::export(args).await,
            Command::Explain(args) => admin::explain(args).await,
            Command::Switch(args) => admin::switch(args).await,
            Command::Breaker(args) => admin::breaker(args).await,
            Command::Reload(args) => admin::reload(args).await,
            Command::Eval(args) => eval::eval(args).await,
            Command::Chaos(args) => chaos::chaos(args).await,
            Command::Drill(args) => drill::drill(&args).await,
        }
        .map(|()| ExitCode::SUCCESS)
    });
    // A worker that hangs in a model or on a disk must not keep the process.
    runtime.shutdown_background();
    match result {
        Ok(code) => code,
        Err(failure) => fail(&failure.to_string()),
    }
}

#[expect(clippy::print_stderr, reason = "the command line talks to people")]
fn fail(message: &str) -> ExitCode {
    for line in message.lines() {
        eprintln!("refrain: {line}");
    }
    ExitCode::FAILURE
}

/// A progress bar that looks so; none where nobody looks.
fn bar(template: &str, length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    let style = ProgressStyle::with_template(template);
    style.map_or(bar.clone(), |style| bar.with_style(style))
}

/// Tells people something on standard error, beside what a command prints.
fn tell(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints a line for people; a closed pipe is nobody's fault.
fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout(), "{line}");
}

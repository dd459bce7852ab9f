//! `refrain chaos`: a provider that fails on purpose, to try a client or a Refrain against.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tokio::net::TcpListener;

use super::serve::asked_to_stop;
use super::{Failure, say};
use crate::chaos::{Chaos, Content, Mode, ProviderError, Rules, Script};

/// `refrain chaos`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ChaosArgs {
    /// Where to listen. Whoever reaches it can change what it does, so loopback or a closed network.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9090")]
    listen: SocketAddr,
    /// What it does: a mode, or rules separated by `;`.
    #[arg(long, value_name = "RULES", conflicts_with = "script", default_value = "ok")]
    mode: Rules,
    /// A file of rules, one a line.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Where everything random comes from: the same calls meet the same faults.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// The pause before each piece of a stream's content.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = humantime::parse_duration)]
    pace: Duration,
    /// What answers say: "numbered" ("answer 7"), "echo" (the question), or this text.
    #[arg(long, value_name = "TEXT", default_value = "numbered", value_parser = content)]
    content: Content,
    /// Say what modes there are, a line each, and stop.
    #[arg(long)]
    list_modes: bool,
}

const EXAMPLES: &str = "Examples:
  refrain chaos --mode percent:30:status:529                 every third call finds no capacity
  refrain chaos --mode \"model:big-1:latency:20s; ok\"         one model is slow, the others are well
  refrain chaos --mode \"2*status:429:retry-after=1 | ok\"     two refusals, and then all is well
  refrain chaos --script bad-day.txt --seed 7 --pace 20ms";

/// Never fails: any text may be an answer.
#[expect(clippy::unnecessary_wraps, reason = "what clap asks of a parser")]
fn content(text: &str) -> Result<Content, Infallible> {
    Ok(match text {
        "numbered" => Content::Numbered,
        "echo" => Content::Echo,
        text => Content::Fixed(text.to_owned()),
    })
}

pub(super) async fn chaos(args: ChaosArgs) -> Result<(), Failure> {
    if args.list_modes {
        say(&modes());
        return Ok(());
    }
    let rules = match &args.script {
        Some(path) => read(path)?,
        None => args.mode,
    };
    let listener = TcpListener::bind(args.listen)
        .await
        .map_err(|reason| format!("--listen {} cannot be listened on: {reason}", args.listen))?;
    let script = Script::new(rules).seed(args.seed).content(args.content).pace(args.pace);
    let chaos = Chaos::start(listener, script)?;
    say(&welcome(&chaos));
    asked_to_stop().await;
    // Those under way are cut by the stop and have no outcome to count.
    let tally = chaos.tally();
    let under_way = chaos.begun().saturating_sub(tally.values().sum());
    say(&counts(&tally, under_way));
    chaos.stop().await;
    Ok(())
}

fn read(path: &Path) -> Result<Rules, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    text.parse().map_err(|error| format!("{}: {error}", path.display()).into())
}

fn welcome(chaos: &Chaos) -> String {
    let address = chaos.address();
    let names: Vec<&str> = Mode::catalogue().iter().map(|(example, _)| name(example)).collect();
    format!(
        "Chaos listens on http://{address}/v1: OpenAI's chat completions and Anthropic's messages.\n\
         It does: {}\n\n\
         What it shall do   curl http://{address}/chaos/mode -d 'percent:30:status:529'\n\
         What was tried     curl http://{address}/chaos/attempts\n\n\
         Modes (refrain chaos --list-modes explains them):\n{}",
        said(&chaos.rules()),
        wrapped(&names),
    )
}

/// No rules at all are a fine day.
fn said(rules: &Rules) -> String {
    let text = rules.to_string();
    if text.is_empty() { Mode::Ok.to_string() } else { text }
}

fn name(example: &str) -> &str {
    example.split(':').next().unwrap_or(example)
}

/// Words in lines of a terminal's width, indented.
fn wrapped(words: &[&str]) -> String {
    const WIDTH: usize = 90;
    let mut lines = vec![String::new()];
    for word in words {
        if lines.last().is_some_and(|line| line.len() + word.len() > WIDTH) {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str("  ");
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// All modes, a line each.
fn modes() -> String {
    let line = |(example, line): &(&str, &str)| format!("{example:<44} {line}");
    let modes: Vec<String> = Mode::catalogue().iter().map(line).collect();
    let errors: Vec<&str> = ProviderError::all().map(ProviderError::name).collect();
    format!(
        "{}\n\nRules: key:<prefix>:… and model:<name>:… say whom a rule is for, 2*<mode> | <mode> in which order,\n\
         and ; separates rules, of which the first that fits decides.\n\n\
         Errors in providers' own words, for error:…, error-in-200:… and sse-error:error=…\n{}",
        modes.join("\n"),
        wrapped(&errors)
    )
}

/// How often each mode was met, the most frequent first.
fn counts(tally: &BTreeMap<String, u64>, under_way: u64) -> String {
    let mut counts: Vec<(&String, &u64)> = tally.iter().collect();
    counts.sort_by(|(a, more), (b, other)| other.cmp(more).then(a.cmp(b)));
    let mut lines: Vec<String> = counts.iter().map(|(mode, times)| format!("{times:>8}  {mode}")).collect();
    lines.push(format!("{:>8}  attempts", tally.values().sum::<u64>()));
    if under_way > 0 {
        lines.push(format!("{under_way:>8}  more were under way"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Cli, Command};
    use super::*;

    fn parse(args: &[&str]) -> Result<ChaosArgs, clap::Error> {
        match Cli::try_parse_from(["refrain", "chaos"].iter().chain(args))?.command {
            Command::Chaos(args) => Ok(args),
            other => panic!("another command: {other:?}"),
        }
    }

    #[test]
    fn without_arguments_it_is_a_fine_day_on_loopback() {
        let args = parse(&[]).unwrap();
        assert_eq!(args.listen, "127.0.0.1:9090".parse().unwrap());
        assert_eq!((said(&args.mode).as_str(), args.seed, args.pace), ("ok", 0, Duration::ZERO));
        assert_eq!(args.content, Content::Numbered);
    }

    #[test]
    fn rules_pace_and_content_are_read() {
        let rules = "model:big-1:2*status:529 | ok; reset";
        let args = parse(&["--mode", rules, "--seed", "7", "--pace", "20ms", "--content", "Hello."]).unwrap();
        assert_eq!((args.mode.to_string().as_str(), args.seed), (rules, 7));
        assert_eq!(args.pace, Duration::from_millis(20));
        assert_eq!(args.content, Content::Fixed("Hello.".into()));
        assert_eq!(parse(&["--content", "echo"]).unwrap().content, Content::Echo);
    }

    #[test]
    fn mistakes_are_told_before_anything_starts() {
        for (args, word) in [
            (&["--mode", "stal:after=3"][..], "there is no mode `stal`"),
            (&["--mode", "ok", "--script", "x"], "cannot be used with"),
            (&["--listen", "nowhere"], "--listen"),
            (&["--pace", "soon"], "--pace"),
            (&["--seed", "x"], "--seed"),
        ] {
            let error = parse(args).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(word), "{error}");
        }
    }

    #[test]
    fn a_script_that_cannot_be_read_names_file_and_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bad-day.txt");
        assert!(read(&path).unwrap_err().to_string().contains("bad-day.txt"));
        std::fs::write(&path, "# a bad day\nmodel:big-1:status:529\nstal\n").unwrap();
        let reason = read(&path).unwrap_err().to_string();
        assert!(reason.contains("bad-day.txt") && reason.contains("`stal`"), "{reason}");
        std::fs::write(&path, "# a bad day\nmodel:big-1:status:529\nok\n").unwrap();
        assert_eq!(read(&path).unwrap().to_string(), "model:big-1:status:529; ok");
    }

    #[test]
    fn the_list_has_a_line_for_each_mode_and_names_the_errors() {
        let list = modes();
        for (example, _) in Mode::catalogue() {
            assert!(list.lines().any(|line| line.starts_with(example)), "{example}");
        }
        assert!(ProviderError::all().all(|error| list.contains(error.name())));
    }

    #[test]
    fn counts_begin_with_the_most_frequent() {
        let tally = [("ok", 3), ("reset", 12), ("close", 3)].map(|(mode, times)| (mode.to_owned(), times));
        assert_eq!(
            counts(&tally.into(), 1),
            "      12  reset\n       3  close\n       3  ok\n      18  attempts\n       1  more were under way"
        );
    }
}

//! `refrain run -- COMMAND`: a command whose clients ask through Refrain.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitStatus;
use std::time::Duration;

use clap::Args;
use reqwest::Client;
use serde_json::Value;
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{ConfigFile, Failure, tell};
use crate::app::{App, bind};
use crate::config::{self, Config, SecretRef};
use crate::logging;

/// What is logged beside a command: the terminal is the command's.
const QUIET: &str = "warn,qdrant_edge=error,ort=error";

/// How long a Refrain that runs already may take to say so.
const HELLO: Duration = Duration::from_secs(2);

/// `refrain run`
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    config: ConfigFile,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command to its end, and gives its exit code; 128 and the signal's number where one ended it.
pub(super) async fn run(args: &RunArgs) -> Result<u8, Failure> {
    let config = args.config.load()?;
    let (callers, operators) = (reachable(config.server.listen), reachable(config.admin.listen));
    let token = config.admin.token.as_ref().map(SecretRef::resolve).transpose()?.flatten();
    let token = token.map(|token| token.expose().to_owned());
    let client = client()?;
    let own = if answers(&client, callers).await { None } else { Some(Own::start(config).await?) };
    let (callers, operators) = own.as_ref().map_or((callers, operators), |own| (own.callers, own.operators));
    // Ctrl-C is for the command, which gets it too; what it saved is said all the same.
    tokio::spawn(async { while tokio::signal::ctrl_c().await.is_ok() {} });
    let before = totals(&client, operators, token.as_deref()).await;
    let ended = spawn(&args.command, callers)?.wait().await?;
    let after = totals(&client, operators, token.as_deref()).await;
    if let Some(own) = own {
        own.stop().await;
    }
    match (before, after) {
        (Some(before), Some(after)) => tell(&summary(&before, &after)),
        _ => tell("refrain: its statistics cannot be read; is admin.token right?"),
    }
    Ok(code(ended))
}

fn spawn(command: &[String], callers: SocketAddr) -> Result<tokio::process::Child, Failure> {
    let (program, arguments) = command.split_first().ok_or("there is no command")?;
    let child = Command::new(program)
        .args(arguments)
        .env("OPENAI_BASE_URL", format!("http://{callers}/v1"))
        .env("ANTHROPIC_BASE_URL", format!("http://{callers}"))
        .spawn();
    child.map_err(|error| format!("{program}: {error}").into())
}

/// A service of this command's own.
struct Own {
    callers: SocketAddr,
    operators: SocketAddr,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
    _log: logging::Guard,
}

impl Own {
    async fn start(config: Config) -> Result<Self, Failure> {
        let log = logging::init(&config::Log { filter: QUIET.to_owned(), ..config.log.clone() })?;
        let public = bind("server.listen", config.server.listen).await?;
        let admin = bind("admin.listen", config.admin.listen).await?;
        let (callers, operators) = (reachable(public.local_addr()?), reachable(admin.local_addr()?));
        let app = App::try_new(config).await?;
        let shutdown = CancellationToken::new();
        let stopped = shutdown.clone();
        let task = tokio::spawn(async move { app.serve(public, admin, stopped).await });
        Ok(Self { callers, operators, shutdown, task, _log: log })
    }

    /// Stops in order: what is to be kept is written.
    async fn stop(self) {
        self.shutdown.cancel();
        let _ = self.task.await;
    }
}

/// Where this machine reaches a listener.
fn reachable(listen: SocketAddr) -> SocketAddr {
    if listen.ip().is_unspecified() {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), listen.port())
    } else {
        listen
    }
}

fn client() -> Result<Client, Failure> {
    // The first to install one wins; all of ours are the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(Client::builder().no_proxy().timeout(HELLO).tls_certs_only([]).build()?)
}

/// Whether a Refrain runs there already.
async fn answers(client: &Client, at: SocketAddr) -> bool {
    if at.port() == 0 {
        return false;
    }
    let models = client.get(format!("http://{at}/healthz")).send().await;
    models.is_ok_and(|answer| answer.status().is_success())
}

async fn totals(client: &Client, at: SocketAddr, token: Option<&str>) -> Option<Value> {
    let mut request = client.get(format!("http://{at}/stats"));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let answer = request.send().await.ok()?.error_for_status().ok()?;
    let stats: Value = serde_json::from_slice(&answer.bytes().await.ok()?).ok()?;
    Some(stats["totals"].clone())
}

/// What happened between two looks at the totals.
fn summary(before: &Value, after: &Value) -> String {
    let more = |pointer: &str| {
        let count = |totals: &Value| totals.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        count(after).saturating_sub(count(before))
    };
    let dollars = |totals: &Value| totals["money_saved_usd"].as_f64().unwrap_or(0.0);
    format!(
        "refrain: {} requests, {} exact and {} semantic hits; saved {} tokens, {:.4} USD",
        more("/requests"),
        more("/exact_hits"),
        more("/semantic_hits"),
        more("/tokens_saved/total"),
        (dollars(after) - dollars(before)).max(0.0)
    )
}

fn code(ended: ExitStatus) -> u8 {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        if let Some(signal) = ended.signal() {
            return u8::try_from(128 + signal).unwrap_or(u8::MAX);
        }
    }
    ended.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_came_between_counts() {
        let totals = |requests: u64, saved: f64| {
            json!({ "requests": requests, "exact_hits": 1, "semantic_hits": 0,
                "tokens_saved": { "total": 10 * requests }, "money_saved_usd": saved })
        };
        assert_eq!(
            summary(&totals(3, 0.5), &totals(5, 0.75)),
            "refrain: 2 requests, 0 exact and 0 semantic hits; saved 20 tokens, 0.2500 USD"
        );
        assert!(summary(&totals(5, 1.0), &totals(3, 0.0)).contains("0 requests"), "a restart is no debt");
    }

    #[test]
    fn a_listener_for_all_is_reached_on_this_machine() {
        assert_eq!(reachable("0.0.0.0:80".parse().unwrap()).to_string(), "127.0.0.1:80");
        assert_eq!(reachable("[::]:80".parse().unwrap()).to_string(), "127.0.0.1:80");
        assert_eq!(reachable("192.0.2.1:80".parse().unwrap()).to_string(), "192.0.2.1:80");
    }
}

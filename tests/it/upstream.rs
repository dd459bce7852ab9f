//! What the attempt loop promises, in paused time and over scripted providers: no sockets, and no
//! second of real time.

mod bad_days;
mod hedging;
mod order;
mod overload;
mod properties;
mod reactions;

use std::sync::Arc;
use std::time::Duration;

use refrain::chat::ChatRequest;
use refrain::clock::Clock;
use refrain::config::Config;
use refrain::dialect::openai;
use refrain::switches::Switches;
use refrain::upstream::{
    Ask, Body, Completion, Preferences, ProviderReport, TargetReport, Upstream, UpstreamError,
};
use serde_json::Value;
use tokio::time::Instant;

use crate::support::weather::{Weather, read};
use crate::support::{START, chat, streamed};

/// An upstream over these providers; model `m` is served by all of them in their order, unless the
/// settings have a route for it.
fn upstream(overlay: &str, providers: &[&Arc<Weather>]) -> Arc<Upstream> {
    let mut settings = vec![overlay.to_owned()];
    for provider in providers {
        let section = format!("[providers.{}]", provider.named());
        if !overlay.contains(&section) {
            settings.push(format!("{section}\nkind = \"openai\"\nurl = \"http://127.0.0.1:9\""));
        }
    }
    if !overlay.contains("[models.m]") {
        let target = |provider: &&Arc<Weather>| format!("{{ provider = \"{}\" }}", provider.named());
        let targets: Vec<_> = providers.iter().map(target).collect();
        settings.push(format!("[models.m]\ntargets = [{}]", targets.join(", ")));
    }
    let config = Config::from_toml(&settings.join("\n")).expect("the test's settings are valid");
    let switches = Arc::new(Switches::in_memory());
    let providers = providers.iter().map(|provider| provider.with_keys()).collect();
    Arc::new(Upstream::with_keyed_providers(&config, Clock::starting_at(START), switches, providers))
}

/// A request as it comes from a caller.
fn request(body: &Value) -> ChatRequest {
    openai::request::parse(body.to_string().into(), 64).unwrap()
}

fn whole_request() -> ChatRequest {
    request(&chat("q"))
}

fn streamed_request() -> ChatRequest {
    request(&streamed("q"))
}

/// Asks within a deadline, with the wishes that the request holds, and reads the answer to its end.
async fn ask(
    upstream: &Upstream,
    request: &ChatRequest,
    patience: Duration,
) -> Result<Completion, UpstreamError> {
    let preferences = Preferences::read(&request.scope).unwrap();
    let ask = Ask::new(request, Instant::now() + patience);
    let Completion { served, body } = upstream.send(Ask { preferences: &preferences, ..ask }).await?;
    read(body).await?;
    let body = Body::Stream(Box::pin(futures_util::stream::empty()));
    Ok(Completion { served, body })
}

/// Who answers the question, within a minute.
async fn served(upstream: &Upstream, request: &ChatRequest) -> String {
    let completion = ask(upstream, request, Duration::from_mins(1)).await.unwrap();
    completion.served.provider.to_string()
}

fn provider_report(upstream: &Upstream, name: &str) -> ProviderReport {
    let report = upstream.report().providers.into_iter().find(|provider| provider.provider == name);
    report.expect("there is such a provider")
}

fn target_report(upstream: &Upstream, name: &str) -> TargetReport {
    let report = upstream.report().targets.into_iter().find(|target| target.health.provider == name);
    report.expect("it was asked before")
}

fn breaker(upstream: &Upstream, name: &str) -> String {
    target_report(upstream, name).breaker.state
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

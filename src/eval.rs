//! Measures hits and wrong hits: of the verifier on labelled pairs ([`pairs`]) and on streams of
//! questions ([`stream`]), beside what others ship; and of a running service ([`Replay`]).
//!
//! For a replay the whole service is started on loopback with an empty cache, in front of a
//! provider that answers each question with its class. A hit whose answer is the class of another
//! question is wrong. Nothing is taken apart: what is measured is what a caller sees.

pub mod cosine;
pub mod curve;
pub mod judge;
pub mod pairs;
pub mod picture;
pub mod read;
pub mod report;
pub mod score;
pub mod shipped;
pub mod stream;
mod table;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use reqwest::Client;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::config::Config;
use crate::gateway::Gateway;
use stream::Question;

/// What a replay measured. Rates are shares of all requests.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The stream's name.
    pub stream: String,
    /// Questions asked.
    pub requests: u64,
    /// Requests whose class had been asked before: what a perfect cache would hit.
    pub ideal_hit_rate: f64,
    /// Hits, right and wrong.
    pub hit_rate: f64,
    /// Exact ones among them.
    pub exact_rate: f64,
    /// Wrong answers served from the cache.
    pub wrong_rate: f64,
    /// Right hits among all hits.
    pub precision: f64,
    /// Requests that got no answer.
    pub errors: u64,
    /// Median latency in milliseconds by source, from `/stats`.
    pub p50_ms: HashMap<String, f64>,
}

impl Report {
    /// The heading of the table whose rows [`Report`] displays as.
    pub const HEADING: &'static str =
        "stream           requests   ideal    hits   exact   wrong  precision  p50 semantic  p50 miss";
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |rate: f64| format!("{:.1} %", rate * 100.0);
        let millis =
            |source: &str| self.p50_ms.get(source).map_or("-".to_owned(), |ms| format!("{ms:.1} ms"));
        write!(
            f,
            "{:<16} {:>8} {:>7} {:>7} {:>7} {:>7} {:>10} {:>13} {:>9}",
            self.stream,
            self.requests,
            percent(self.ideal_hit_rate),
            percent(self.hit_rate),
            percent(self.exact_rate),
            format!("{:.2} %", self.wrong_rate * 100.0),
            percent(self.precision),
            millis("semantic"),
            millis("miss"),
        )
    }
}

/// A service on loopback with an empty cache.
pub struct Replay {
    address: String,
    admin: String,
    gateway: Arc<Gateway>,
    shutdown: CancellationToken,
    service: JoinHandle<()>,
    upstream: JoinHandle<()>,
    folder: std::path::PathBuf,
}

/// Why a replay failed.
pub type ReplayError = Box<dyn std::error::Error + Send + Sync>;

impl Replay {
    /// Starts the service as `config` says, but on free ports, with a store of its own and a
    /// provider that knows the stream's classes.
    pub async fn start(mut config: Config, stream: &[Question]) -> Result<Self, ReplayError> {
        let (provider, upstream) = classes(stream).await?;
        let folder = std::env::temp_dir().join(format!("refrain-eval-{}", uuid::Uuid::new_v4().simple()));
        config.store.path.clone_from(&folder);
        config.store.url = None;
        for encoder in config.encoders.values_mut() {
            encoder.load = crate::config::Load::Start;
        }
        let classes = format!(
            "[providers.classes]\nkind = \"openai\"\nurl = {provider:?}\n\
             [models.replay]\ntargets = [{{ provider = \"classes\" }}]"
        );
        let classes = Config::from_toml(&classes)?;
        config.providers = classes.providers.into_iter().filter(|(name, _)| name == "classes").collect();
        config.models = classes.models.into_iter().filter(|(name, _)| name == "replay").collect();
        let public = TcpListener::bind("127.0.0.1:0").await?;
        let operators = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}", public.local_addr()?);
        let admin = format!("http://{}", operators.local_addr()?);
        let app = App::try_new(config).await?;
        let gateway = Arc::clone(app.gateway());
        let shutdown = CancellationToken::new();
        let service = tokio::spawn(app.serve(public, operators, shutdown.clone()));
        Ok(Self { address, admin, gateway, shutdown, service, upstream, folder })
    }

    /// Asks the stream in order, one after the other, and reports.
    pub async fn run(
        self,
        name: String,
        stream: &[Question],
        tick: impl Fn(),
    ) -> Result<Report, ReplayError> {
        let client = Client::builder().no_proxy().build()?;
        let mut seen = std::collections::HashSet::new();
        let (mut ideal, mut hits, mut exact, mut wrong, mut errors) = (0_u32, 0_u32, 0_u32, 0_u32, 0_u64);
        for asked in stream {
            ideal += u32::from(!seen.insert(asked.class.as_str()));
            let body = json!({ "model": "replay", "messages": [{ "role": "user", "content": asked.text }] });
            let reply = client
                .post(format!("{}/v1/chat/completions", self.address))
                .header("content-type", "application/json")
                .body(body.to_string())
                .send()
                .await?;
            let source = reply.headers().get("x-refrain-source").and_then(|value| value.to_str().ok());
            let (hit, same) = (source != Some("upstream"), source == Some("exact"));
            if reply.status().is_success() {
                let answer: Value = serde_json::from_slice(&reply.bytes().await?)?;
                let right = answer["choices"][0]["message"]["content"] == asked.class.as_str();
                hits += u32::from(hit);
                exact += u32::from(same);
                wrong += u32::from(hit && !right);
            } else {
                errors += 1;
            }
            // People ask seconds apart; here the next question comes at once, and must not overtake
            // the write of this answer.
            if !hit {
                self.gateway.written().await;
            }
            tick();
        }
        let p50_ms = self.latencies(&client).await?;
        self.stop().await;
        let total = f64::from(u32::try_from(stream.len()).unwrap_or(u32::MAX).max(1));
        Ok(Report {
            stream: name,
            requests: stream.len() as u64,
            ideal_hit_rate: f64::from(ideal) / total,
            hit_rate: f64::from(hits) / total,
            exact_rate: f64::from(exact) / total,
            wrong_rate: f64::from(wrong) / total,
            precision: if hits == 0 { 1.0 } else { 1.0 - f64::from(wrong) / f64::from(hits) },
            errors,
            p50_ms,
        })
    }

    async fn latencies(&self, client: &Client) -> Result<HashMap<String, f64>, ReplayError> {
        let stats = client.get(format!("{}/stats", self.admin)).send().await?.bytes().await?;
        let stats: Value = serde_json::from_slice(&stats)?;
        let latency = stats["latency"].as_object().into_iter().flatten();
        Ok(latency.filter_map(|(source, of)| Some((source.clone(), of["p50_ms"].as_f64()?))).collect())
    }

    async fn stop(self) {
        self.shutdown.cancel();
        let _ = self.service.await;
        self.upstream.abort();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A provider on loopback that answers each question of the stream with its class.
async fn classes(stream: &[Question]) -> Result<(String, JoinHandle<()>), std::io::Error> {
    let answers: HashMap<String, String> =
        stream.iter().map(|asked| (asked.text.clone(), asked.class.clone())).collect();
    let answer = |State(answers): State<Arc<HashMap<String, String>>>, Json(body): Json<Value>| async move {
        let question = body["messages"][0]["content"].as_str().unwrap_or_default();
        Json(json!({
            "id": "replay", "object": "chat.completion", "created": 0, "model": "replay",
            "choices": [{
                "index": 0, "finish_reason": "stop",
                "message": { "role": "assistant", "content": answers.get(question) },
            }],
            "usage": { "prompt_tokens": 20, "completion_tokens": 100, "total_tokens": 120 },
        }))
    };
    let routes = Router::new().route("/v1/chat/completions", post(answer)).with_state(Arc::new(answers));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    let serving = tokio::spawn(async move {
        let _ = axum::serve(listener, routes).await;
    });
    Ok((url, serving))
}

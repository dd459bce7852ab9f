//! One builder for a whole service without sockets: fakes at its edges, everything else real.

pub(crate) mod embedder;
pub(crate) mod provider;
pub(crate) mod store;
pub(crate) mod weather;

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use refrain::app::App;
use refrain::cache::embedder::{Embedder, Encoders};
use refrain::clock::{Clock, Timestamp};
use refrain::config::{Config, Covers};
use refrain::switches::Switches;
use refrain::upstream::Upstream;
use refrain::upstream::provider::Provider;
use refrain::upstream::provider::rules::Rules;
use serde_json::{Value, json};
use tower::ServiceExt;

use embedder::FakeEmbedder;
use provider::Scripted;
use store::MemoryStore;

/// When the tests' clock starts.
pub(crate) const START: Timestamp = Timestamp(1_800_000_000_000);

/// Model `m` is served by the scripted provider.
const DEFAULT_ROUTE: &str = "[models.m]\ntargets = [{ provider = \"fake\", model = \"big\" }]\n";

/// A failure is what the test scripted, once.
const NO_RETRIES: &str = "[upstream.retry]\nbudget = 0.0\nfloor = 0\n";

/// A service under test. Its drop checks that every scripted answer was asked for.
pub(crate) struct TestApp {
    pub(crate) embedder: Arc<FakeEmbedder>,
    pub(crate) provider: Arc<Scripted>,
    pub(crate) store: Arc<MemoryStore>,
    app: App,
    callers: Router,
    operators: Router,
}

impl TestApp {
    /// A service with the default settings.
    pub(crate) async fn start() -> Self {
        Self::with("").await
    }

    /// A service with these settings over the defaults.
    pub(crate) async fn with(overlay: &str) -> Self {
        Self::over(Arc::new(MemoryStore::default()), overlay).await
    }

    /// A service over a store that may hold something already.
    pub(crate) async fn over(store: Arc<MemoryStore>, overlay: &str) -> Self {
        Self::made(store, Switches::in_memory(), overlay).await
    }

    /// A service whose operator has switched something, or will.
    pub(crate) async fn switched(switches: Switches, overlay: &str) -> Self {
        Self::made(Arc::new(MemoryStore::default()), switches, overlay).await
    }

    /// A service whose settings are in a file, which may change.
    pub(crate) async fn reading(file: &Path, overlay: &str) -> Self {
        std::fs::write(file, with_provider(overlay)).unwrap();
        let config = Config::load(Some(file)).expect("the test's settings are valid");
        Self::configured(Arc::new(MemoryStore::default()), Switches::in_memory(), config).await
    }

    async fn made(store: Arc<MemoryStore>, switches: Switches, overlay: &str) -> Self {
        let config = Config::from_toml(&with_provider(overlay)).expect("the test's settings are valid");
        Self::configured(store, switches, config).await
    }

    async fn configured(store: Arc<MemoryStore>, switches: Switches, config: Config) -> Self {
        let has_rules = config.models.iter().any(|(name, model)| {
            name != "default" && model.targets.iter().any(|target| target.provider == "rules")
        });
        let provider = Arc::new(Scripted::new("fake"));
        let embedder = Arc::new(FakeEmbedder::default());
        let as_embedder: Arc<dyn Embedder> = Arc::clone(&embedder) as _;
        let encoders = Encoders::with_embedders(
            vec![("bge-small-en-v1.5".to_owned(), as_embedder, Covers::All, 0.9)],
            1 << 20,
        );
        let clock = Clock::starting_at(START);
        let switches = Arc::new(switches);
        let mut providers = vec![Arc::clone(&provider) as Arc<dyn Provider>];
        if has_rules {
            providers.push(Arc::new(Rules::try_new("rules", None, clock).expect("the rules are built in")));
        }
        let upstream = Upstream::with_providers(&config, clock, Arc::clone(&switches), &providers);
        let store_port = Arc::clone(&store) as _;
        let app = App::from_parts(config, clock, Arc::new(encoders), store_port, upstream, switches)
            .await
            .expect("the test's service starts");
        Self { embedder, provider, store, callers: app.callers(), operators: app.operators(), app }
    }

    /// Asks a question of model `m` and waits for the whole answer.
    pub(crate) async fn ask(&self, question: &str) -> Reply {
        self.post(&chat(question), &[]).await
    }

    /// Posts a chat body with headers.
    pub(crate) async fn post(&self, body: &Value, headers: &[(&str, &str)]) -> Reply {
        self.send(Method::POST, "/v1/chat/completions", headers, body.to_string()).await
    }

    /// Sends anything to the callers' side.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Reply {
        let headers = [&[("host", "localhost")], headers].concat();
        call(&self.callers, method, path, &headers, body.into()).await
    }

    /// Sends JSON to the operators' side.
    pub(crate) async fn operate(&self, method: Method, path: &str, body: &Value) -> Reply {
        self.operate_with(method, path, &[("host", "localhost")], body).await
    }

    /// The same with other headers.
    pub(crate) async fn operate_with(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Reply {
        call(&self.operators, method, path, headers, Body::from(body.to_string())).await
    }

    /// The totals of `/stats`.
    pub(crate) async fn totals(&self) -> Value {
        self.operate(Method::GET, "/stats", &json!(null)).await.json()["totals"].clone()
    }

    /// The callers' side, for tests that keep a response open.
    pub(crate) fn callers(&self) -> Router {
        self.callers.clone()
    }

    pub(crate) fn app(&self) -> &App {
        &self.app
    }

    /// Waits for flights and writes under way.
    pub(crate) async fn settle(&self) {
        self.app.gateway().drain().await;
    }
}

/// The settings with a provider and a model to ask, and without retries, unless they say otherwise.
pub(crate) fn with_provider(overlay: &str) -> String {
    let unless_set = |section: &str, default| if overlay.contains(section) { "" } else { default };
    format!(
        "{overlay}\n[providers.fake]\nkind = \"openai\"\nurl = \"http://127.0.0.1:9\"\n{}{}",
        unless_set("[models.m]", DEFAULT_ROUTE),
        unless_set("[upstream.retry]", NO_RETRIES),
    )
}

impl Drop for TestApp {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.provider.left(), 0, "scripted answers that nobody asked for");
        }
    }
}

async fn call(router: &Router, method: Method, path: &str, headers: &[(&str, &str)], body: Body) -> Reply {
    let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    Reply { status: parts.status, headers: parts.headers, body: body.collect().await.unwrap().to_bytes() }
}

/// A chat body with one question.
pub(crate) fn chat(question: &str) -> Value {
    json!({ "model": "m", "messages": [{ "role": "user", "content": question }] })
}

/// The same, streamed.
pub(crate) fn streamed(question: &str) -> Value {
    let mut body = chat(question);
    body["stream"] = true.into();
    body
}

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("not JSON: {}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn source(&self) -> &str {
        self.header("x-refrain-source")
    }

    /// The text of a whole answer.
    pub(crate) fn text(&self) -> String {
        self.json()["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
    }

    /// The data of a stream's events.
    pub(crate) fn events(&self) -> Vec<String> {
        let text = std::str::from_utf8(&self.body).unwrap();
        text.split("\n\n")
            .filter(|frame| !frame.is_empty())
            .map(|frame| frame["data: ".len()..].to_owned())
            .collect()
    }

    /// The text of a stream's events, put together.
    pub(crate) fn streamed_text(&self) -> String {
        let events = self.events();
        let chunks = events.iter().filter_map(|data| serde_json::from_str::<Value>(data).ok());
        chunks
            .filter_map(|chunk| Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned()))
            .collect()
    }
}

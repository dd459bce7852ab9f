//! What a hit costs without a socket: its steps, and whole requests through the router.
//!
//! The store is the real one, in a folder of its own; the embedder is a fake, so that what is
//! left of a semantic hit is what Refrain adds to the model (`semantic` measures the model).

use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::Request;
use axum::http::header::{CONTENT_TYPE, HOST};
use criterion::{Criterion, criterion_group, criterion_main};
use http_body_util::BodyExt;
use refrain::app::App;
use refrain::cache::Entry;
use refrain::cache::embedder::{EmbedError, Embedder, EmbedderId, Embedding, Encoders};
use refrain::cache::exact::ExactCache;
use refrain::cache::key::{ExactKey, Loosening, Partition, Scope, Tenant};
use refrain::cache::store::edge::EdgeStore;
use refrain::chat::{ChatReply, Extra, Finish, Usage};
use refrain::clock::Clock;
use refrain::config::{Config, Covers};
use refrain::dialect::openai::request::parse;
use refrain::switches::Switches;
use refrain::upstream::Upstream;
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;
use tower::ServiceExt;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const QUESTION: &str = "How do I reset my password?";

/// A service whose only provider answers from the built-in FAQ.
const SETTINGS: &str = r#"
[providers.faq]
kind = "rules"
[models.bench]
targets = [{ provider = "faq", model = "faq" }]
"#;

fn steps(criterion: &mut Criterion) {
    let body = Bytes::from(ask(QUESTION, false));
    criterion.bench_function("read a request and make its key", |bencher| {
        bencher.iter(|| key_of(black_box(&body)));
    });

    let clock = Clock::system();
    let (scope, key) = key_of(&body);
    let cache = ExactCache::new(1 << 20, Duration::ZERO, clock);
    cache.insert(Arc::new(entry(scope, key, clock)));
    criterion.bench_function("get an entry from memory", |bencher| {
        bencher.iter(|| cache.get(black_box(&key)).expect("the entry fits the cache"));
    });
}

fn requests(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("the runtime starts");
    let service = runtime.block_on(Service::start());
    let mut group = criterion.benchmark_group("through the router");

    let body = Bytes::from(ask(QUESTION, false));
    runtime.block_on(service.expect("exact", body.clone()));
    group.bench_function("exact hit", |bencher| {
        bencher.iter(|| runtime.block_on(service.send(body.clone())));
    });

    let body = Bytes::from(ask(QUESTION, true));
    runtime.block_on(service.expect("exact", body.clone()));
    group.bench_function("streamed hit", |bencher| {
        bencher.iter(|| runtime.block_on(service.send(body.clone())));
    });

    // Each in other letters: a text seen before would come from the memo.
    let spelling = Cell::new(1_u64);
    let next = || {
        spelling.set(spelling.get() + 1);
        Bytes::from(ask(&spelt(QUESTION, spelling.get()), false))
    };
    runtime.block_on(service.expect("semantic", next()));
    group.bench_function("semantic hit, the model's time not counted", |bencher| {
        bencher.iter(|| runtime.block_on(service.send(next())));
    });
    group.finish();
}

fn ask(question: &str, stream: bool) -> String {
    format!(
        r#"{{"model": "bench", "stream": {stream}, "temperature": 0.2, "messages": [
            {{"role": "system", "content": "You answer questions of our staff in two sentences."}},
            {{"role": "user", "content": "{question}"}}]}}"#
    )
}

/// The text with those letters in upper case whose bit is set in `spelling`.
fn spelt(text: &str, spelling: u64) -> String {
    let upper = |place: usize| spelling >> (place % 64) & 1 == 1;
    text.chars().enumerate().map(|(at, c)| if upper(at) { c.to_ascii_uppercase() } else { c }).collect()
}

fn key_of(body: &Bytes) -> (Scope, ExactKey) {
    let request = parse(body.clone(), 64).expect("the body is a request");
    let partition = Partition { namespace: "default".into(), tenant: Tenant::anonymous(), epoch: 0 };
    let scope = Scope::new(partition, &request, "rules/faq", &Loosening::default());
    let key = ExactKey::new(&scope, request.question.as_ref());
    (scope, key)
}

fn entry(scope: Scope, key: ExactKey, clock: Clock) -> Entry {
    let reply = ChatReply {
        model: "faq".to_owned(),
        text: "Open the login page and choose \"Forgot password?\".".to_owned(),
        finish: Finish::Stop,
        usage: Some(Usage { prompt_tokens: 30, completion_tokens: 12 }),
        extra: Extra::default(),
    };
    Entry {
        key,
        scope,
        question: QUESTION.to_owned(),
        reply,
        model: "bench".to_owned(),
        provider: "faq".to_owned(),
        without_usage: false,
        pinned: false,
        tags: Vec::new(),
        written_at: clock.now(),
        expires_at: clock.now().after(Duration::from_hours(1)),
    }
}

/// The callers' router over a store on disk, with one answer in it.
struct Service {
    callers: Router,
    app: App,
    _folder: tempfile::TempDir,
}

impl Service {
    async fn start() -> Self {
        let config = Config::from_toml(SETTINGS).expect("the settings are valid");
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let (read, write) = (config.store.read_timeout, config.store.write_timeout);
        let store = EdgeStore::open(folder.path(), read, write).expect("the store opens");
        let embedder: Arc<dyn Embedder> = Arc::new(CaseBlind(EmbedderId::new("case-blind")));
        let encoders =
            Encoders::with_embedders(vec![("fake".to_owned(), embedder, Covers::All, 0.9)], 32 << 20);
        let clock = Clock::system();
        let switches = Arc::new(Switches::in_memory());
        let upstream =
            Upstream::try_new(&config, clock, Arc::clone(&switches)).expect("the provider is built in");
        let app = App::from_parts(config, clock, Arc::new(encoders), Arc::new(store), upstream, switches)
            .await
            .expect("the service starts");
        let service = Self { callers: app.callers(), app, _folder: folder };
        service.expect("upstream", Bytes::from(ask(QUESTION, false))).await;
        service.app.gateway().drain().await;
        service
    }

    /// Sends a request and reads the answer to its end.
    async fn send(&self, body: Bytes) -> axum::http::HeaderMap {
        let request = Request::post("/v1/chat/completions")
            .header(CONTENT_TYPE, "application/json")
            .header(HOST, "localhost")
            .body(Body::from(body))
            .expect("the request is whole");
        let Ok(response) = self.callers.clone().oneshot(request).await;
        let (head, body) = response.into_parts();
        black_box(body.collect().await.expect("the answer is whole"));
        head.headers
    }

    /// Makes sure that what is measured is what the bench's name says.
    async fn expect(&self, source: &str, body: Bytes) {
        assert_eq!(self.send(body).await["x-refrain-source"], source);
    }
}

/// Texts that differ in case only have the same vector; all others are far apart.
struct CaseBlind(EmbedderId);

#[async_trait]
impl Embedder for CaseBlind {
    fn id(&self) -> &EmbedderId {
        &self.0
    }

    fn dimensions(&self) -> usize {
        384
    }

    async fn embed(&self, text: &str) -> Result<Embedding, EmbedError> {
        let digest = Sha256::digest(text.to_lowercase());
        let sign = |place: usize| f32::from(digest[place / 8 % 32] >> (place % 8) & 1) * 2.0 - 1.0;
        let vector: Vec<f32> = (0..384).map(|place| sign(place) / 384_f32.sqrt()).collect();
        Ok(Embedding::new(self.0.clone(), vector))
    }
}

criterion_group!(benches, steps, requests);
criterion_main!(benches);

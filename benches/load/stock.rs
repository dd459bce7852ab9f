//! A store as it is after months: many entries of one scope, with vectors in all directions.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use refrain::cache::Entry;
use refrain::cache::embedder::onnx::OnnxEmbedder;
use refrain::cache::embedder::{EmbedderId, Embedding};
use refrain::cache::key::{ExactKey, Loosening, Partition, Scope, Tenant};
use refrain::cache::store::{Selector, Store, StoreError};
use refrain::chat::{ChatReply, ChatRequest, Extra, Finish, Usage};
use refrain::clock::Clock;
use refrain::config::Config;
use refrain::dialect::openai::request::parse;
use tokio::time::sleep;

const DIMENSIONS: usize = 384;

/// The longest that anything done to such a store may take.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);

/// Writes on their way at once: two full groups of the store's writer.
const AT_ONCE: usize = 1024;

/// The English encoder; none where `models/fetch` has not brought it.
pub(crate) fn encoder() -> Option<OnnxEmbedder> {
    const NAME: &str = "bge-small-en-v1.5";
    let config = Config::from_toml("").expect("the defaults are valid");
    let is_there = config.embedder.folder.join(NAME).join("model.onnx").exists();
    is_there.then(|| {
        OnnxEmbedder::try_new(NAME, &config.encoders[NAME], &config.embedder)
            .expect("the encoder that models/fetch brought loads")
    })
}

/// Where a store of this size is kept between runs: filling one takes a while.
pub(crate) fn folder(embedder: &EmbedderId, entries: u64) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stock-{entries}-{embedder}"))
}

/// Adds what is missing to `entries`, and waits until the store is at rest again.
pub(crate) async fn fill(store: &impl Store, embedder: &EmbedderId, entries: u64) -> Result<(), StoreError> {
    let there = store.count(&Selector::default()).await?;
    if there >= entries {
        return Ok(());
    }
    println!("filling a store with {} entries; it is kept for the next time", entries - there);
    let clock = Clock::system();
    let write =
        |number| async move { store.upsert(&entry(number, clock), Some(&embedding(embedder, number))).await };
    stream::iter(there..entries).map(write).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    // It builds graphs for its large segments a second after the last write, and the next write
    // waits until it has.
    sleep(Duration::from_secs(2)).await;
    write(0).await
}

/// Whose entries they are: the scope of all these questions.
pub(crate) fn scope() -> Scope {
    let partition = Partition { namespace: "default".into(), tenant: Tenant::anonymous(), epoch: 0 };
    Scope::new(partition, &request(0), "instant/bench", &Loosening::default())
}

/// The vector of question `number`: any direction, the same each time.
pub(crate) fn embedding(embedder: &EmbedderId, number: u64) -> Embedding {
    let mut random = SmallRng::seed_from_u64(number);
    let vector: Vec<f32> = (0..DIMENSIONS).map(|_| random.random_range(-1.0..1.0)).collect();
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    Embedding::new(embedder.clone(), vector.iter().map(|x| x / length).collect::<Vec<_>>())
}

fn request(number: u64) -> ChatRequest {
    let question = question(number);
    let body = format!(r#"{{"model": "bench", "messages": [{{"role": "user", "content": "{question}"}}]}}"#);
    parse(body.into(), 64).expect("the body is a request")
}

fn question(number: u64) -> String {
    format!("Where do I find the form for case {number}, and who has to sign it before it goes out?")
}

fn entry(number: u64, clock: Clock) -> Entry {
    let scope = scope();
    let reply = ChatReply {
        model: "gpt-4o-mini-2024-07-18".to_owned(),
        text: "The form lies in the portal under Forms. Your manager signs it first, then finance. "
            .repeat(8),
        finish: Finish::Stop,
        usage: Some(Usage { prompt_tokens: 40, completion_tokens: 150 }),
        extra: Extra::default(),
    };
    Entry {
        key: ExactKey::new(&scope, request(number).question.as_ref()),
        scope,
        question: question(number),
        reply,
        model: "bench".to_owned(),
        provider: "upstream".to_owned(),
        without_usage: false,
        pinned: false,
        tags: vec![format!("doc:{}", number / 100)],
        written_at: clock.now(),
        expires_at: clock.now().after(Duration::from_hours(24 * 365)),
    }
}

//! The two halves of a semantic hit: the model, and the search among stored questions.

#[path = "load/stock.rs"]
mod stock;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use futures_util::future::try_join_all;
use refrain::cache::embedder::{Embedder, EmbedderId};
use refrain::cache::store::VectorStore;
use refrain::cache::store::edge::EdgeStore;
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const QUESTIONS: [&str; 8] = [
    "How do I reset my password?",
    "Where do I send my travel receipts?",
    "My laptop does not connect to the VPN, what now?",
    "Who approves a request for vacation?",
    "How long does a new computer take to arrive?",
    "What are the opening hours of the help desk?",
    "Can I print from my own phone in the office?",
    "I got a suspicious mail, whom do I tell?",
];

fn embed(criterion: &mut Criterion) {
    let Some(encoder) = stock::encoder() else {
        println!("embed: skipped, there is no encoder: run models/fetch");
        return;
    };
    let runtime = Runtime::new().expect("the runtime starts");
    let mut group = criterion.benchmark_group("embed");
    group.bench_function("one question", |bencher| {
        bencher.iter(|| runtime.block_on(encoder.embed(QUESTIONS[0])).expect("the encoder works"));
    });
    group.bench_function("eight questions at once", |bencher| {
        let all = || try_join_all(QUESTIONS.iter().map(|question| encoder.embed(question)));
        bencher.iter(|| runtime.block_on(all()).expect("the encoder works"));
    });
    group.finish();
}

fn search(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("the runtime starts");
    let embedder = stock::encoder().map_or(EmbedderId::new("none"), |encoder| encoder.id().clone());
    let mut group = criterion.benchmark_group("search");
    for entries in [1_000, 10_000, 100_000] {
        let store = EdgeStore::open(&stock::folder(&embedder, entries), stock::PATIENCE, stock::PATIENCE)
            .expect("the store opens");
        runtime.block_on(stock::fill(&store, &embedder, entries)).expect("the store takes the entries");
        let scope = stock::scope();
        let mut asked = entries;
        group.bench_function(BenchmarkId::from_parameter(entries), |bencher| {
            bencher.iter(|| {
                asked += 1;
                let found = runtime.block_on(store.search(&scope, &stock::embedding(&embedder, asked), 5));
                assert_eq!(black_box(found.expect("the store answers")).len(), 5);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, embed, search);
criterion_main!(benches);

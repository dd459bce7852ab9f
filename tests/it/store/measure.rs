//! How fast and how large the store inside the process is; prints, and asserts nothing:
//! `cargo test --release --test it -- --ignored --nocapture store::measure`. The environment may
//! give `REFRAIN_MEASURE_SIZES=1000,10000` and `REFRAIN_MEASURE_ONE_SCOPE=1`.

use std::path::Path;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use refrain::cache::Entry;
use refrain::cache::embedder::Embedding;
use refrain::cache::store::edge::EdgeStore;
use refrain::cache::store::{Inventory, Selector, Store, VectorStore};
use tempfile::TempDir;
use tokio::time::Instant;

use super::contract::{embedder, entry, scope};

const DIMENSIONS: u32 = 384;
const PATIENT: Duration = Duration::from_mins(10);

/// A vector like those of an encoder: all dimensions in use, unit length, the same for a seed.
fn vector(seed: u32) -> Embedding {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut vector: Vec<f32> = (0..DIMENSIONS)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            f32::from(u16::try_from(state >> 16).unwrap()) / 32_768.0 - 1.0
        })
        .collect();
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    for value in &mut vector {
        *value /= length;
    }
    Embedding::new(embedder(), vector)
}

/// Every tenth entry lies in one large scope, the others in a thousand small ones.
fn numbered(n: u32, all_in_one: bool) -> Entry {
    let system =
        if all_in_one || n.is_multiple_of(10) { "large".to_owned() } else { format!("small {}", n % 1000) };
    let mut entry =
        entry(&scope("n", "t", 0, &system), &format!("How many days of leave are there in case {n}?"));
    entry.reply.text = "An answer of some length, as a bot would give it. ".repeat(20);
    entry
}

/// Resident kilobytes of this process, and those of them that are no mapped files.
fn resident() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    (field("VmRSS"), field("RssAnon"))
}

fn open(folder: &Path) -> EdgeStore {
    EdgeStore::open(folder, PATIENT, PATIENT).unwrap()
}

async fn search(store: &EdgeStore, name: &str, system: &str) {
    let scope = scope("n", "t", 0, system);
    let mut times = Vec::new();
    for round in 0..50 {
        let looked_for = vector(7_000_000 + round);
        let start = Instant::now();
        store.search(&scope, &looked_for, 5).await.unwrap();
        times.push(start.elapsed());
    }
    times.sort_unstable();
    println!("  search, {name}: p50 {:?}, p99 {:?}", times[25], times[49]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, minutes long"]
async fn sizes() {
    let all_in_one = std::env::var("REFRAIN_MEASURE_ONE_SCOPE").is_ok();
    let folder = TempDir::new().unwrap();
    let mut written = 0;
    println!("resident before: {:?} kB (in all, without mapped files)", resident());
    let sizes = std::env::var("REFRAIN_MEASURE_SIZES").unwrap_or("1000,10000,100000".to_owned());
    for size in sizes.split(',').map(|size| size.parse().unwrap()) {
        let store = open(folder.path());
        let start = Instant::now();
        let count = size - written;
        stream::iter(written..size)
            .map(|n| (numbered(n, all_in_one), vector(n)))
            .for_each_concurrent(256, async |(entry, vector)| {
                store.upsert(&entry, Some(&vector)).await.unwrap();
            })
            .await;
        written = size;
        println!("{size} entries; {:.0} upserts/s", f64::from(count) / start.elapsed().as_secs_f64());
        search(&store, "large scope, as written", "large").await;
        search(&store, "small scope, as written", "small 7").await;
        println!("  resident: {:?} kB", resident());
        let start = Instant::now();
        store.close().await;
        println!("  close: {:?}", start.elapsed());
        drop(store);

        let start = Instant::now();
        let store = open(folder.path());
        println!("  open: {:?}, {} MiB on disk", start.elapsed(), store.disk_bytes().unwrap() >> 20);
        search(&store, "large scope, reopened", "large").await;
        println!("  resident: {:?} kB", resident());
        let start = Instant::now();
        store.upsert(&numbered(0, all_in_one), Some(&vector(0))).await.unwrap();
        println!("  one upsert: {:?}", start.elapsed());
        let start = Instant::now();
        assert_eq!(store.count(&Selector::default()).await.unwrap(), u64::from(size));
        println!("  count all: {:?}", start.elapsed());
        // The writer tidies up after a second of peace; the next write waits for that.
        tokio::time::sleep(Duration::from_secs(2)).await;
        search(&store, "large scope, while optimizing", "large").await;
        let start = Instant::now();
        store.upsert(&numbered(0, all_in_one), Some(&vector(0))).await.unwrap();
        println!("  optimized after about {:?}", start.elapsed());
        search(&store, "large scope, optimized", "large").await;
        println!("  resident: {:?} kB", resident());
    }
}

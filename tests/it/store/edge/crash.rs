//! kill -9 at any moment: what was acknowledged is there afterwards, whole.
//!
//! The test runs its own binary again as the victim, reads from its output what was
//! acknowledged, kills it amid writes and looks into the folder it left.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use refrain::cache::Entry;
use refrain::cache::store::VectorStore;
use tempfile::TempDir;

use super::store_in;
use crate::store::contract::{at, entry, scope};

const FOLDER: &str = "REFRAIN_TEST_CRASH_FOLDER";
const FROM: &str = "REFRAIN_TEST_CRASH_FROM";

/// The version of entry `n` that the round beginning at `from` writes: keys repeat, so that
/// replacing is interrupted too.
fn numbered(n: u64, from: u64) -> Entry {
    let scope = scope(&format!("ns-{}", n % 3), "t", 0, "s");
    let mut entry = entry(&scope, &format!("question {}", n % 400));
    entry.reply.text = format!("answer of round {from} ").repeat(1 + usize::try_from(n % 50).unwrap());
    entry
}

fn degrees(n: u64) -> f32 {
    f32::from(u8::try_from(n % 180).unwrap())
}

/// Writes until it is killed. Only ever runs as the victim of the test below.
#[tokio::test]
async fn victim() {
    let (Ok(folder), Ok(from)) = (std::env::var(FOLDER), std::env::var(FROM)) else { return };
    let from: u64 = from.parse().unwrap();
    let store = store_in(Path::new(&folder)).unwrap();
    let store = &store;
    let write = async |n: u64| {
        let embedding = (!n.is_multiple_of(4)).then(|| at(degrees(n % 400)));
        store.upsert(&numbered(n, from), embedding.as_ref()).await.unwrap();
        n
    };
    let mut writes = FuturesUnordered::new();
    let mut next = from;
    while next < from + 32 {
        writes.push(write(next));
        next += 1;
    }
    while let Some(written) = writes.next().await {
        println!("\nwritten {written}");
        writes.push(write(next));
        next += 1;
    }
}

#[tokio::test]
async fn what_was_acknowledged_outlives_a_kill() {
    let folder = TempDir::new().unwrap();
    // By key: every version acknowledged or under way, the acknowledged ones marked.
    let mut known: BTreeMap<_, Vec<(Entry, bool)>> = BTreeMap::new();
    for (round, kill_after) in [1, 90, 250, 700].into_iter().enumerate() {
        let from = round as u64 * 100_000;
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::edge::crash::victim", "--nocapture", "--test-threads=1"])
            .env(FOLDER, folder.path())
            .env(FROM, from.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut acknowledged = Vec::new();
        let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        while let Some(Ok(line)) = lines.next() {
            if let Some(n) = line.strip_prefix("written ") {
                acknowledged.push(n.parse::<u64>().unwrap());
                if acknowledged.len() == kill_after {
                    victim.kill().unwrap();
                }
            }
        }
        victim.wait().unwrap();
        assert!(acknowledged.len() >= kill_after, "the victim died by itself");

        let last = acknowledged.iter().max().unwrap() + 64;
        for n in from..last {
            let entry = numbered(n, from);
            known.entry(entry.key).or_default().push((entry, acknowledged.contains(&n)));
        }
        let store = store_in(folder.path()).unwrap();
        for versions in known.values() {
            let key = versions[0].0.key;
            let found = store.get(&key).await.unwrap();
            let newest = versions.iter().rposition(|(_, acknowledged)| *acknowledged);
            match (&found, newest) {
                // It, or one that was begun after it.
                (Some(found), Some(newest)) => {
                    let is_whole = versions[newest..].iter().any(|(version, _)| version == found);
                    assert!(is_whole, "round {round}: {key} is neither the acknowledged one nor a later one");
                }
                (Some(found), None) => assert!(versions.iter().any(|(version, _)| version == found)),
                (None, Some(_)) => panic!("round {round}: {key} was acknowledged and is gone"),
                (None, None) => {}
            }
            // What is there can be found by its vector, too.
            if let Some(found) = found {
                let n: u64 = found.question.strip_prefix("question ").unwrap().parse().unwrap();
                let hits = store.search(&found.scope, &at(degrees(n)), 400).await.unwrap();
                assert_eq!(
                    hits.iter().any(|hit| hit.entry == found),
                    !n.is_multiple_of(4),
                    "round {round}: {key}"
                );
            }
        }
        drop(store);
    }
}

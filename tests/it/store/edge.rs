//! The adapter inside the process: what it survives, and what stops its start.

mod crash;

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use refrain::cache::store::edge::EdgeStore;
use refrain::cache::store::{Inventory, Selector, Store, StoreError, VectorStore};
use tempfile::TempDir;

use super::contract::{self, Subject, at, entry, scope};

/// Long enough that a busy machine does not make it.
const PATIENT: Duration = Duration::from_mins(1);

struct InFolder {
    store: Option<EdgeStore>,
    folder: TempDir,
}

fn store_in(folder: &Path) -> Result<EdgeStore, StoreError> {
    EdgeStore::open(folder, PATIENT, PATIENT)
}

#[expect(clippy::unused_async, reason = "other subjects await something")]
async fn open() -> Option<Box<InFolder>> {
    let folder = TempDir::new().unwrap();
    let store = store_in(folder.path()).unwrap();
    Some(Box::new(InFolder { folder, store: Some(store) }))
}

#[async_trait]
impl Subject for InFolder {
    fn store(&self) -> &dyn Store {
        self.store.as_ref().unwrap()
    }

    async fn reopen(&mut self) {
        self.store.take().unwrap().close().await;
        self.store = Some(store_in(self.folder.path()).unwrap());
    }
}

contract_tests!(open);

fn unusable(outcome: Result<EdgeStore, StoreError>, words: &[&str]) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, StoreError::Unusable(_)), "{error:?}");
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "{message:?} lacks {word:?}");
    }
    assert!(!message.contains('\n'), "{message:?} is more than a sentence");
}

#[tokio::test]
async fn a_folder_belongs_to_one_store() {
    let folder = TempDir::new().unwrap();
    let first = store_in(folder.path()).unwrap();
    unusable(store_in(folder.path()), &["in use by another process", "store.path"]);
    first.close().await;
    drop(store_in(folder.path()).unwrap());
    store_in(folder.path()).unwrap();
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_stops_the_start() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    unusable(store_in(&file.join("data")), &["cannot be written to", "store.path"]);
    unusable(store_in(Path::new("/proc/refrain")), &["cannot be written to", "store.path"]);
}

#[tokio::test]
async fn another_format_stops_the_start() {
    let folder = TempDir::new().unwrap();
    drop(store_in(folder.path()).unwrap());
    for content in [r#"{"format": 2}"#, "{}", ""] {
        std::fs::write(folder.path().join("format.json"), content).unwrap();
        unusable(store_in(folder.path()), &["format", "this version reads format 1", "move the folder away"]);
    }
}

#[tokio::test]
async fn a_damaged_store_stops_the_start() {
    let folder = TempDir::new().unwrap();
    let store = store_in(folder.path()).unwrap();
    store.upsert(&entry(&scope("n", "t", 0, "s"), "q"), Some(&at(0.0))).await.unwrap();
    store.close().await;
    let journal = folder.path().join("journal.json");
    std::fs::write(&journal, "[{").unwrap();
    unusable(store_in(folder.path()), &["purge journal", "move the data folder away"]);
    std::fs::remove_file(journal).unwrap();
    let config = folder.path().join("shards/keyed/edge_config.json");
    std::fs::write(config, "{").unwrap();
    unusable(store_in(folder.path()), &["shards/keyed", "move that folder away"]);
}

#[tokio::test]
async fn what_is_not_a_number_is_refused_and_harms_nobody() {
    let folder = TempDir::new().unwrap();
    let store = store_in(folder.path()).unwrap();
    let scope = scope("n", "t", 0, "s");
    let mut broken = at(0.0);
    broken.vector = vec![f32::NAN; 8].into();
    let good = entry(&scope, "good");
    let bad = entry(&scope, "bad");
    let embedding = at(0.0);
    let (good_outcome, bad_outcome) =
        tokio::join!(store.upsert(&good, Some(&embedding)), store.upsert(&bad, Some(&broken)));
    good_outcome.unwrap();
    assert!(matches!(bad_outcome, Err(StoreError::Failed(_))));
    assert_eq!(store.count(&Selector::default()).await.unwrap(), 1);
    let mut short = at(0.0);
    short.vector = vec![1.0; 3].into();
    assert!(matches!(store.upsert(&bad, Some(&short)).await, Err(StoreError::Unusable(_))));
    assert!(matches!(store.search(&scope, &short, 1).await, Err(StoreError::Unusable(_))));
}

#[tokio::test]
async fn dropping_a_store_finishes_what_is_queued() {
    let folder = TempDir::new().unwrap();
    let scope = scope("n", "t", 0, "s");
    let entries: Vec<_> = (0..50).map(|n| entry(&scope, &format!("question {n}"))).collect();
    let store = store_in(folder.path()).unwrap();
    join_all(entries.iter().map(async |entry| store.upsert(entry, Some(&at(0.0))).await.unwrap())).await;
    drop(store);
    let store = store_in(folder.path()).unwrap();
    assert_eq!(store.count(&Selector::default()).await.unwrap(), 50);
    assert!(store.disk_bytes().unwrap() > 0);
}

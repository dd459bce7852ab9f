//! The contract of the store against a real Qdrant server, 1.19 or later, on its gRPC port:
//! `REFRAIN_TEST_QDRANT_URL=http://127.0.0.1:6334 cargo test --test live`, with the server's key
//! in `REFRAIN_TEST_QDRANT_API_KEY` if it has one. The nodes of a cluster are named one after the
//! other, separated by commas: each instance in a test then talks to another one. Without the
//! variable one line says that it was skipped. Every test has collections of its own, removed
//! after it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

#[path = "../it/store/contract.rs"]
#[macro_use]
mod contract;

use std::io::Write;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use qdrant_client::Qdrant;
use qdrant_client::qdrant::DeleteCollectionBuilder;
use refrain::cache::store::Store;
use refrain::cache::store::qdrant::QdrantStore;
use refrain::config::Secret;
use uuid::Uuid;

use contract::Subject;

const PATIENT: Duration = Duration::from_mins(1);

struct Live {
    nodes: Vec<String>,
    /// How many instances there have been, so that the next one talks to the next node.
    instances: AtomicUsize,
    prefix: String,
    store: QdrantStore,
}

impl Live {
    fn connect(nodes: &[String], instance: usize, prefix: &str) -> QdrantStore {
        let url = &nodes[instance % nodes.len()];
        QdrantStore::connect(url, prefix, api_key().map(|key| Secret::new(&key)), PATIENT, PATIENT).unwrap()
    }

    fn instance(&self) -> QdrantStore {
        Self::connect(&self.nodes, self.instances.fetch_add(1, Ordering::Relaxed), &self.prefix)
    }
}

fn api_key() -> Option<String> {
    std::env::var("REFRAIN_TEST_QDRANT_API_KEY").ok()
}

#[expect(clippy::unused_async, reason = "other subjects await something")]
async fn open() -> Option<Box<Live>> {
    let Ok(urls) = std::env::var("REFRAIN_TEST_QDRANT_URL") else {
        static SAID: Once = Once::new();
        // Not println!, which the test harness keeps to itself.
        let text = b"skipped: REFRAIN_TEST_QDRANT_URL is not set\n";
        SAID.call_once(|| std::io::stderr().write_all(text).unwrap());
        return None;
    };
    let prefix = format!("refrain-test-{}", Uuid::new_v4());
    let nodes: Vec<String> = urls.split(',').map(|url| url.trim().to_owned()).collect();
    let store = Live::connect(&nodes, 0, &prefix);
    Some(Box::new(Live { nodes, instances: AtomicUsize::new(1), prefix, store }))
}

#[async_trait]
impl Subject for Live {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    async fn reopen(&mut self) {
        self.store = self.instance();
    }

    fn another(&self) -> Option<Box<dyn Store>> {
        Some(Box::new(self.instance()))
    }

    async fn finish(self: Box<Self>) {
        // The server makes and removes collections one after the other, those of all tests.
        let server = Qdrant::from_url(&self.nodes[0]).timeout(PATIENT).skip_compatibility_check();
        let client = server.api_key(api_key()).build().unwrap();
        for collection in client.list_collections().await.unwrap().collections {
            if collection.name.starts_with(&self.prefix) {
                let delete = DeleteCollectionBuilder::new(collection.name).timeout(PATIENT.as_secs());
                client.delete_collection(delete).await.unwrap();
            }
        }
    }
}

contract_tests!(open);

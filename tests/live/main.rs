//! The contract of the store against a real Qdrant server, 1.19 or later, on its gRPC port:
//! `REFRAIN_TEST_QDRANT_URL=http://127.0.0.1:6334 cargo test --test live`. Without the variable
//! one line says that it was skipped. Every test has collections of its own, removed after it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

#[path = "../it/store/contract.rs"]
#[macro_use]
mod contract;

use std::io::Write;
use std::sync::Once;
use std::time::Duration;

use async_trait::async_trait;
use qdrant_client::Qdrant;
use refrain::cache::store::Store;
use refrain::cache::store::qdrant::QdrantStore;
use uuid::Uuid;

use contract::Subject;

const PATIENT: Duration = Duration::from_mins(1);

struct Live {
    url: String,
    prefix: String,
    store: QdrantStore,
}

fn connect(url: &str, prefix: &str) -> QdrantStore {
    QdrantStore::connect(url, prefix, None, PATIENT, PATIENT).unwrap()
}

#[expect(clippy::unused_async, reason = "other subjects await something")]
async fn open() -> Option<Box<Live>> {
    let Ok(url) = std::env::var("REFRAIN_TEST_QDRANT_URL") else {
        static SAID: Once = Once::new();
        // Not println!, which the test harness keeps to itself.
        let text = b"skipped: REFRAIN_TEST_QDRANT_URL is not set\n";
        SAID.call_once(|| std::io::stderr().write_all(text).unwrap());
        return None;
    };
    let prefix = format!("refrain-test-{}", Uuid::new_v4());
    let store = connect(&url, &prefix);
    Some(Box::new(Live { url, prefix, store }))
}

#[async_trait]
impl Subject for Live {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    async fn reopen(&mut self) {
        self.store = connect(&self.url, &self.prefix);
    }

    async fn finish(self: Box<Self>) {
        let client = Qdrant::from_url(&self.url).skip_compatibility_check().build().unwrap();
        for collection in client.list_collections().await.unwrap().collections {
            if collection.name.starts_with(&self.prefix) {
                client.delete_collection(collection.name).await.unwrap();
            }
        }
    }
}

contract_tests!(open);

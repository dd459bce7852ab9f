//! The server adapter over the wire, and what happens when the server goes.

use std::time::Duration;

use async_trait::async_trait;
use refrain::cache::store::qdrant::QdrantStore;
use refrain::cache::store::{Inventory, Journal, Mark, Selector, Store, StoreError, VectorStore};
use refrain::clock::Timestamp;
use refrain::config::Secret;

use super::contract::{self, Subject, at, entry, scope};
use super::fixture::Server;

/// Long enough that a busy machine does not make it.
const PATIENT: Duration = Duration::from_secs(30);

struct OnServer {
    server: Server,
    store: QdrantStore,
}

fn connect(server: &Server) -> QdrantStore {
    QdrantStore::connect(&server.url(), "tests", None, PATIENT, PATIENT).unwrap()
}

async fn open() -> Option<Box<OnServer>> {
    let server = Server::start().await;
    let store = connect(&server);
    Some(Box::new(OnServer { server, store }))
}

#[async_trait]
impl Subject for OnServer {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn another(&self) -> Option<Box<dyn Store>> {
        Some(Box::new(connect(&self.server)))
    }

    async fn reopen(&mut self) {
        self.server.stop().await;
        self.server.restart().await;
        self.store = connect(&self.server);
    }
}

contract_tests!(open);

#[tokio::test]
async fn a_server_that_was_away_is_simply_there_again() {
    let mut server = Server::start().await;
    let store = connect(&server);
    let scope = scope("n", "t", 0, "s");
    let (before, after) = (entry(&scope, "before"), entry(&scope, "after"));
    store.upsert(&before, Some(&at(0.0))).await.unwrap();
    for _ in 0..2 {
        server.stop().await;
        for _ in 0..3 {
            let error = store.search(&scope, &at(0.0), 5).await.unwrap_err();
            assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
            let error = store.upsert(&after, Some(&at(0.0))).await.unwrap_err();
            assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
            assert!(store.check().await.is_err());
        }
        server.restart().await;
        assert_eq!(store.search(&scope, &at(0.0), 5).await.unwrap()[0].entry, before);
        store.check().await.unwrap();
    }
    store.upsert(&after, Some(&at(0.0))).await.unwrap();
    assert_eq!(store.count(&Selector::default()).await.unwrap(), 2);
}

#[tokio::test]
async fn a_server_need_not_be_there_at_the_start() {
    let mut server = Server::start().await;
    server.stop().await;
    let store = connect(&server);
    assert!(matches!(store.check().await, Err(StoreError::Unavailable(_))));
    server.restart().await;
    store.check().await.unwrap();
}

#[tokio::test]
async fn a_silent_server_costs_the_timeout_and_no_more() {
    let server = Server::start().await;
    let short = Duration::from_millis(50);
    let store = QdrantStore::connect(&server.url(), "tests", None, short, PATIENT).unwrap();
    let scope = scope("n", "t", 0, "s");
    let entry = entry(&scope, "q");
    store.upsert(&entry, Some(&at(0.0))).await.unwrap();
    server.hang(true);
    // More often than it takes to give the connection up.
    for _ in 0..5 {
        let error = store.search(&scope, &at(0.0), 5).await.unwrap_err();
        assert!(matches!(error, StoreError::TimedOut), "{error:?}");
    }
    server.hang(false);
    let patient = connect(&server);
    assert_eq!(patient.search(&scope, &at(0.0), 5).await.unwrap().len(), 1);
    store.upsert(&entry, Some(&at(0.0))).await.unwrap();
}

#[tokio::test]
async fn what_a_purge_covers_does_not_pile_up() {
    let server = Server::start().await;
    let store = connect(&server);
    for n in 1..=20 {
        let selector = Selector { namespace: Some("n".into()), ..Selector::default() };
        store.publish(&Mark { selector, at: Timestamp(n), epoch: Some(n) }).await.unwrap();
    }
    assert_eq!(server.points("tests-v1-journal"), 1);
}

#[tokio::test]
async fn a_collection_that_vanished_is_made_again() {
    let server = Server::start().await;
    let store = connect(&server);
    let scope = scope("n", "t", 0, "s");
    let entry = entry(&scope, "q");
    store.upsert(&entry, Some(&at(0.0))).await.unwrap();
    server.forget_everything();
    assert!(store.search(&scope, &at(0.0), 5).await.unwrap().is_empty());
    assert_eq!(store.get(&entry.key).await.unwrap(), None);
    assert_eq!(store.delete(&Selector::default()).await.unwrap(), 0);
    assert_eq!(store.marks().await.unwrap(), []);
    store.upsert(&entry, Some(&at(0.0))).await.unwrap();
    assert_eq!(store.search(&scope, &at(0.0), 5).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_api_key_is_sent_and_its_refusal_is_said() {
    let server = Server::start().await;
    server.demand_api_key("canary-4711");
    let key = |key| Some(Secret::new(key));
    let right = QdrantStore::connect(&server.url(), "tests", key("canary-4711"), PATIENT, PATIENT).unwrap();
    right.check().await.unwrap();
    for wrong in [None, key("canary-wrong")] {
        let store = QdrantStore::connect(&server.url(), "tests", wrong, PATIENT, PATIENT).unwrap();
        let error = store.check().await.unwrap_err().to_string();
        assert!(error.contains("store.api_key") && !error.contains("canary"), "{error}");
        assert!(!format!("{store:?}").contains("canary"));
    }
}

#[test]
fn a_url_that_is_none_is_unusable() {
    for url in ["", "http://", "not a url"] {
        let error = QdrantStore::connect(url, "tests", None, PATIENT, PATIENT).unwrap_err();
        assert!(
            matches!(error, StoreError::Unusable(_)) && error.to_string().contains("store.url"),
            "{error}"
        );
    }
}

//! Vectors of texts seen lately, so that no text is embedded twice, not even at once.
//!
//! Callers who ask for the same text at the same time share one flight. It belongs to none of
//! them: it goes on while anyone waits, whoever came first, and is dropped with its last
//! waiter. Only vectors are remembered, never failures.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{Shared, WeakShared};
use moka::sync::Cache;

use super::{EmbedError, Embedder, EmbedderId, Embedding};

/// Bytes that an entry costs besides its text and vector: keys, pointers, moka's bookkeeping.
const OVERHEAD: usize = 256;

type Outcome = Result<Embedding, EmbedError>;
type Flight = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// The memo. Clones share it.
#[derive(Clone)]
pub struct Memo {
    embeddings: Cache<Key, Embedding>,
    flights: Arc<Mutex<Flights>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    embedder: EmbedderId,
    text: Arc<str>,
}

#[derive(Default)]
struct Flights {
    by_key: HashMap<Key, (u64, WeakShared<Flight>)>,
    next: u64,
}

impl Memo {
    /// A memo of about `max_bytes`; the least used vectors go first.
    pub fn new(max_bytes: u64) -> Self {
        let weigh = |key: &Key, embedding: &Embedding| {
            let tokens = embedding.tokens.as_ref().map_or(0, |tokens| tokens.weight());
            let bytes = OVERHEAD + key.text.len() + size_of_val(&*embedding.vector) + tokens;
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        Self {
            embeddings: Cache::builder().max_capacity(max_bytes).weigher(weigh).build(),
            flights: Arc::default(),
        }
    }

    /// The text's vector: remembered, or from `embedder`, which is asked once however many
    /// callers wait. Dropping the future leaves the flight to the others.
    pub async fn embed(&self, embedder: &Arc<dyn Embedder>, text: &str) -> Outcome {
        let key = Key { embedder: embedder.id().clone(), text: text.into() };
        if let Some(embedding) = self.embeddings.get(&key) {
            return Ok(embedding);
        }
        self.join(embedder, key).await
    }

    /// Remembered vectors, and the bytes they take; both lag a little behind.
    pub fn size(&self) -> (u64, u64) {
        (self.embeddings.entry_count(), self.embeddings.weighted_size())
    }

    /// The flight of this text, boarded by all who ask before it lands.
    fn join(&self, embedder: &Arc<dyn Embedder>, key: Key) -> Shared<Flight> {
        let mut flights = self.lock();
        if let Some(flight) = flights.by_key.get(&key).and_then(|(_, flight)| flight.upgrade()) {
            return flight;
        }
        let number = flights.next;
        flights.next += 1;
        let landing = Landing { memo: self.clone(), key: key.clone(), number };
        let embedder = Arc::clone(embedder);
        let flight: Flight = Box::pin(async move {
            let landing = landing;
            let embedding = embedder.embed(&landing.key.text).await?;
            landing.memo.embeddings.insert(landing.key.clone(), embedding.clone());
            Ok(embedding)
        });
        let flight = flight.shared();
        if let Some(weak) = flight.downgrade() {
            flights.by_key.insert(key, (number, weak));
        }
        flight
    }

    /// Nothing panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, Flights> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a flight off the board when it is over, or when all who waited have left.
struct Landing {
    memo: Memo,
    key: Key,
    number: u64,
}

impl Drop for Landing {
    fn drop(&mut self) {
        let mut flights = self.memo.lock();
        // All may have left, and others begun a flight of their own, before this came to run.
        if flights.by_key.get(&self.key).is_some_and(|(number, _)| *number == self.number) {
            flights.by_key.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;

    fn memo() -> (Memo, Arc<Fake>, Arc<dyn Embedder>) {
        let fake = Arc::new(Fake::new("fake"));
        (Memo::new(1 << 20), Arc::clone(&fake), fake)
    }

    #[tokio::test]
    async fn the_same_text_is_embedded_once() {
        let (memo, fake, embedder) = memo();
        let first = memo.embed(&embedder, "a question").await.unwrap();
        let second = memo.embed(&embedder, "a question").await.unwrap();
        assert_eq!(first, second);
        memo.embed(&embedder, "another").await.unwrap();
        assert_eq!(fake.calls(), 2);
    }

    #[tokio::test]
    async fn embedders_do_not_share_vectors() {
        let (memo, _, embedder) = memo();
        let other: Arc<dyn Embedder> = Arc::new(Fake::new("other"));
        memo.embed(&embedder, "a question").await.unwrap();
        assert_eq!(memo.embed(&other, "a question").await.unwrap().embedder, EmbedderId::new("other"));
    }

    #[tokio::test]
    async fn callers_at_once_share_a_flight_and_the_first_may_leave() {
        let (memo, fake, embedder) = memo();
        fake.hold();
        let mut first = Box::pin(memo.embed(&embedder, "a question"));
        let mut second = Box::pin(memo.embed(&embedder, "a question"));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        fake.release();
        assert!(second.await.is_ok());
        assert_eq!(fake.calls(), 1);
        assert!(memo.lock().by_key.is_empty());
    }

    #[tokio::test]
    async fn a_flight_that_all_have_left_is_over() {
        let (memo, fake, embedder) = memo();
        fake.hold();
        let mut only = Box::pin(memo.embed(&embedder, "a question"));
        assert!(only.as_mut().now_or_never().is_none());
        drop(only);
        assert!(memo.lock().by_key.is_empty());
        fake.release();
        assert!(memo.embed(&embedder, "a question").await.is_ok());
        assert_eq!(fake.calls(), 2);
    }

    #[tokio::test]
    async fn a_failure_is_not_remembered() {
        let (memo, fake, embedder) = memo();
        fake.fail_with(EmbedError::TimedOut);
        assert!(matches!(memo.embed(&embedder, "a question").await, Err(EmbedError::TimedOut)));
        assert!(memo.embed(&embedder, "a question").await.is_ok());
        assert_eq!(fake.calls(), 2);
    }

    #[tokio::test]
    async fn stays_within_its_bytes() {
        let fake: Arc<dyn Embedder> = Arc::new(Fake::new("fake"));
        let memo = Memo::new(10_000);
        for n in 0..1_000 {
            memo.embed(&fake, &format!("question {n}")).await.unwrap();
        }
        memo.embeddings.run_pending_tasks();
        assert!(memo.embeddings.weighted_size() <= 10_000);
        assert!(memo.embeddings.entry_count() > 0);
    }
}

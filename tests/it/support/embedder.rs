//! An embedder whose similarities the test decides.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use refrain::cache::embedder::{EmbedError, Embedder, EmbedderId, Embedding};

const DIMENSIONS: usize = 64;

/// Texts are unlike each other unless the test says otherwise.
pub(crate) struct FakeEmbedder {
    id: EmbedderId,
    vectors: Mutex<HashMap<String, Vec<f32>>>,
    failure: Mutex<Option<EmbedError>>,
    calls: AtomicUsize,
}

impl Default for FakeEmbedder {
    fn default() -> Self {
        Self {
            id: EmbedderId::new("fake-1"),
            vectors: Mutex::default(),
            failure: Mutex::default(),
            calls: AtomicUsize::new(0),
        }
    }
}

impl FakeEmbedder {
    /// Makes `text` this similar to `other`, and unlike everything else.
    pub(crate) fn similar(&self, text: &str, other: &str, similarity: f32) {
        let base = self.vector(other);
        let mut vectors = self.vectors.lock().unwrap();
        let axis = vectors.len() % DIMENSIONS;
        let mut vector: Vec<f32> = base.iter().map(|value| value * similarity).collect();
        vector[axis] += (1.0 - similarity * similarity).sqrt();
        vectors.insert(text.to_owned(), vector);
    }

    /// Fails from now on, or works again.
    pub(crate) fn fail(&self, failure: Option<EmbedError>) {
        *self.failure.lock().unwrap() = failure;
    }

    /// How often it was asked.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut vectors = self.vectors.lock().unwrap();
        let axis = vectors.len() % DIMENSIONS;
        vectors
            .entry(text.to_owned())
            .or_insert_with(|| {
                let mut vector = vec![0.0; DIMENSIONS];
                vector[axis] = 1.0;
                vector
            })
            .clone()
    }
}

#[async_trait]
impl Embedder for FakeEmbedder {
    fn id(&self) -> &EmbedderId {
        &self.id
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    async fn embed(&self, text: &str) -> Result<Embedding, EmbedError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if let Some(failure) = self.failure.lock().unwrap().clone() {
            return Err(failure);
        }
        Ok(Embedding::new(self.id.clone(), self.vector(text)))
    }
}

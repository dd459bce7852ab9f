//! An embedder for tests: it answers when the test likes, and counts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;

use super::{EmbedError, Embedder, EmbedderId, Embedding};

/// Answers with a vector of two numbers made from the text's length.
pub(super) struct Fake {
    id: EmbedderId,
    calls: AtomicUsize,
    held: watch::Sender<bool>,
    failure: Mutex<Option<EmbedError>>,
}

impl Fake {
    pub(super) fn new(id: &str) -> Self {
        Self {
            id: EmbedderId::new(id),
            calls: AtomicUsize::new(0),
            held: watch::Sender::new(false),
            failure: Mutex::new(None),
        }
    }

    /// How often it was asked.
    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// No answer from now on, until [`release`](Self::release).
    pub(super) fn hold(&self) {
        self.held.send_replace(true);
    }

    pub(super) fn release(&self) {
        self.held.send_replace(false);
    }

    /// The next answer is this failure.
    pub(super) fn fail_with(&self, error: EmbedError) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

#[async_trait]
impl Embedder for Fake {
    fn id(&self) -> &EmbedderId {
        &self.id
    }

    fn dimensions(&self) -> usize {
        2
    }

    async fn embed(&self, text: &str) -> Result<Embedding, EmbedError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let mut held = self.held.subscribe();
        let _ = held.wait_for(|held| !held).await;
        if let Some(error) = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        #[expect(clippy::cast_precision_loss, reason = "a test's texts are short")]
        let angle = text.len() as f32;
        Ok(Embedding::new(self.id.clone(), [angle.cos(), angle.sin()]))
    }
}

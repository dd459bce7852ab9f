//! An embedder that is loaded when it is first needed.
//!
//! The multilingual model costs a few hundred megabytes and most services never see a text
//! that needs it. The text that does goes past the semantic layer instead of waiting.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{EmbedError, Embedder, LoadError};

/// How long a failure to load is remembered before it is tried again.
const RETRY_AFTER: Duration = Duration::from_mins(1);

/// Loads an embedder; may block for seconds.
pub type Loader = dyn Fn() -> Result<Arc<dyn Embedder>, LoadError> + Send + Sync;

/// An embedder, or what it takes to get one.
pub struct Lazy {
    name: Arc<str>,
    load: Arc<Loader>,
    state: Arc<Mutex<State>>,
}

enum State {
    Idle,
    Loading,
    Ready(Arc<dyn Embedder>),
    Failed { at: Instant, reason: Arc<str> },
}

impl Lazy {
    /// An embedder that `load` brings when it is first asked for.
    pub fn new(name: &str, load: Arc<Loader>) -> Self {
        Self { name: name.into(), load, state: Arc::new(Mutex::new(State::Idle)) }
    }

    /// An embedder that is there.
    pub fn ready(name: &str, embedder: Arc<dyn Embedder>) -> Self {
        let again = Arc::clone(&embedder);
        let lazy = Self::new(name, Arc::new(move || Ok(Arc::clone(&again))));
        *lock(&lazy.state) = State::Ready(embedder);
        lazy
    }

    /// Loads now, blocking; for the start, which stops when this fails.
    pub fn load(&self) -> Result<(), LoadError> {
        let embedder = (self.load)()?;
        *lock(&self.state) = State::Ready(embedder);
        Ok(())
    }

    /// The embedder if it is there, without asking for it.
    pub fn loaded(&self) -> Option<Arc<dyn Embedder>> {
        match &*lock(&self.state) {
            State::Ready(embedder) => Some(Arc::clone(embedder)),
            _ => None,
        }
    }

    /// The embedder. If it is not there, loading begins in the background (once, and again a
    /// minute after a failure) and the caller gets [`EmbedError::Loading`], or the failure.
    /// Must be called inside a tokio runtime; never blocks.
    pub fn get(&self) -> Result<Arc<dyn Embedder>, EmbedError> {
        let mut state = lock(&self.state);
        let first = match &*state {
            State::Ready(embedder) => return Ok(Arc::clone(embedder)),
            State::Loading => return Err(EmbedError::Loading),
            State::Failed { at, reason } if at.elapsed() < RETRY_AFTER => {
                return Err(EmbedError::Failed(Arc::clone(reason)));
            }
            State::Failed { .. } => false,
            State::Idle => true,
        };
        *state = State::Loading;
        drop(state);
        self.load_in_background(first);
        Err(EmbedError::Loading)
    }

    /// A failure is logged when it is the first; retries that fail too stay quiet.
    fn load_in_background(&self, first: bool) {
        let (name, load, state) = (Arc::clone(&self.name), Arc::clone(&self.load), Arc::clone(&self.state));
        tokio::spawn(async move {
            let begun = Instant::now();
            let loaded = match tokio::task::spawn_blocking(move || load()).await {
                Ok(loaded) => loaded.map_err(|error| error.to_string()),
                Err(_) => Err(format!("encoder {name}: loading it panicked")),
            };
            let next = match loaded {
                Ok(embedder) => {
                    tracing::info!(encoder = %name, elapsed = ?begun.elapsed(), "encoder loaded");
                    State::Ready(embedder)
                }
                Err(reason) => {
                    if first {
                        tracing::warn!(
                            encoder = %name, %reason,
                            "encoder not loaded; texts that need it go past the semantic layer"
                        );
                    }
                    State::Failed { at: Instant::now(), reason: reason.into() }
                }
            };
            *lock(&state) = next;
        });
    }
}

/// No code panics while it holds the lock, and a state is always whole.
fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::fake::Fake;
    use super::*;

    /// Counts its calls and fails for the first `failures` of them.
    fn failing(failures: usize) -> (Lazy, Arc<AtomicUsize>) {
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&calls);
        let load = move || match counter.fetch_add(1, Ordering::SeqCst) {
            call if call < failures => Err(LoadError::Unknown("gone".into())),
            _ => Ok(Arc::new(Fake::new("fake")) as Arc<dyn Embedder>),
        };
        (Lazy::new("fake", Arc::new(load)), calls)
    }

    /// Until the background load has said how it ended.
    async fn settled(lazy: &Lazy) {
        while matches!(*lock(&lazy.state), State::Loading) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn loads_once_when_first_asked_for() {
        let (lazy, calls) = failing(0);
        assert!(lazy.loaded().is_none());
        assert_eq!(calls.load(Ordering::SeqCst), 0);
        assert!(matches!(lazy.get(), Err(EmbedError::Loading)));
        assert!(matches!(lazy.get(), Err(EmbedError::Loading)));
        settled(&lazy).await;
        assert!(lazy.get().is_ok());
        assert!(lazy.loaded().is_some());
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn remembers_a_failure_for_a_minute_then_recovers() {
        let (lazy, calls) = failing(1);
        assert!(matches!(lazy.get(), Err(EmbedError::Loading)));
        settled(&lazy).await;
        tokio::time::advance(Duration::from_millis(59_999)).await;
        assert!(matches!(lazy.get(), Err(EmbedError::Failed(_))));
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(matches!(lazy.get(), Err(EmbedError::Loading)));
        settled(&lazy).await;
        assert!(lazy.get().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_while_loading_is_a_failure() {
        let lazy = Lazy::new("fake", Arc::new(|| panic!("the loader panicked, as the test wants it to")));
        assert!(matches!(lazy.get(), Err(EmbedError::Loading)));
        settled(&lazy).await;
        assert!(matches!(lazy.get(), Err(EmbedError::Failed(_))));
    }

    #[test]
    fn a_failure_at_the_start_is_told() {
        let (lazy, _) = failing(1);
        assert!(lazy.load().is_err());
        assert!(lazy.load().is_ok());
        assert!(lazy.loaded().is_some());
    }
}

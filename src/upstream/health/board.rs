//! The health of all targets, by who they are.
//!
//! Bounded, because the name of a model may be the caller's own (the `"*"` route): whoever makes up
//! names must not fill the memory, nor a scrape.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::time::Instant;

use super::{Health, HealthReport};

/// Targets that are told apart. Any more of a provider share one, under [`OTHER`].
const MAX_TARGETS: usize = 256;

/// The model's name under which targets beyond the bound are counted.
const OTHER: &str = "other";

/// The longest name of a model that is kept, in bytes.
const MAX_NAME: usize = 128;

/// Who a target is. Ordered by provider, model and region.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels {
    /// The provider's name in the config.
    pub provider: Arc<str>,
    /// The model's name at the provider.
    pub model: Arc<str>,
    /// Where it runs, when the config says.
    pub region: Option<Arc<str>>,
}

/// The health of all targets. The look-up takes a lock that nobody holds for long; a target whose
/// names are fixed keeps what it got.
#[derive(Debug, Default)]
pub struct Board(RwLock<BTreeMap<Labels, Arc<Health>>>);

impl Board {
    /// The health of a target; the same for the same labels.
    pub fn of(&self, labels: &Labels, now: Instant) -> Arc<Health> {
        if let Some(health) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(labels) {
            return Arc::clone(health);
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut labels = labels.clone();
        if labels.model.len() > MAX_NAME || known.len() >= MAX_TARGETS && !known.contains_key(&labels) {
            labels.model = OTHER.into();
        }
        let health = known.entry(labels).or_insert_with_key(|labels| Health::new(labels.clone(), now));
        Arc::clone(health)
    }

    /// Everything about every target, in order.
    pub fn reports(&self, now: Instant) -> Vec<HealthReport> {
        // Reports are made outside of the lock: a new target need not wait for them.
        let known: Vec<_> =
            self.0.read().unwrap_or_else(PoisonError::into_inner).values().map(Arc::clone).collect();
        known.iter().map(|health| health.report(now)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(model: &str) -> Labels {
        Labels { provider: "openai".into(), model: model.into(), region: None }
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_labels_have_the_same_health() {
        let (board, now) = (Board::default(), Instant::now());
        let eu = Labels { region: Some("eu".into()), ..labels("gpt-4o") };
        assert!(Arc::ptr_eq(&board.of(&eu, now), &board.of(&eu, now)));
        assert!(!Arc::ptr_eq(&board.of(&eu, now), &board.of(&labels("gpt-4o"), now)));
        assert_eq!(board.reports(now).len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn made_up_names_share_one_place() {
        let (board, now) = (Board::default(), Instant::now());
        let known = board.of(&labels("gpt-4o"), now);
        for made_up in 0..10_000 {
            board.of(&labels(&format!("model-{made_up}")), now);
        }
        board.of(&labels(&"x".repeat(1_000)), now);
        assert!(board.reports(now).len() <= MAX_TARGETS + 1);
        assert!(Arc::ptr_eq(&known, &board.of(&labels("gpt-4o"), now)));
        assert_eq!(&*board.of(&labels("one-more"), now).labels().model, OTHER);
    }
}

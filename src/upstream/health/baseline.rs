//! What is normal for a target: the long-run level that its present is compared with.
//!
//! Why a median over blocks of five minutes and no moving average: an average follows a provider
//! down as it gets slow, and then calls slow normal. The median does not move before half of what it
//! remembers is slow. And each block has one vote, so that a burst of calls counts no more than
//! a quiet hour.
//!
//! A block is as long as the window that is compared with it, and as many calls are asked of it:
//! the p99 of few calls lies lower than that of many, so only like may be compared with like.

use std::collections::VecDeque;

use super::alert::Condition;
use super::window::Slot;

/// Blocks remembered: four hours of traffic, however far apart. So a disturbance of less than two
/// hours never becomes normal, and a lasting change does after two.
const REMEMBERED: usize = 48;

/// Before this many blocks, a quarter of an hour of traffic, nothing is normal.
const LEAST_BLOCKS: usize = 3;

/// Streams of a block before their speed has a vote.
const LEAST_STREAMS: u64 = 10;

/// The norms of one target.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    first_content_ms: Norm,
    p99_ms: Norm,
    tokens_per_second: Norm,
}

impl Baseline {
    /// Takes in five minutes that have ended.
    pub(super) fn learn(&mut self, block: &Slot) {
        if block.first_content.count() >= Condition::FirstContent.least_calls() {
            self.first_content_ms.learn(block.first_content.at(0.5));
        }
        if block.total.count() >= Condition::P99.least_calls() {
            self.p99_ms.learn(block.total.at(0.99));
        }
        if block.inter_token.count() >= LEAST_STREAMS {
            self.tokens_per_second.learn(block.tokens_per_second());
        }
    }

    /// The usual median time to first content.
    pub(super) fn first_content_ms(&self) -> Option<f64> {
        self.first_content_ms.value()
    }

    /// The usual p99 of whole calls.
    pub(super) fn p99_ms(&self) -> Option<f64> {
        self.p99_ms.value()
    }

    /// The usual speed of streams.
    pub(super) fn tokens_per_second(&self) -> Option<f64> {
        self.tokens_per_second.value()
    }
}

/// The median of the last values.
#[derive(Debug, Default)]
struct Norm(VecDeque<f64>);

impl Norm {
    fn learn(&mut self, value: Option<f64>) {
        self.0.extend(value.filter(|value| value.is_finite()));
        while self.0.len() > REMEMBERED {
            self.0.pop_front();
        }
    }

    /// `None` while there are too few values. Of an even number the upper of the two middle ones.
    fn value(&self) -> Option<f64> {
        if self.0.len() < LEAST_BLOCKS {
            return None;
        }
        let mut sorted: Vec<f64> = self.0.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn norm(values: impl IntoIterator<Item = f64>) -> Option<f64> {
        let mut norm = Norm::default();
        for value in values {
            norm.learn(Some(value));
        }
        norm.value()
    }

    #[test]
    fn nothing_is_normal_at_first() {
        assert_eq!(norm([]), None);
        assert_eq!(norm([400.0, 420.0]), None);
        assert_eq!(norm([400.0, 420.0, 9_000.0]), Some(420.0));
    }

    #[test]
    fn a_lasting_change_becomes_normal_after_half_of_what_is_remembered() {
        let before = || std::iter::repeat_n(400.0, 100);
        assert_eq!(norm(before().chain(std::iter::repeat_n(900.0, 23))), Some(400.0));
        assert_eq!(norm(before().chain(std::iter::repeat_n(900.0, 24))), Some(900.0));
    }

    proptest! {
        /// Fewer disturbed blocks than half leave the norm among the undisturbed ones.
        #[test]
        fn a_minority_cannot_move_the_norm_outside(
            good in prop::collection::vec(300.0..500.0, 25..48_usize),
            bad in prop::collection::vec(prop_oneof![0.0..1.0, 5_000.0..60_000.0], 0..20_usize),
        ) {
            let found = norm(bad.into_iter().chain(good)).expect("there are enough");
            prop_assert!((300.0..500.0).contains(&found), "{found}");
        }
    }
}

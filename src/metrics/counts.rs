//! What is counted: the one list of fields behind `/stats`, `/metrics` and the history.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::lock;
use super::tally::Tally;

/// Declares the counts twice: as cells that are counted up by many threads, and as the plain
/// numbers read from them. Plain numbers are subtracted to get a window and added to get totals.
macro_rules! counts {
    (
        numbers { $($(#[$number_meta:meta])* $number:ident,)* }
        tallies { $($(#[$tally_meta:meta])* $tally:ident,)* }
    ) => {
        /// What happened in one namespace.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub(super) struct Counts {
            $($(#[$number_meta])* pub(super) $number: u64,)*
            $($(#[$tally_meta])* pub(super) $tally: Tally,)*
        }

        impl Counts {
            /// What came on top of `earlier`.
            pub(super) fn minus(&self, earlier: &Self) -> Self {
                Self {
                    $($number: self.$number.saturating_sub(earlier.$number),)*
                    $($tally: self.$tally.minus(&earlier.$tally),)*
                }
            }

            /// Counts all of `more` as well.
            pub(super) fn merge(&mut self, more: &Self) {
                $(self.$number = self.$number.saturating_add(more.$number);)*
                $(self.$tally.merge(&more.$tally);)*
            }
        }

        /// What happens in one namespace.
        #[derive(Debug, Default)]
        pub(super) struct Cells {
            $($(#[$number_meta])* pub(super) $number: Cell,)*
            $($(#[$tally_meta])* pub(super) $tally: TallyCell,)*
        }

        impl Cells {
            /// The numbers now. Counting that goes on meanwhile may be seen in one and not yet in another.
            pub(super) fn read(&self) -> Counts {
                Counts {
                    $($number: self.$number.get(),)*
                    $($tally: self.$tally.get(),)*
                }
            }
        }
    };
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(super) struct Cell(AtomicU64);

impl Cell {
    /// Adds `n`.
    pub(super) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The number now.
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A tally that only grows.
#[derive(Debug, Default)]
pub(super) struct TallyCell(Mutex<Tally>);

impl TallyCell {
    /// Counts `n` more of `label`.
    pub(super) fn add(&self, label: &str, n: u64) {
        lock(&self.0).add(label, n);
    }

    /// The tally now.
    pub(super) fn get(&self) -> Tally {
        lock(&self.0).clone()
    }
}

counts! {
    numbers {
        /// Requests answered by the exact layer.
        exact_hits,
        /// Requests answered by the semantic layer.
        semantic_hits,
        /// Requests that the semantic layer could have answered in namespaces that only watch.
        shadow_hits,
        /// Requests that followed an answer already under way for another caller.
        coalesced,
        /// Requests that went upstream because no layer had an answer.
        misses,
        /// How long the misses took, together.
        miss_micros,
        /// Answers written to the cache.
        stored,
        /// Prompt tokens that were not sent.
        prompt_tokens_saved,
        /// Completion tokens that were not generated.
        completion_tokens_saved,
        /// Those of the tokens saved that were estimated, since the provider gave no usage.
        estimated_tokens_saved,
        /// Money that was not paid, in billionths of a dollar.
        nanodollars_saved,
        /// Time that callers did not wait.
        micros_saved,
        /// Prompt tokens sent.
        prompt_tokens_spent,
        /// Completion tokens generated.
        completion_tokens_spent,
        /// Those of the tokens spent that were estimated.
        estimated_tokens_spent,
        /// Money paid, in billionths of a dollar.
        nanodollars_spent,
    }
    tallies {
        /// Requests that went past the whole cache, by reason.
        bypasses,
        /// Requests that went past the semantic layer alone, by reason.
        semantic_bypasses,
        /// Requests that got something in place of the answer that no provider could give, by what.
        degraded,
        /// Requests that ended in an error, by class.
        errors,
        /// Semantic candidates that verification refused, by reason.
        refusals,
        /// Hits whose answers were compared with new ones, by what came out.
        samples,
        /// What people said of answers.
        verdicts,
        /// Answers that were not written to the cache, by reason.
        write_skips,
        /// Entries removed on request, by layer.
        evictions,
    }
}

impl Counts {
    /// All requests that have ended.
    pub(super) fn requests(&self) -> u64 {
        self.cacheable() + self.bypasses.sum() + self.errors.sum()
    }

    /// The requests that the cache had a chance to answer.
    pub(super) fn cacheable(&self) -> u64 {
        self.hits() + self.coalesced + self.misses + self.degraded.sum()
    }

    /// The requests that the cache did answer.
    pub(super) fn hits(&self) -> u64 {
        self.exact_hits + self.semantic_hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_difference_and_a_total_a_sum() {
        let cells = Cells::default();
        cells.misses.add(2);
        cells.bypasses.add("tools", 1);
        let earlier = cells.read();
        cells.misses.add(3);
        cells.exact_hits.add(1);
        cells.bypasses.add("no_store", 4);

        let window = cells.read().minus(&earlier);
        assert_eq!((window.misses, window.exact_hits, window.requests()), (3, 1, 8));

        let mut total = earlier;
        total.merge(&window);
        assert_eq!(total, cells.read());
    }
}

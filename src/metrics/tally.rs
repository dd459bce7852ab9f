//! Counts by a label that is only known as text.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What a tally counts under once it holds [`MAX_LABELS`] labels.
pub(super) const OTHER: &str = "other";

/// Labels are closed sets of a handful; model names come from providers and are not. The cap keeps
/// both the memory and the scrape small whatever a provider answers.
const MAX_LABELS: usize = 64;

/// A label is kept up to this many bytes.
const MAX_LABEL_BYTES: usize = 128;

/// Counts by label, sorted by label. Beyond [`MAX_LABELS`] labels new ones count as [`OTHER`].
///
/// A sorted vector and no map: a history keeps hundreds of these, mostly empty or of a few labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally(Vec<(Arc<str>, u64)>);

impl Tally {
    /// Counts `n` more of `label`.
    pub(super) fn add(&mut self, label: &str, n: u64) {
        let label = &label[..label.floor_char_boundary(MAX_LABEL_BYTES)];
        match self.position(label) {
            Ok(index) => self.0[index].1 = self.0[index].1.saturating_add(n),
            Err(_) if self.0.len() + 1 >= MAX_LABELS && label != OTHER => self.add(OTHER, n),
            Err(index) => self.0.insert(index, (label.into(), n)),
        }
    }

    /// Counts all of `more` as well.
    pub(super) fn merge(&mut self, more: &Self) {
        for (label, n) in more.iter() {
            self.add(label, n);
        }
    }

    /// What came on top of `earlier`; labels without anything new are left out.
    pub(super) fn minus(&self, earlier: &Self) -> Self {
        let grown = self.0.iter().filter_map(|(label, n)| {
            let before = earlier.position(label).map_or(0, |index| earlier.0[index].1);
            (*n > before).then(|| (Arc::clone(label), n - before))
        });
        Self(grown.collect())
    }

    /// All counts together.
    pub(super) fn sum(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }

    /// The labels, in order, with their counts.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(label, n)| (&**label, *n))
    }

    /// The counts as an owned map.
    pub(super) fn to_map(&self) -> BTreeMap<String, u64> {
        self.iter().map(|(label, n)| (label.to_owned(), n)).collect()
    }

    fn position(&self, label: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(label))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(counts: &[(&str, u64)]) -> Tally {
        let mut tally = Tally::default();
        for (label, n) in counts {
            tally.add(label, *n);
        }
        tally
    }

    #[test]
    fn counts_by_label_in_order() {
        let tally = tally(&[("no_store", 1), ("tools", 2), ("no_store", 3)]);
        assert_eq!(tally.iter().collect::<Vec<_>>(), [("no_store", 4), ("tools", 2)]);
        assert_eq!(tally.sum(), 6);
    }

    #[test]
    fn minus_leaves_out_what_did_not_grow() {
        let now = tally(&[("no_store", 4), ("tools", 2), ("too_long", 1)]);
        let earlier = tally(&[("no_store", 1), ("tools", 2)]);
        assert_eq!(now.minus(&earlier), tally(&[("no_store", 3), ("too_long", 1)]));
    }

    #[test]
    fn too_many_labels_count_as_other_and_nothing_is_lost() {
        let mut tally = Tally::default();
        for model in 0..1_000 {
            tally.add(&format!("model-{model}"), 1);
        }
        assert_eq!(tally.iter().count(), MAX_LABELS);
        assert_eq!(tally.sum(), 1_000);
        assert!(tally.iter().any(|(label, n)| label == OTHER && n > 900));
    }

    #[test]
    fn long_labels_are_cut_at_a_character() {
        let tally = tally(&[(&"模".repeat(1_000), 1)]);
        assert_eq!(tally.iter().next().map(|(label, _)| label.chars().count()), Some(42));
    }
}

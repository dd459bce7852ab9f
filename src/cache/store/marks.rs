//! Which marks of a journal still matter.
//!
//! Marks merge by maximum, field by field. That is commutative and idempotent, so instances
//! that publish at the same moment, in any order, come to the same journal.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Mark, Selector};

/// How long a mark without an epoch is kept. It only has to outlive the answers that were in
/// flight and the memory of instances that poll it, minutes both; an epoch is kept for ever.
const KEPT: Duration = Duration::from_hours(24);

/// One mark for each selector, with the latest time and the largest epoch seen for it.
pub(super) fn latest(marks: impl IntoIterator<Item = Mark>) -> Vec<Mark> {
    let mut latest: BTreeMap<String, Mark> = BTreeMap::new();
    for mark in marks {
        latest.entry(name(&mark.selector)).and_modify(|known| merge(known, &mark)).or_insert(mark);
    }
    latest.into_values().collect()
}

/// The journal after `mark` was added and what nobody needs any longer was dropped.
pub(super) fn with(marks: Vec<Mark>, mark: &Mark) -> Vec<Mark> {
    latest(marks.into_iter().filter(|old| !is_outdated(old, mark)).chain([mark.clone()]))
}

/// Whether `old` says nothing that `new` does not say, so that it may go.
pub(super) fn is_covered(old: &Mark, new: &Mark) -> bool {
    let same = old.selector == new.selector && old.at <= new.at && old.epoch <= new.epoch;
    same || is_outdated(old, new)
}

fn is_outdated(old: &Mark, new: &Mark) -> bool {
    old.epoch.is_none() && old.at < new.at.before(KEPT)
}

fn merge(known: &mut Mark, mark: &Mark) {
    known.at = known.at.max(mark.at);
    known.epoch = known.epoch.max(mark.epoch);
}

/// A selector as text, equal exactly when the selectors are.
fn name(selector: &Selector) -> String {
    serde_json::to_string(selector).expect("a selector is plain strings and numbers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    fn mark(namespace: &str, at: u64, epoch: Option<u64>) -> Mark {
        let selector = Selector { namespace: Some(namespace.into()), ..Selector::default() };
        Mark { selector, at: Timestamp(at), epoch }
    }

    #[test]
    fn the_order_of_publishing_does_not_matter() {
        let (older, newer) = (mark("a", 5, Some(1)), mark("a", 9, Some(2)));
        let other = mark("b", 1, Some(7));
        for order in [[&older, &newer, &other], [&newer, &other, &older], [&other, &newer, &older]] {
            let journal = order.into_iter().fold(Vec::new(), with);
            assert_eq!(journal, [newer.clone(), other.clone()]);
        }
    }

    #[test]
    fn each_field_keeps_its_maximum() {
        assert_eq!(latest([mark("a", 9, Some(1)), mark("a", 5, Some(2))]), [mark("a", 9, Some(2))]);
    }

    #[test]
    fn old_marks_go_but_epochs_stay() {
        let day = 24 * 3600 * 1000;
        let journal = vec![mark("tag-like", 0, None), mark("epoch", 0, Some(1)), mark("young", day, None)];
        let journal = with(journal, &mark("new", day + 1, None));
        assert_eq!(
            journal,
            [mark("epoch", 0, Some(1)), mark("new", day + 1, None), mark("young", day, None)]
        );
    }

    #[test]
    fn only_what_is_said_again_is_covered() {
        let new = mark("a", 9, Some(2));
        assert!(is_covered(&mark("a", 9, Some(2)), &new));
        assert!(!is_covered(&mark("a", 3, Some(3)), &new));
        assert!(!is_covered(&mark("b", 3, Some(1)), &new));
    }
}

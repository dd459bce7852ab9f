//! References to an earlier turn, in so many words.

use super::phrase::{Phrases, phrases};
use super::word::Text;

/// So much named before it, and what is meant may stand there.
const MUCH: usize = 4;

/// Whether there is one.
pub(super) fn is_made(text: &Text) -> bool {
    phrases(Phrases::Turn).iter().any(|turn| text.said.find(turn).is_some_and(|at| is_bare(text, at, turn)))
}

/// What can also mean a place or a number ("桌子上面的", "18岁以上") counts only where nothing is
/// named before.
fn is_bare(text: &Text, at: usize, turn: &str) -> bool {
    let named: usize = text.tokens.iter().take_while(|token| token.at < at).map(|token| token.names).sum();
    let explicit =
        turn.starts_with(['你', '您', '我']) || turn.contains(['刚', '文']) || turn.contains("问题");
    named == 0 || explicit && named < MUCH && !text.has_given()
}

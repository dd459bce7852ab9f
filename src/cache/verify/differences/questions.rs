//! When, where, who, how many: what is asked for.
//!
//! Only words that ask for things of different kinds count. "How", "what", "why" and questions
//! for yes or no pass into each other (how can I, can I, what can I do to) as often as not.

use super::Difference;
use super::align::Alignment;
use super::lexicon::Asks;
use super::rest::Rest;
use super::token::Token;

/// Whether the two ask for things of different kinds.
pub(super) fn difference(alignment: &Alignment<'_>) -> Option<Difference> {
    let (a, b) = (asked(alignment.a)?, asked(alignment.b)?);
    let differ = a != b && differ(a, b);
    (differ && Rest::beside(alignment, |_| false).is_near()).then_some(Difference::QuestionWord)
}

/// What a text asks for, where it asks for one thing.
fn asked(tokens: &[Token]) -> Option<Asks> {
    let all = tokens.iter().filter_map(|token| token.entry.asks);
    let whether = || tokens.iter().any(|token| token.entry.asks == Some(Asks::YesOrNo));
    let mut things = all.filter(|asks| *asks != Asks::YesOrNo);
    let first = things.next();
    if things.any(|asks| Some(asks) != first) {
        return None;
    }
    first.or_else(|| whether().then_some(Asks::YesOrNo))
}

fn differ(a: Asks, b: Asks) -> bool {
    use Asks::{HowBig, HowFar, HowLong, HowMany, HowMuch, HowOften, HowOld, When, Where, Who, Why};
    let sure = |asks| {
        matches!(
            asks,
            HowBig | HowFar | HowLong | HowMany | HowMuch | HowOften | HowOld | When | Where | Who | Why
        )
    };
    let whether = |asks| asks == Asks::YesOrNo;
    // How long until is when; how often is how many times.
    let near = |a, b| {
        matches!(
            (a, b),
            (HowLong | HowOften, When) | (HowMany, HowMuch | HowOften | HowLong | HowFar | HowOld | HowBig)
        ) || matches!((a, b), (HowLong, HowOften | HowBig) | (HowFar, HowBig | HowLong) | (Who, Where))
    };
    (sure(a) && sure(b) && !near(a, b) && !near(b, a))
        || matches!((a, b), (When | Why, other) | (other, When | Why) if whether(other))
}

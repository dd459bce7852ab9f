//! Numbers, side by side.
//!
//! Whether two texts hold the same numbers is told strictly elsewhere. Here is decided what a
//! mismatch means: a number in the place of another changes the answer wherever the rest is akin;
//! one that only one question has (a year, an age) is often mere detail, and counts only where
//! nothing else is told apart. The same numbers in another order are left to roles.

use super::Difference;
use super::align::Alignment;
use super::amounts;
use super::rest::Rest;
use super::token::Token;

/// Whether the numbers of two texts differ so that the answer does.
pub(super) fn difference(alignment: &Alignment<'_>) -> Option<Difference> {
    let alone = |tokens: &[Token], of: &[Option<usize>]| {
        tokens.iter().zip(of).any(|(token, partner)| partner.is_none() && token.number())
    };
    let rest = Rest::beside(alignment, Token::number);
    let differ = match (alone(alignment.a, &alignment.of_a), alone(alignment.b, &alignment.of_b)) {
        (true, true) => rest.is_akin() && !amounts::equal(alignment.a, alignment.b),
        (true, false) | (false, true) => rest.is_same(),
        (false, false) => false,
    };
    differ.then_some(Difference::Numbers)
}

//! Only, except: what narrows down what is asked about.

use super::Difference;
use super::align::Alignment;
use super::rest::Rest;
use super::token::Token;

/// How many tokens after such a word tell what it takes out.
const TOLD: usize = 3;

/// Whether one text narrows down what the other does not, and is else the same.
pub(super) fn difference(alignment: &Alignment<'_>) -> Option<Difference> {
    let (a, b) = (alignment.a, alignment.b);
    let narrows = narrowed(a, b).or_else(|| narrowed(b, a));
    narrows.filter(|told| Rest::beside_these(alignment, told).is_same()).map(|_| Difference::Quantifier)
}

/// What follows the first word that narrows down and has no like in the other text.
fn narrowed<'a>(tokens: &'a [Token], others: &[Token]) -> Option<Vec<&'a Token>> {
    let at = tokens.iter().position(|token| {
        let scope = token.entry.scope;
        scope.is_some() && others.iter().all(|other| other.entry.scope != scope)
    })?;
    Some(tokens[at + 1..].iter().take(TOLD).collect())
}

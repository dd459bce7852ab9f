//! Words that exclude each other: enable and disable, Monday and Tuesday, Java and Python.

use super::Difference;
use super::align::Alignment;
use super::amounts;
use super::read::Kind;
use super::rest::Rest;
use super::token::Token;
use super::word::bases;

/// A word in the place of one that it excludes, in texts that are near enough.
pub(super) fn difference(alignment: &Alignment<'_>) -> Option<Difference> {
    alignment.gaps.iter().find_map(|gap| {
        let (a, b) = alignment.alone(gap);
        a.iter().find_map(|a| b.iter().find_map(|b| exchanged(alignment, a, b)))
    })
}

fn exchanged(alignment: &Alignment<'_>, a: &Token, b: &Token) -> Option<Difference> {
    let (difference, opposites) = opposed(a, b)?;
    let other = match difference {
        // Told elsewhere, with all ways to write a number.
        Difference::Numbers => false,
        Difference::Units => !amounts::equal(alignment.a, alignment.b),
        // "Not open" and "closed" are one.
        _ => !(opposites && a.denied != b.denied),
    };
    if !other {
        return None;
    }
    let rest = Rest::beside_these(alignment, &[a, b]);
    let near = match difference {
        // Small words change with the wording around them.
        Difference::Quantifier => rest.is_same(),
        Difference::Direction | Difference::Name | Difference::Comparative => rest.is_close(),
        _ => rest.is_akin(),
    };
    near.then_some(difference)
}

/// What changes when one of two words stands for the other, and whether they are contraries, so
/// that a negation at one makes them the same.
pub(super) fn opposed(a: &Token, b: &Token) -> Option<(Difference, bool)> {
    if a.same(b) {
        return None;
    }
    for x in &a.entry.senses {
        for y in &b.entry.senses {
            if x.set == y.set && x.member != y.member {
                return Some((x.difference, x.opposites));
            }
        }
    }
    let turned = [a, b].iter().all(|token| token.kind != Kind::Literal)
        && (turns(&a.text, &b.text) || turns(&b.text, &a.text));
    turned.then_some((Difference::Antonym, true))
}

/// Beginnings that turn the sense of a word, or put it at another place.
const TURNS: &[&str] = &[
    "un", "in", "im", "il", "ir", "non", "dis", "mis", "de", "anti", "over", "under", "pre", "post", "sub",
    "micro", "macro", "hyper", "hypo", "inter", "intra",
];

/// Whether `long` is `short` with such a beginning.
fn turns(long: &str, short: &str) -> bool {
    const LEAST: usize = 4;
    if short.len() < LEAST || long.len() < LEAST + 2 || !long.is_ascii() {
        return false;
    }
    let mut stems =
        TURNS.iter().filter_map(|turn| long.strip_prefix(turn)).filter(|stem| stem.len() >= LEAST);
    stems.any(|stem| {
        let stems = bases(stem);
        bases(short).iter().any(|base| stems.contains(base))
    })
}

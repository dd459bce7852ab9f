//! Who does what to whom.
//!
//! "From savings to checking" has the same words reversed, and another answer. Two places where
//! the order tells: words around a link (to, from, than, 比), and two stretches that changed
//! places around a third. What "and", "or" or "versus" joins may change places.

use super::Difference;
use super::align::Alignment;
use super::read::Kind;
use super::rest::Rest;
use super::token::{Part, Token};

/// Whether the same words stand in other roles.
pub(super) fn difference(alignment: &Alignment<'_>) -> Option<Difference> {
    let (a, b) = (alignment.a, alignment.b);
    if a.iter().chain(b).any(|token| token.entry.symmetric && !is_conjunction(token)) {
        return None;
    }
    let reversed = (1..=TIED).any(|tied| is_link_reversed(alignment, tied));
    let reversed = reversed && Rest::beside(alignment, |_| false).is_close();
    (reversed || is_exchanged(a, b)).then_some(Difference::Roles)
}

/// These may join anything in a text, not only what changed places.
fn is_conjunction(token: &Token) -> bool {
    matches!(token.text.as_str(), "and" | "or" | "和" | "与" | "跟" | "及" | "或")
}

/// How many words to the left and to the right a link may tie.
const TIED: usize = 2;

/// Whether what stood left of a link stands right of it in the other text, and the reverse.
fn is_link_reversed(alignment: &Alignment<'_>, tied: usize) -> bool {
    let (a, b) = (alignment.a, alignment.b);
    let mut links = a.iter().enumerate().filter(|(_, token)| token.entry.link);
    links.any(|(x, link)| {
        let once = |tokens: &[Token]| tokens.iter().filter(|token| token.text == link.text).nth(1).is_none();
        let Some(y) = alignment.of_a[x].filter(|y| b[*y].text == link.text) else { return false };
        let meet = |ns: &[usize], ms: &[usize]| {
            ns.iter().any(|n| alignment.of_a[*n].is_some_and(|m| ms.contains(&m)))
        };
        let (left_a, right_a, left_b, right_b) =
            (left(a, x, tied), right(a, x, tied), left(b, y, tied), right(b, y, tied));
        meet(&left_a, &right_b)
            && meet(&right_a, &left_b)
            && !meet(&left_a, &left_b)
            && !meet(&right_a, &right_b)
            && once(a)
            && once(b)
    })
}

fn left(tokens: &[Token], at: usize, tied: usize) -> Vec<usize> {
    (0..at).rev().filter(|n| tokens[*n].content()).take(tied).collect()
}

fn right(tokens: &[Token], at: usize, tied: usize) -> Vec<usize> {
    (at + 1..tokens.len()).filter(|n| tokens[*n].content()).take(tied).collect()
}

/// The longest stretch that is searched for an exchange.
const LONGEST: usize = 40;

/// Whether the texts are the same but for two stretches that changed places around a third.
fn is_exchanged(a: &[Token], b: &[Token]) -> bool {
    let ordered = |tokens: &'_ [Token]| -> Vec<usize> {
        let counts = |token: &Token| {
            token.content() || token.part == Part::Denies || token.entry.link || token.entry.symmetric
        };
        (0..tokens.len()).filter(|n| counts(&tokens[*n])).collect()
    };
    let (all_a, all_b) = (ordered(a), ordered(b));
    let same = |x: &usize, y: &usize| a[*x].same(&b[*y]);
    let head = all_a.iter().zip(&all_b).take_while(|(x, y)| same(x, y)).count();
    let (a_rest, b_rest) = (&all_a[head..], &all_b[head..]);
    let tail = a_rest.iter().rev().zip(b_rest.iter().rev()).take_while(|(x, y)| same(x, y)).count();
    let (core_a, core_b) = (&a_rest[..a_rest.len() - tail], &b_rest[..b_rest.len() - tail]);
    let length = core_a.len();
    if core_b.len() != length || !(3..=LONGEST).contains(&length) {
        return false;
    }
    let equal = |xs: &[usize], ys: &[usize]| xs.iter().zip(ys).all(|(x, y)| same(x, y));
    // a is first, middle, last; b is last, middle, first.
    (1..length - 1).any(|first| {
        (1..length - first).any(|last| {
            let middle = &core_a[first..length - last];
            equal(&core_a[..first], &core_b[length - first..])
                && equal(&core_a[length - last..], &core_b[..last])
                && equal(middle, &core_b[last..length - first])
                && orders(a, &core_a[..first], middle, &core_a[length - last..])
        })
    })
}

/// Whether the order of two stretches around a third tells something.
fn orders(tokens: &[Token], first: &[usize], middle: &[usize], last: &[usize]) -> bool {
    let content = |ns: &[usize]| ns.iter().any(|n| tokens[*n].content());
    let joined = middle.iter().any(|n| tokens[*n].entry.symmetric);
    // Chinese puts the topic first; there only a word that gives a direction tells.
    let told = middle.iter().any(|n| tokens[*n].kind != Kind::Sign || tokens[*n].entry.link);
    content(first) && content(last) && !joined && told
}

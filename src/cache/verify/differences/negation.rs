//! What a negation turns round.
//!
//! That one text has a "not" more means nothing by itself: it may stand in what only that text
//! tells. So each negation is bound to the word that it denies, and counts where that word has a
//! partner that is not denied.

use super::Difference;
use super::align::Alignment;
use super::lexicon::{Asks, Denies};
use super::opposed::opposed;
use super::read::Kind;
use super::rest::Rest;
use super::token::{Part, Token};

/// How far a negation reaches, in tokens.
const REACH: usize = 5;

/// Marks what the negations of a text deny, and unmarks those that deny nothing.
pub(super) fn mark(tokens: &mut [Token]) {
    let asks = tokens.iter().any(|token| token.entry.asks.is_some_and(|asks| asks != Asks::YesOrNo));
    for at in 0..tokens.len() {
        let Some(denies) = tokens[at].entry.denies else { continue };
        let head = match denies {
            Denies::Last => at.checked_sub(1),
            _ if tokens[at].kind == Kind::Sign => denied_by_sign(tokens, at, asks),
            _ => denied_by_word(tokens, at),
        };
        if let Some(head) = head {
            tokens[head].denied ^= true;
        } else {
            tokens[at].part = Part::Light;
        }
    }
}

fn next_content(tokens: &[Token], at: usize) -> Option<usize> {
    (at + 1..tokens.len().min(at + REACH)).find(|next| tokens[*next].content())
}

/// Nothing is denied by "open or not", "not only"; and "Isn't it legal?" asks what "Is it
/// legal?" asks.
fn denied_by_word(tokens: &[Token], at: usize) -> Option<usize> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let before = at.checked_sub(1).map_or("", text);
    let opens = at == 1 && tokens[0].part == Part::Light && text(at) == "not";
    if opens || matches!(before, "or" | "if" | "whether") || matches!(text(at + 1), "only" | "just") {
        return None;
    }
    // "Does not work": a word that mostly says little, here says enough.
    next_content(tokens, at).or((at + 1 < tokens.len()).then_some(at + 1)).or(Some(at))
}

/// Nothing is denied by 好玩不好玩 and 好玩不, which ask whether; but where something else is asked
/// (怎么没有) the last 没有 denies what stands before.
fn denied_by_sign(tokens: &mut [Token], at: usize, asks: bool) -> Option<usize> {
    let before = at.checked_sub(1).map(|before| tokens[before].text.as_str());
    let again = tokens.get(at + 1).is_some_and(|next| before == Some(next.text.as_str()));
    if again {
        tokens[at + 1].part = Part::Light;
        return None;
    }
    let whether = !asks && matches!(tokens[at].text.as_str(), "不" | "没" | "没有");
    let from = at.saturating_sub(REACH);
    let last = || (from..at).rev().find(|last| tokens[*last].content()).filter(|_| !whether);
    next_content(tokens, at).or_else(last)
}

/// Whether one text denies what the other says.
pub(super) fn difference(alignment: &Alignment<'_>) -> Option<Difference> {
    let count = |tokens: &[Token]| tokens.iter().filter(|token| token.part == Part::Denies).count();
    // "Why doesn't Ann call" and "why Ann does not call": bound elsewhere, but as many.
    if count(alignment.a) % 2 == count(alignment.b) % 2
        || is_rhetorical(alignment.a)
        || is_rhetorical(alignment.b)
    {
        return None;
    }
    let softly = |token: &Token| token.part == Part::Denies && token.entry.denies == Some(Denies::Softly);
    let soft = alignment.a.iter().chain(alignment.b).any(softly);
    // What the other text tells beside it may well come to the same denial.
    let told = |rest: Rest| if count(alignment.a) > count(alignment.b) { rest.spare.1 } else { rest.spare.0 };
    let near = |rest: Rest| if soft { rest.is_same() } else { rest.is_near() && told(rest) == 0 };
    let denied = alignment.pairs().any(|(a, b)| a.denied != b.denied);
    let differ = denied && near(Rest::beside(alignment, |_| false)) || is_exchanged(alignment);
    differ.then_some(Difference::Negation)
}

/// 不可以退货吗 asks what 可以退货吗 asks.
fn is_rhetorical(tokens: &[Token]) -> bool {
    let mut asks = tokens.iter().filter_map(|token| token.entry.asks).peekable();
    let whether = asks.peek().is_some() && asks.all(|asks| asks == Asks::YesOrNo);
    let modal = |token: &Token| {
        matches!(token.text.as_str(), "不能" | "不可以" | "不会" | "不是" | "不用" | "不要" | "不支持")
    };
    whether && tokens.iter().any(|token| token.part == Part::Denies && modal(token))
}

/// Whether a word that is denied stands in the place of another that is not, and all else is the
/// same: "mostly happen" and "not occur".
fn is_exchanged(alignment: &Alignment<'_>) -> bool {
    alignment.gaps.iter().any(|gap| {
        let (a, b) = alignment.alone(gap);
        let (a, b) = (content(&a), content(&b));
        let ([a], [b]) = (a.as_slice(), b.as_slice()) else { return false };
        a.denied != b.denied && opposed(a, b).is_none() && Rest::beside_these(alignment, &[a, b]).is_same()
    })
}

fn content<'a>(tokens: &[&'a Token]) -> Vec<&'a Token> {
    tokens.iter().copied().filter(|token| token.content()).collect()
}

//! Two questions laid side by side.
//!
//! That one question says "open" and the other "close" means something only where one stands in
//! the place of the other. The heaviest common subsequence tells which words answer to each
//! other; between those lie gaps, and what stands in a gap on both sides is opposed.

use std::ops::Range;

use super::opposed::opposed;
use super::read::Kind;
use super::token::{Part, Token};
use super::word::is_slip;

/// The most tokens, without what both texts begin and end with, that are laid side by side.
const MOST: usize = 200;

/// Which tokens of two texts answer to each other.
pub(super) struct Alignment<'a> {
    pub(super) a: &'a [Token],
    pub(super) b: &'a [Token],
    /// For each token of `a`, the one of `b` that says the same, wherever it stands.
    pub(super) of_a: Vec<Option<usize>>,
    /// The same for those of `b`.
    pub(super) of_b: Vec<Option<usize>>,
    /// What stands between neighbours that both texts have in the same order.
    pub(super) gaps: Vec<Gap>,
}

/// What stands in either text at the same place.
#[derive(Clone, Debug)]
pub(super) struct Gap {
    a: Range<usize>,
    b: Range<usize>,
}

impl<'a> Alignment<'a> {
    /// `None` where the texts are too long to be laid side by side. At most quadratic in `MOST`,
    /// linear beyond.
    pub(super) fn try_new(a: &'a [Token], b: &'a [Token]) -> Option<Self> {
        let head = a.iter().zip(b).take_while(|(a, b)| a.same(b)).count();
        let (rest_a, rest_b) = (&a[head..], &b[head..]);
        let tail = rest_a.iter().rev().zip(rest_b.iter().rev()).take_while(|(a, b)| a.same(b)).count();
        let (core_a, core_b) = (&rest_a[..rest_a.len() - tail], &rest_b[..rest_b.len() - tail]);
        if core_a.len().max(core_b.len()) > MOST {
            return None;
        }
        let (mut of_a, mut of_b) = (vec![None; a.len()], vec![None; b.len()]);
        let core = common(core_a, core_b).into_iter().map(|(x, y)| (x + head, y + head));
        let tail = (1..=tail).rev().map(|n| (a.len() - n, b.len() - n));
        for (x, y) in (0..head).map(|n| (n, n)).chain(core).chain(tail) {
            (of_a[x], of_b[y]) = (Some(y), Some(x));
        }
        let mut alignment = Self { a, b, of_a, of_b, gaps: Vec::new() };
        alignment.gaps = alignment.gaps();
        alignment.pair_slips();
        alignment.pair_moved();
        Some(alignment)
    }

    fn gaps(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let (mut from_a, mut from_b) = (0, 0);
        let anchors = (0..self.a.len()).filter(|x| self.a[*x].content());
        let anchors = anchors.filter_map(|x| self.of_a[x].map(|y| (x, y)));
        for (x, y) in anchors.chain([(self.a.len(), self.b.len())]) {
            if x > from_a || y > from_b {
                gaps.push(Gap { a: from_a..x, b: from_b..y });
            }
            (from_a, from_b) = (x + 1, y + 1);
        }
        gaps
    }

    /// A misspelt word is what it stands for.
    fn pair_slips(&mut self) {
        for gap in &self.gaps {
            let free = |of: &[Option<usize>], range: &Range<usize>| -> Vec<usize> {
                range.clone().filter(|n| of[*n].is_none()).collect()
            };
            let mut free_b = free(&self.of_b, &gap.b);
            for x in free(&self.of_a, &gap.a) {
                if let Some(n) = free_b.iter().position(|y| is_misspelt(&self.a[x], &self.b[*y])) {
                    let y = free_b.remove(n);
                    (self.of_a[x], self.of_b[y]) = (Some(y), Some(x));
                }
            }
        }
    }

    /// A word that moved is no other word.
    fn pair_moved(&mut self) {
        let mut free: Vec<usize> = (0..self.b.len()).filter(|y| self.of_b[*y].is_none()).collect();
        for x in 0..self.a.len() {
            if self.of_a[x].is_none()
                && let Some(n) = free.iter().position(|y| self.a[x].same(&self.b[*y]))
            {
                let y = free.remove(n);
                (self.of_a[x], self.of_b[y]) = (Some(y), Some(x));
            }
        }
    }

    /// The tokens in a gap that have no partner, of either text.
    pub(super) fn alone(&self, gap: &Gap) -> (Vec<&'a Token>, Vec<&'a Token>) {
        let alone = |tokens: &'a [Token], of: &[Option<usize>], range: &Range<usize>| -> Vec<&'a Token> {
            range.clone().filter(|n| of[*n].is_none()).map(|n| &tokens[n]).collect()
        };
        (alone(self.a, &self.of_a, &gap.a), alone(self.b, &self.of_b, &gap.b))
    }

    /// The pairs of partners.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'a Token, &'a Token)> {
        let pairs = self.of_a.iter().enumerate();
        pairs.filter_map(|(x, partner)| partner.map(|y| (&self.a[x], &self.b[y])))
    }
}

fn is_misspelt(a: &Token, b: &Token) -> bool {
    let word = |token: &Token| token.kind != Kind::Literal && !token.number();
    word(a) && word(b) && is_slip(&a.text, &b.text) && opposed(a, b).is_none()
}

/// The heaviest common subsequence: what carries the matter weighs most.
fn common(a: &[Token], b: &[Token]) -> Vec<(usize, usize)> {
    let weight = |x: usize, y: usize| match a[x].same(&b[y]) {
        true if a[x].content() => 8,
        true if a[x].part == Part::Light => 1,
        true => 3,
        false => 0_u32,
    };
    let width = b.len() + 1;
    let mut best = vec![0; (a.len() + 1) * width];
    for x in (0..a.len()).rev() {
        for y in (0..b.len()).rev() {
            let skip = best[(x + 1) * width + y].max(best[x * width + y + 1]);
            best[x * width + y] = match weight(x, y) {
                0 => skip,
                weight => skip.max(weight + best[(x + 1) * width + y + 1]),
            };
        }
    }
    let (mut x, mut y, mut pairs) = (0, 0, Vec::new());
    while x < a.len() && y < b.len() {
        let here = best[x * width + y];
        if here == best[(x + 1) * width + y] {
            x += 1;
        } else if here == best[x * width + y + 1] {
            y += 1;
        } else {
            pairs.push((x, y));
            (x, y) = (x + 1, y + 1);
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::super::token::tokens;
    use super::*;

    /// Words of the first text, each with its partner in the second.
    fn partners(a: &str, b: &str) -> String {
        let (a, b) = (tokens(a), tokens(b));
        let alignment = Alignment::try_new(&a, &b).unwrap();
        let partner = |y: Option<usize>| y.map_or("-", |y| b[y].text.as_str());
        let pairs = a.iter().zip(&alignment.of_a).map(|(token, y)| format!("{}={}", token.text, partner(*y)));
        pairs.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_says_the_same_is_paired() {
        for (a, b, expected) in [
            ("lock doors", "lock the door", "lock=lock doors=door"),
            ("lock the door", "unlock the door", "lock=- the=the door=door"),
            ("reset pasword", "reset password", "reset=reset pasword=password"),
            ("rust in Peru", "in Peru rust", "rust=rust in=in peru=peru"),
            ("enable wifi", "turn on wifi", "enable=turn on wifi=wifi"),
            ("打开灯", "开启灯", "打开=开启 灯=灯"),
            ("pay 100000", "pay 100001", "pay=pay 100000=-"),
        ] {
            assert_eq!(partners(a, b), expected);
        }
    }

    #[test]
    fn what_both_begin_and_end_with_does_not_count_against_the_length() {
        let text = |middle: &str| tokens(&format!("{} {middle} {0}", "word ".repeat(500)));
        assert!(Alignment::try_new(&text("one"), &text("other")).is_some());
        let (a, b) = (tokens(&"apple ".repeat(201)), tokens(&"pear ".repeat(201)));
        assert!(Alignment::try_new(&a, &b).is_none());
    }
}

//! How near is what is left, a difference set aside?
//!
//! The farther apart two texts are, the more words in them exclude each other by chance, and the
//! less it means. How much each kind of difference bears was chosen by counts over 90,000 pairs
//! that people judged: a number in the place of another bears most, a word like "only" least.

use super::align::Alignment;
use super::token::Token;

/// What two questions have in common, and what not, beside a difference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// How many words that carry the matter have a partner.
    pub(super) shared: usize,
    /// How many of each question have none.
    pub(super) spare: (usize, usize),
}

impl Rest {
    /// Beside the tokens of each side that `aside` holds for.
    pub(super) fn beside(alignment: &Alignment<'_>, aside: impl Fn(&Token) -> bool) -> Self {
        let spare = |tokens: &[Token], of: &[Option<usize>]| {
            let alone = tokens.iter().zip(of).filter(|(token, partner)| partner.is_none() && token.content());
            alone.filter(|(token, _)| !aside(token)).count()
        };
        let shared =
            alignment.a.iter().zip(&alignment.of_a).filter(|(token, of)| token.content() && of.is_some());
        Self {
            shared: shared.count(),
            spare: (spare(alignment.a, &alignment.of_a), spare(alignment.b, &alignment.of_b)),
        }
    }

    /// Beside these tokens.
    pub(super) fn beside_these(alignment: &Alignment<'_>, these: &[&Token]) -> Self {
        Self::beside(alignment, |token| these.iter().any(|this| std::ptr::eq(*this, token)))
    }

    /// Nothing is left over.
    pub(super) fn is_same(self) -> bool {
        self.spare == (0, 0)
    }

    /// One question has little more to say than the other, which has nothing more.
    pub(super) fn is_near(self) -> bool {
        self.least() == 0 && self.sum() * 2 <= 2 + self.shared
    }

    /// As near, but for a word that may be reworded.
    pub(super) fn is_close(self) -> bool {
        self.least() <= 1 && self.sum() * 2 <= 2 + self.shared
    }

    /// One asks for what the other asks for, and for as much again.
    pub(super) fn is_akin(self) -> bool {
        self.least() <= 1 && self.sum() <= 1 + self.shared
    }

    fn least(self) -> usize {
        self.spare.0.min(self.spare.1)
    }

    fn sum(self) -> usize {
        self.spare.0 + self.spare.1
    }
}

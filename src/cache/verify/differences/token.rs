//! A question as a row of words and phrases, with what is known of each.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use super::Difference;
use super::lexicon::{Asks, CHINESE, ELSEWHERE, ENGLISH, Entry};
use super::negation;
use super::read::{Kind, Word, words};
use super::word::{Forms, bases};
use crate::cache::embedder::coverage::Language;

/// A word, or a phrase that counts as one.
#[derive(Debug)]
pub(super) struct Token {
    /// As written, in small letters except in literals.
    pub(super) text: String,
    pub(super) kind: Kind,
    pub(super) entry: &'static Entry,
    pub(super) part: Part,
    /// A negation turns it round.
    pub(super) denied: bool,
    /// Marked like a name.
    pub(super) name: bool,
    /// A sentence begins with it.
    pub(super) begins: bool,
    /// Two tokens that have a key in common say the same.
    keys: Vec<u64>,
}

/// What a token does in its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It carries the matter asked about.
    Content,
    /// The answer does not hang on it.
    Light,
    /// It denies something.
    Denies,
    /// It asks, ties or limits.
    Frame,
}

impl Part {
    fn of(entry: &Entry) -> Self {
        if entry.denies.is_some() {
            Self::Denies
        } else if entry.light {
            Self::Light
        } else if entry.asks.is_some() || entry.link || entry.scope.is_some() {
            Self::Frame
        } else {
            Self::Content
        }
    }
}

impl Token {
    /// Whether it carries the matter asked about.
    pub(super) fn content(&self) -> bool {
        self.part == Part::Content
    }

    /// Whether it says the same as the other.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.keys.iter().any(|key| other.keys.contains(key))
    }

    /// Whether it is a number, or a mark at one.
    pub(super) fn number(&self) -> bool {
        let numeral = |c: char| c.is_numeric() || "零〇二两三四五六七八九十百千万亿".contains(c);
        let mark = |c: char| !c.is_alphanumeric() && !CURRENCIES.contains(&c);
        let listed = || self.entry.senses.iter().any(|sense| sense.difference == Difference::Numbers);
        let marks = || self.kind == Kind::Plain && self.text.chars().all(mark);
        self.part != Part::Light && (self.text.chars().any(numeral) || listed() || marks())
    }
}

/// These tell what a number counts; their absence tells little.
const CURRENCIES: [char; 6] = ['$', '€', '£', '¥', '₹', '₽'];

static UNKNOWN: LazyLock<Entry> = LazyLock::new(Entry::default);

/// No phrase has more words than this, none in Chinese more signs.
const LONGEST: usize = 8;

/// The tokens of a text, in order.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let words = words(text);
    // Latin words within Chinese are mostly English.
    let english =
        Language::of(text) == Some(Language::English) || words.iter().any(|word| word.kind == Kind::Sign);
    let kana = text.chars().any(|c| matches!(c, '\u{3041}'..='\u{30ff}'));
    let forms: Vec<Forms> = words
        .iter()
        .map(|word| match word.kind {
            Kind::Plain if english => bases(&word.text),
            _ => vec![word.text.clone()],
        })
        .collect();
    let mut tokens = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        let kind = words[at].kind;
        let end = at + words[at..].iter().take(LONGEST).take_while(|word| word.kind == kind).count();
        let lexicon = match kind {
            Kind::Plain if english => Some(&ENGLISH),
            Kind::Plain => Some(&ELSEWHERE),
            Kind::Sign if !kana => Some(&CHINESE),
            Kind::Sign | Kind::Literal => None,
        };
        let found = lexicon.and_then(|lexicon| lexicon.longest(&forms[at..end]));
        let (entry, length) = found.unwrap_or((&UNKNOWN, 1));
        tokens.push(token(&words[at..at + length], &forms[at..at + length], entry));
        at += length;
    }
    negation::mark(&mut tokens);
    tokens
}

fn token(words: &[Word], forms: &[Forms], entry: &'static Entry) -> Token {
    let first = &words[0];
    let space = if first.kind == Kind::Sign { "" } else { " " };
    let text = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(space);
    let mut keys: Vec<u64> = match forms {
        [_] if first.kind == Kind::Literal => vec![key(&text), key(text.trim_start_matches(['-', '.', '/']))],
        [forms] => forms.iter().map(key).collect(),
        _ => vec![key(&text)],
    };
    keys.extend(entry.senses.iter().map(|sense| key((sense.set, sense.member))));
    keys.extend(entry.asks.filter(|asks| *asks != Asks::YesOrNo).map(key));
    if entry.denies.is_some() {
        keys.push(key("denies"));
    }
    Token {
        text,
        kind: first.kind,
        entry,
        part: Part::of(entry),
        denied: false,
        name: words.iter().any(|word| word.name),
        begins: first.begins,
        keys,
    }
}

fn key(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

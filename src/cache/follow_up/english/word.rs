//! Words: what stands in a text, and what the lists say of it.
//!
//! There is no tagger here, and none is needed: `words.txt` lists the words that by themselves
//! name nothing (function words, the verbs of commands, "example", "better"). Any other word
//! names something, or is a verb where its neighbours say so.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::super::list::sections;

/// Sections, each a line `# name` and words between spaces.
const WORDS: &str = include_str!("words.txt");

/// What a listed word can be; a word may be several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Be,
    Aux,
    Wh,
    Preposition,
    Determiner,
    Conjunction,
    /// I, you, we.
    Subject,
    /// The pronouns that need an antecedent, and their like.
    Third,
    /// Words for people, whom he, she and they can mean.
    Person,
    /// Verbs that tell the other side what to do with a text.
    Command,
    Verb,
    /// Nouns that mean parts of an answer, or of anything.
    Noun,
    Language,
    Adjective,
    Adverb,
    Ordinal,
    Number,
    /// Words that answer, greet or thank.
    Reply,
}

impl Class {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "be" => Self::Be,
            "aux" => Self::Aux,
            "wh" => Self::Wh,
            "preposition" => Self::Preposition,
            "determiner" => Self::Determiner,
            "conjunction" => Self::Conjunction,
            "subject" => Self::Subject,
            "third" => Self::Third,
            "person" => Self::Person,
            "command" => Self::Command,
            "verb" => Self::Verb,
            "noun" => Self::Noun,
            "language" => Self::Language,
            "adjective" => Self::Adjective,
            "adverb" => Self::Adverb,
            "ordinal" => Self::Ordinal,
            "number" => Self::Number,
            "reply" => Self::Reply,
            _ => return None,
        })
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

static LISTED: LazyLock<HashMap<&str, u32>> = LazyLock::new(|| {
    let mut listed = HashMap::new();
    for (class, lines) in sections(WORDS) {
        let bit = Class::named(class).map_or(0, Class::bit);
        for word in lines.iter().flat_map(|line| line.split(' ')) {
            *listed.entry(word).or_insert(0) |= bit;
        }
    }
    listed
});

/// What stands between a word and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Break {
    None,
    /// Anything that ends a clause.
    Comma,
    Colon,
    Sentence,
    Line,
}

/// A word in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    /// In lower case, contractions spelt out.
    pub(super) text: &'a str,
    pub(super) before: Break,
    pub(super) quoted: bool,
    class: u32,
}

impl Word<'_> {
    pub(super) fn is(&self, classes: &[Class]) -> bool {
        classes.iter().any(|class| self.class & class.bit() != 0)
    }

    pub(super) fn is_listed(&self) -> bool {
        self.class != 0
    }
}

/// The words of a text in lower case.
pub(super) fn split(lower: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let (mut before, mut quoted) = (Break::Sentence, false);
    let mut rest = lower;
    while let Some(c) = rest.chars().next() {
        if c.is_alphanumeric() {
            let length = length(rest);
            for text in spelt_out(&rest[..length]).into_iter().flatten() {
                words.push(Word { text, before, quoted, class: class(text) });
                before = Break::None;
            }
            rest = &rest[length..];
            continue;
        }
        let after = &rest[c.len_utf8()..];
        let ends = after.chars().next().is_none_or(char::is_whitespace);
        before = before.max(match c {
            '\n' => Break::Line,
            '.' | '!' | '?' | '…' | '。' if ends => Break::Sentence,
            '?' | '!' | ';' | ',' | '(' | ')' | '—' | '–' | '，' | '；' | '？' | '！' => Break::Comma,
            '-' if ends => Break::Comma,
            ':' if ends => Break::Colon,
            _ => Break::None,
        });
        // Doubled marks are one mark.
        let is_quote = matches!(c, '"' | '“' | '”' | '`');
        quoted ^= is_quote && !after.starts_with(c);
        rest = after;
    }
    words
}

/// How long the word at the beginning is, in bytes. Marks inside of it belong to it.
fn length(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let joins = matches!(c, '\'' | '-' | '_' | '.' | '@')
            && chars.peek().is_some_and(|(_, next)| next.is_alphanumeric());
        if !(c.is_alphanumeric() || joins || matches!(c, '+' | '#')) {
            return at;
        }
    }
    text.len()
}

/// A contraction as the words it stands for.
fn spelt_out(word: &str) -> [Option<&str>; 2] {
    let both = |a, b| [Some(a), Some(b)];
    match word {
        "can't" | "cant" => return both("can", "not"),
        "won't" | "wont" => return both("will", "not"),
        "dont" => return both("do", "not"),
        "doesnt" => return both("does", "not"),
        "didnt" => return both("did", "not"),
        "isnt" => return both("is", "not"),
        "whats" => return both("what", "is"),
        "hows" => return both("how", "is"),
        "whos" => return both("who", "is"),
        "wheres" => return both("where", "is"),
        "thats" => return both("that", "is"),
        "theres" => return both("there", "is"),
        "im" => return both("i", "am"),
        "theyre" => return both("they", "are"),
        "youre" => return both("you", "are"),
        _ => {}
    }
    let Some((stem, ending)) = word.rsplit_once('\'') else { return [Some(word), None] };
    match ending {
        "t" if stem.len() > 1 && stem.ends_with('n') => both(&stem[..stem.len() - 1], "not"),
        "s" if class(stem) & PRONOUNS != 0 && stem != "one" || stem == "let" => both(stem, "is"),
        "s" => [Some(stem), None],
        "re" => both(stem, "are"),
        "ll" => both(stem, "will"),
        "ve" => both(stem, "have"),
        "d" => both(stem, "would"),
        "m" => both(stem, "am"),
        _ => [Some(word), None],
    }
}

const PRONOUNS: u32 = Class::Wh.bit() | Class::Third.bit() | Class::Subject.bit();

/// Short numbers count things; long ones are years, sizes, codes, and name something.
fn class(word: &str) -> u32 {
    let number = word.len() < 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    LISTED.get(word).copied().unwrap_or(0) | if number { Class::Number.bit() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::Break::{Colon, Comma, Line, None, Sentence};
    use super::*;

    fn read(text: &str) -> Vec<&str> {
        split(text).iter().map(|word| word.text).collect()
    }

    #[test]
    fn contractions_are_spelt_out_and_possessives_dropped() {
        assert_eq!(
            read("it's what's-his-name's, isn't it?"),
            ["it", "is", "what's-his-name", "is", "not", "it"]
        );
        assert_eq!(read("we can't; they'll"), ["we", "can", "not", "they", "will"]);
        assert_eq!(read("c++ v2.1 foo_bar a.b@c.d"), ["c++", "v2.1", "foo_bar", "a.b@c.d"]);
    }

    #[test]
    fn breaks_and_quotes() {
        let words = split("so: a, b.\nsay \"\"c d\"\" at 10:30");
        let breaks: Vec<_> = words.iter().map(|word| word.before).collect();
        assert_eq!(breaks, [Sentence, Colon, Comma, Line, None, None, None, None, None]);
        let quoted: Vec<_> = words.iter().filter(|word| word.quoted).map(|word| word.text).collect();
        assert_eq!(quoted, ["c", "d"]);
    }

    #[test]
    fn every_section_has_a_class_and_every_word_is_in_lower_case() {
        for (section, lines) in sections(WORDS) {
            assert!(Class::named(section).is_some(), "{section}");
            for word in lines.iter().flat_map(|line| line.split(' ')) {
                assert!(!word.is_empty() && word == word.to_lowercase(), "{section}: {word:?}");
            }
        }
    }
}

//! What the words of a question do in it, and which exclude each other.
//!
//! The lists are data: `english.txt`, `chinese.txt` and `names.txt` hold sets of words that
//! exclude each other, the grammars what words do. A phrase (turn on, 什么时候) counts as a word.
//! A line that is set in goes on with the one before.

mod lists;

use std::collections::HashMap;
use std::sync::LazyLock;

use self::lists::lines;
use super::Difference;
use super::word::Forms;

/// A member of a set of things that exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sense {
    /// The set.
    pub(super) set: usize,
    /// Which of its things; other words for the same thing have the same number.
    pub(super) member: usize,
    /// What it changes when one stands for another.
    pub(super) difference: Difference,
    /// Whether the set is a pair of opposites, so that "not" makes one the other.
    pub(super) opposites: bool,
}

/// What a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Asks {
    HowMany,
    HowMuch,
    HowLong,
    HowOften,
    HowFar,
    HowOld,
    HowBig,
    Why,
    Who,
    When,
    Where,
    How,
    What,
    YesOrNo,
}

/// How a word denies, and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denies {
    /// What follows: not, 不.
    Next,
    /// What stands before: 用不了.
    Last,
    /// What follows, by a deed that might as well be told in other words: avoid, stop.
    Softly,
}

/// What is known of a word or phrase.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// The answer does not hang on it.
    pub(super) light: bool,
    pub(super) denies: Option<Denies>,
    /// It ties what stands before it to what stands after it, in this order.
    pub(super) link: bool,
    /// What it ties may change places.
    pub(super) symmetric: bool,
    /// It limits what is asked about; words of one line do so alike.
    pub(super) scope: Option<usize>,
    pub(super) asks: Option<Asks>,
    pub(super) senses: Vec<Sense>,
}

/// Words and phrases of a language. The words of a phrase are parted by spaces, signs by nothing.
#[derive(Debug)]
pub(super) struct Lexicon {
    entries: HashMap<String, Entry>,
    /// How many words the longest phrase has that begins with this one.
    longest: HashMap<String, usize>,
    signs: bool,
}

const NAMES: &str = include_str!("lexicon/names.txt");

/// English words, and names.
pub(super) static ENGLISH: LazyLock<Lexicon> = LazyLock::new(|| {
    let grammar = include_str!("lexicon/grammar.txt");
    Lexicon::read(&[grammar, include_str!("lexicon/english.txt"), NAMES], false)
});

/// Names that are the same in many languages.
pub(super) static ELSEWHERE: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::read(&[NAMES], false));

/// Chinese words.
pub(super) static CHINESE: LazyLock<Lexicon> = LazyLock::new(|| {
    let grammar = include_str!("lexicon/chinese_grammar.txt");
    Lexicon::read(&[grammar, include_str!("lexicon/chinese.txt")], true)
});

impl Lexicon {
    fn read(lists: &[&str], signs: bool) -> Self {
        let mut lexicon = Self { entries: HashMap::new(), longest: HashMap::new(), signs };
        for (set, (section, line)) in lists.iter().flat_map(|list| lines(list)).enumerate() {
            let members: Vec<&str> = line.split(", ").collect();
            for (member, words) in members.iter().enumerate() {
                for word in words.split('|') {
                    section.note(lexicon.entry(word), set, member, members.len());
                }
            }
        }
        lexicon
    }

    fn entry(&mut self, phrase: &str) -> &mut Entry {
        let words: Vec<String> = if self.signs {
            phrase.chars().map(String::from).collect()
        } else {
            phrase.split(' ').map(String::from).collect()
        };
        if let Some(first) = words.first() {
            let longest = self.longest.entry(first.clone()).or_default();
            *longest = words.len().max(*longest);
        }
        self.entries.entry(phrase.to_owned()).or_default()
    }

    /// What is known of the longest phrase or word that `words` begin with, and of how many
    /// words it is. The first or the last word of a phrase may be inflected: each word comes
    /// with the forms that it may be one of, itself first.
    pub(super) fn longest(&self, words: &[Forms]) -> Option<(&Entry, usize)> {
        let firsts = words.first()?;
        let most = *firsts.iter().filter_map(|first| self.longest.get(first)).max()?;
        (1..=most.min(words.len())).rev().find_map(|length| {
            let entry = match length {
                1 => firsts.iter().find_map(|word| self.entries.get(word)),
                _ => self.phrase(&words[..length]),
            };
            entry.map(|entry| (entry, length))
        })
    }

    fn phrase(&self, words: &[Forms]) -> Option<&Entry> {
        let (space, texts) = (if self.signs { "" } else { " " }, words.iter().map(|forms| forms[0].as_str()));
        let mut phrase = texts.collect::<Vec<_>>().join(space);
        if let Some(entry) = self.entries.get(&phrase) {
            return Some(entry);
        }
        let (first, last) = (words.first()?, words.last()?);
        let rest = phrase.split_off(first[0].len());
        let found = first[1..].iter().find_map(|first| self.entries.get(&format!("{first}{rest}")));
        phrase.push_str(rest.strip_suffix(last[0].as_str())?);
        found.or_else(|| last[1..].iter().find_map(|last| self.entries.get(&format!("{phrase}{last}"))))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::lists::Section;
    use super::*;
    use crate::cache::verify::differences::word::bases;

    const LISTS: [&str; 5] = [
        include_str!("lexicon/grammar.txt"),
        include_str!("lexicon/english.txt"),
        NAMES,
        include_str!("lexicon/chinese_grammar.txt"),
        include_str!("lexicon/chinese.txt"),
    ];

    fn known(lexicon: &Lexicon, phrase: &str) -> usize {
        let words: Vec<Forms> = if lexicon.signs {
            phrase.chars().map(|c| vec![c.to_string()]).collect()
        } else {
            phrase.split(' ').map(bases).collect()
        };
        lexicon.longest(&words).map_or(0, |(_, length)| length)
    }

    #[test]
    fn every_section_has_a_known_name() {
        for name in LISTS.iter().flat_map(|list| list.lines()).filter_map(|line| line.strip_prefix('[')) {
            assert!(Section::named(name.trim_end_matches(']')).is_some(), "{name}");
        }
    }

    #[test]
    fn no_set_holds_a_word_twice() {
        for (section, line) in LISTS.iter().flat_map(|list| lines(list)) {
            let mut words = HashSet::new();
            let twice: Vec<&str> = line.split([',', '|']).filter(|word| !words.insert(word.trim())).collect();
            assert!(twice.is_empty() || !matches!(section, Section::Sets(_)), "{twice:?} in {line}");
        }
    }

    /// Between comments and headings, so that a newcomer finds a word and sees what is missing.
    #[test]
    fn sets_are_sorted() {
        for list in [LISTS[1], LISTS[2], LISTS[4]] {
            let whole = list.replace(",\n  ", ", ");
            let lines: Vec<&str> = whole.lines().collect();
            let set = |line: &str| !line.starts_with(['[', '#']) && !line.is_empty();
            for pair in lines.windows(2).filter(|pair| set(pair[0]) && set(pair[1])) {
                assert!(pair[0] < pair[1], "{pair:?}");
            }
        }
    }

    #[test]
    fn every_phrase_is_found_whole() {
        for (lexicon, lists) in [(&ENGLISH, &LISTS[..3]), (&CHINESE, &LISTS[3..]), (&ELSEWHERE, &LISTS[2..3])]
        {
            for (_, line) in lists.iter().flat_map(|list| lines(list)) {
                for phrase in line.split([',', '|']).map(str::trim) {
                    let length =
                        if lexicon.signs { phrase.chars().count() } else { phrase.split(' ').count() };
                    assert_eq!(known(lexicon, phrase), length, "{phrase}");
                    assert_eq!(phrase, phrase.to_lowercase());
                }
            }
        }
    }

    #[test]
    fn inflected_phrases_are_found() {
        for (phrase, length) in [("turned on", 2), ("credit cards", 2), ("logging in", 2), ("disabling", 1)] {
            assert_eq!(known(&ENGLISH, phrase), length, "{phrase}");
        }
    }
}

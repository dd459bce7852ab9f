//! Phrases that the rules look for.

use std::sync::LazyLock;

use super::super::list::sections;

/// Sections, each a line `# name` and phrases between spaces.
const PHRASES: &str = include_str!("phrases.txt");

/// What a phrase tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phrases {
    /// Of listed words only, and complete nevertheless: greetings, questions about the other side.
    Complete,
    /// The beginning of a turn that goes on with the last one.
    Opening,
    /// The same, where it asks.
    OpeningQuestion,
    /// The beginning of an edit.
    Edit,
    /// The end of an edit that begins with 用.
    EditWith,
    /// "A little more".
    More,
    /// The answer was not understood.
    Lost,
    /// The same, although it says "you".
    SaidToYou,
    /// An earlier turn.
    Turn,
    /// What a pronoun may stand before and still mean a part of an answer.
    Part,
    /// What may follow a pronoun and never a word for "this" before a name.
    Predicate,
    /// What makes a name before 呢 a sentence.
    Verb,
}

const ALL: [(&str, Phrases); 12] = [
    ("complete", Phrases::Complete),
    ("opening", Phrases::Opening),
    ("opening question", Phrases::OpeningQuestion),
    ("edit", Phrases::Edit),
    ("edit with", Phrases::EditWith),
    ("more", Phrases::More),
    ("lost", Phrases::Lost),
    ("said to you", Phrases::SaidToYou),
    ("turn", Phrases::Turn),
    ("part", Phrases::Part),
    ("predicate", Phrases::Predicate),
    ("verb", Phrases::Verb),
];

static LISTS: LazyLock<[Vec<&str>; ALL.len()]> = LazyLock::new(|| {
    let sections = sections(PHRASES);
    ALL.map(|(name, _)| {
        let lines = sections.iter().filter(|(section, _)| *section == name).flat_map(|(_, lines)| lines);
        lines.flat_map(|line| line.split(' ')).collect()
    })
});

/// The phrases that tell this.
pub(super) fn phrases(which: Phrases) -> &'static [&'static str] {
    &LISTS[which as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_is_known_and_none_is_empty() {
        for (at, (name, which)) in ALL.into_iter().enumerate() {
            assert_eq!(which as usize, at, "{name}");
            assert!(!phrases(which).is_empty(), "{name}");
        }
        for (section, _) in sections(PHRASES) {
            assert!(ALL.iter().any(|(name, _)| *name == section), "{section}");
        }
    }

    #[test]
    fn every_phrase_is_written_as_texts_are_read() {
        for phrase in ALL.into_iter().flat_map(|(_, which)| phrases(which)) {
            assert_eq!(super::super::Text::read(phrase).said, *phrase);
        }
    }
}

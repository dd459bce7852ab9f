//! The form of the lists: sections, lines, members parted by commas, words by bars.

use super::{Asks, Denies, Entry, Sense};
use crate::cache::verify::differences::Difference;

/// The lines of a list, each whole and with its section. Lines before any section and of sections
/// without a name do nothing.
pub(super) fn lines(list: &str) -> Vec<(Section, String)> {
    let whole = list.replace(",\n  ", ", ");
    let mut section = Section::Neutral;
    let mut lines = Vec::new();
    for line in whole.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        match line.strip_prefix('[') {
            Some(name) => section = Section::named(name.trim_end_matches(']')).unwrap_or(Section::Neutral),
            None => lines.push((section, line.to_owned())),
        }
    }
    lines
}

/// What the words of a section of a list are or do.
#[derive(Clone, Copy)]
pub(super) enum Section {
    Neutral,
    Light,
    Denies(Denies),
    Link,
    Symmetric,
    Scope,
    Asks(Asks),
    Sets(Difference),
}

impl Section {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "neutral" => Self::Neutral,
            "light" => Self::Light,
            "negation" => Self::Denies(Denies::Next),
            "negation of what precedes" => Self::Denies(Denies::Last),
            "soft negation" => Self::Denies(Denies::Softly),
            "link" => Self::Link,
            "symmetric" => Self::Symmetric,
            "scope" => Self::Scope,
            "how many" => Self::Asks(Asks::HowMany),
            "how much" => Self::Asks(Asks::HowMuch),
            "how long" => Self::Asks(Asks::HowLong),
            "how often" => Self::Asks(Asks::HowOften),
            "how far" => Self::Asks(Asks::HowFar),
            "how old" => Self::Asks(Asks::HowOld),
            "how big" => Self::Asks(Asks::HowBig),
            "why" => Self::Asks(Asks::Why),
            "who" => Self::Asks(Asks::Who),
            "when" => Self::Asks(Asks::When),
            "where" => Self::Asks(Asks::Where),
            "how" => Self::Asks(Asks::How),
            "what" => Self::Asks(Asks::What),
            "yes or no" => Self::Asks(Asks::YesOrNo),
            "numbers" => Self::Sets(Difference::Numbers),
            "units" => Self::Sets(Difference::Units),
            "currencies" => Self::Sets(Difference::Currencies),
            "dates" => Self::Sets(Difference::Dates),
            "antonyms" => Self::Sets(Difference::Antonym),
            "directions" => Self::Sets(Difference::Direction),
            "comparatives" => Self::Sets(Difference::Comparative),
            "quantifiers" => Self::Sets(Difference::Quantifier),
            "names" => Self::Sets(Difference::Name),
            "things" => Self::Sets(Difference::Thing),
            _ => return None,
        })
    }

    /// Writes down what the section says of a word: in which set, as which of how many members.
    pub(super) fn note(self, entry: &mut Entry, set: usize, member: usize, members: usize) {
        match self {
            Self::Neutral => {}
            Self::Light => entry.light = true,
            Self::Denies(denies) => entry.denies = Some(denies),
            Self::Link => entry.link = true,
            Self::Symmetric => entry.symmetric = true,
            Self::Scope => entry.scope = Some(set),
            Self::Asks(asks) => entry.asks = Some(asks),
            Self::Sets(difference) => {
                let graded = matches!(
                    difference,
                    Difference::Antonym | Difference::Direction | Difference::Comparative
                );
                entry.senses.push(Sense { set, member, difference, opposites: graded && members == 2 });
            }
        }
    }
}

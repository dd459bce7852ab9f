//! Names that no list holds, told by how they are written.
//!
//! A capital letter where no sentence begins, or within a word, marks a name, unless the whole
//! text is written so. A name in the place of another is another matter, unless one is the short
//! form, the initials, a misspelling or another ending of the other.

use super::Difference;
use super::align::Alignment;
use super::read::Kind;
use super::rest::Rest;
use super::token::{Part, Token};
use super::word::is_slip;

/// Names in the place of others, in texts that are near enough.
pub(super) fn difference(alignment: &Alignment<'_>) -> Option<Difference> {
    if is_title(alignment.a) || is_title(alignment.b) {
        return None;
    }
    let one_is_the_country = |gap| {
        let (a, b) = alignment.alone(gap);
        is_country_and_pronoun(&a, &b) || is_country_and_pronoun(&b, &a)
    };
    if alignment.pairs().any(|(a, b)| is_name_and_word(a, b)) || alignment.gaps.iter().any(one_is_the_country)
    {
        return Some(Difference::Name);
    }
    let exchanged = alignment.gaps.iter().any(|gap| {
        let (a, b) = alignment.alone(gap);
        let (a, b) = (names(&a), names(&b));
        let both: Vec<&Token> = a.iter().chain(&b).copied().collect();
        !a.is_empty() && !b.is_empty() && !are_akin(&a, &b) && Rest::beside_these(alignment, &both).is_near()
    });
    exchanged.then_some(Difference::Name)
}

/// Words that in capital letters are names: the US, the WHO, the IT department.
const WORDS_AND_NAMES: [&str; 3] = ["aids", "it", "who"];

/// "US" is read as the country from the first.
fn is_country_and_pronoun(a: &[&Token], b: &[&Token]) -> bool {
    a.iter().any(|token| token.text == "usa") && b.iter().any(|token| token.text == "us")
}

fn is_name_and_word(a: &Token, b: &Token) -> bool {
    a.name != b.name && a.text == b.text && WORDS_AND_NAMES.contains(&a.text.as_str())
}

fn names<'a>(tokens: &[&'a Token]) -> Vec<&'a Token> {
    tokens.iter().copied().filter(|token| token.name && token.part != Part::Light).collect()
}

/// Whether a text gives capital letters to words that are no names.
fn is_title(tokens: &[Token]) -> bool {
    let word = |token: &&Token| {
        !token.begins && token.kind != Kind::Sign && token.text.chars().any(char::is_alphabetic)
    };
    let words = tokens.iter().filter(word);
    let names = words.clone().filter(|token| token.name);
    names.count() * 2 > words.count()
}

/// Whether two rows of names may be of one thing.
fn are_akin(a: &[&Token], b: &[&Token]) -> bool {
    let initials =
        |names: &[&Token]| -> String { names.iter().filter_map(|name| name.text.chars().next()).collect() };
    let stands_for = |name: &Token, initials: &str| name.text.len() > 1 && name.text == initials;
    let (of_a, of_b) = (initials(a), initials(b));
    a.iter().any(|a| b.iter().any(|b| is_akin(&a.text, &b.text)))
        || a.iter().any(|a| stands_for(a, &of_b))
        || b.iter().any(|b| stands_for(b, &of_a))
}

fn is_akin(a: &str, b: &str) -> bool {
    const BEGINNING: usize = 4;
    let shared = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    shared >= BEGINNING || a.starts_with(b) || b.starts_with(a) || is_slip(a, b)
}

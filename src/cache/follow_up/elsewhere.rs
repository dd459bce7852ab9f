//! Languages without rules of their own.
//!
//! Nothing is known here but length and a few conjunctions, so only what is too short to say
//! what it is about is held to lean on the past: "¿Por qué?", "und das zweite?", "もっと".

/// Conjunctions that begin a turn only to go on with the last one; no other large language has
/// one of them as another word that begins questions.
const OPENINGS: &str =
    "y|pero|et|mais|donc|und|oder|aber|però|ve|ama|maar|dus|ale|lub|и|но|или|а|або|але|و|لكن|और|लेकिन";

/// Letters of scripts that put no spaces between words: less than this names nothing.
const FEW_LETTERS: usize = 8;

/// Whether the text is too short to say what it is about.
pub(super) fn leans(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut words =
        lower.split(|c: char| !c.is_alphanumeric() && !is_mark(c)).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default();
    if OPENINGS.split('|').any(|opening| opening == first) {
        return true;
    }
    // More than four words say enough; four may.
    let first_words: Vec<&str> = std::iter::once(first).chain(words.take(4)).collect();
    let longest = first_words.iter().map(|word| letters(word)).max().unwrap_or(0);
    match first_words.as_slice() {
        words if words.iter().any(|word| word.chars().any(is_unspaced)) => {
            words.iter().map(|word| word.chars().count()).sum::<usize>() < FEW_LETTERS
        }
        [] | [_] | [_, _] => true,
        // The more words there are, the shorter may be the one that names something.
        [_, _, _] => longest < 7,
        [_, _, _, _] => longest < 5,
        _ => false,
    }
}

/// How many letters a word has; a Korean syllable is at least two.
fn letters(word: &str) -> usize {
    word.chars().map(|c| if matches!(c, '\u{ac00}'..='\u{d7a3}') { 2 } else { 1 }).sum()
}

/// Vowel signs and accents that stand for themselves are parts of words.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{900}'..='\u{dff}' | '\u{e31}' | '\u{e34}'..='\u{e4e}')
}

/// Kana, Han beside them, Thai, Lao, Khmer, Burmese.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{e01}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
}

//! Do two questions hold the same numbers?
//!
//! To an embedding model 2023 and 2024 are nearly the same word. So the numbers of both
//! questions are read, with what stands at them (sign, unit mark, operator, letters as in `v2`),
//! and must be equal and in the same order: "is 5 more than 7" is not "is 7 more than 5".
//!
//! Forms are merged only where they can mean nothing else: `1,000` and `1000` (not where a
//! comma may be a decimal one), `５` and `5`, `5 pm` and `5pm`, `5 percent` and `5%`, `three`
//! and `3`, `二十五` and `25`. All else differs as it is written: `3.50` is not `3.5` (a version?),
//! `v2` not `2`, `05/06` not `5/6`. What is the same and looks different costs a hit; the
//! reverse would cost an answer.

mod chinese;

use crate::cache::embedder::coverage::Language;

/// Whether both texts hold the same numbers in the same order.
pub(super) fn same(a: &str, b: &str) -> bool {
    numbers(a) == numbers(b)
}

/// Words that are numbers in English. `one` is left out: it mostly counts nothing.
const ENGLISH: &[(&str, &str)] = &[
    ("zero", "0"),
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("ten", "10"),
    ("eleven", "11"),
    ("twelve", "12"),
    ("thirteen", "13"),
    ("fourteen", "14"),
    ("fifteen", "15"),
    ("sixteen", "16"),
    ("seventeen", "17"),
    ("eighteen", "18"),
    ("nineteen", "19"),
    ("twenty", "20"),
    ("thirty", "30"),
    ("forty", "40"),
    ("fifty", "50"),
    ("sixty", "60"),
    ("seventy", "70"),
    ("eighty", "80"),
    ("ninety", "90"),
    ("hundred", "hundred"),
    ("thousand", "thousand"),
    ("million", "million"),
    ("billion", "billion"),
    ("dozen", "dozen"),
    ("half", "half"),
    ("twice", "twice"),
    ("percent", "%"),
    ("third", "3rd"),
    ("fourth", "4th"),
    ("fifth", "5th"),
    // Roman ones that are no words; a lone I, V or X is.
    ("ii", "ii"),
    ("iii", "iii"),
    ("iv", "iv"),
    ("vi", "vi"),
    ("vii", "vii"),
    ("viii", "viii"),
    ("ix", "ix"),
    ("xi", "xi"),
    ("xii", "xii"),
    ("xiii", "xiii"),
    ("xiv", "xiv"),
    ("xv", "xv"),
];

/// The numbers of a text in order, each in the one form that all its forms have.
fn numbers(text: &str) -> Vec<String> {
    let language = Language::of(text);
    let chars: Vec<char> = text.chars().map(fold).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let end = run_end(&chars, at);
        let run: String = chars[at..end].iter().flat_map(|c| c.to_lowercase()).collect();
        let (number, after) = if let Some((number, after)) = chinese::number(&chars, at) {
            (Some(number), after)
        } else if run.is_empty() {
            (lone_sign(&chars, at).map(String::from), at + 1)
        } else if run.chars().any(is_digit) {
            let (number, after) = written(&chars, at, end, run, language);
            (Some(number), after)
        } else {
            (in_words(&run, language), end)
        };
        found.extend(number);
        at = after;
    }
    found
}

fn in_words(word: &str, language: Option<Language>) -> Option<String> {
    let listed = ENGLISH.iter().find(|(name, _)| *name == word && language == Some(Language::English));
    listed.map(|(_, number)| (*number).to_owned())
}

/// A number in digits between `at` and `end`, with its sign before and its unit after; and
/// where the text goes on.
fn written(
    chars: &[char],
    at: usize,
    end: usize,
    run: String,
    language: Option<Language>,
) -> (String, usize) {
    let mut number = match language {
        Some(language) if commas_group_thousands(language) => without_thousands_separators(run),
        _ => run,
    };
    if at > 0 && matches!(chars[at - 1], '-' | '+') && !at.checked_sub(2).is_some_and(|n| is_word(chars[n])) {
        number.insert(0, chars[at - 1]);
    }
    let mut after = end;
    while after < chars.len() && chinese::is_unit(chars[after]) {
        number.push(chars[after]);
        after += 1;
    }
    if let Some((half, past)) = half_of_day(chars, after) {
        number.push_str(half);
        after = past;
    }
    (number, after)
}

/// In many other languages 1,000 is one, with three decimals.
fn commas_group_thousands(language: Language) -> bool {
    matches!(language, Language::English | Language::Other(Some("Mandarin" | "Kana" | "Hangul" | "Thai")))
}

/// `12,345.6` without its commas; anything else as it is.
fn without_thousands_separators(run: String) -> String {
    let whole = run.split('.').next().unwrap_or_default();
    let mut groups = whole.split(',');
    let digits = |group: &str| group.bytes().all(|b| b.is_ascii_digit());
    let first = groups.next().is_some_and(|group| (1..=3).contains(&group.len()) && digits(group));
    let mut rest = groups.peekable();
    if first && rest.peek().is_some() && rest.all(|group| group.len() == 3 && digits(group)) {
        let commas = whole.matches(',').count();
        return run.replacen(',', "", commas);
    }
    run
}

/// `am` or `pm` at `from`, after one space at most, also as `a.m.`; and where it ends.
fn half_of_day(chars: &[char], from: usize) -> Option<(&'static str, usize)> {
    let start = from + usize::from(chars.get(from) == Some(&' '));
    for (half, letter) in [("am", 'a'), ("pm", 'p')] {
        for form in [&[letter, 'm'][..], &[letter, '.', 'm'][..]] {
            let end = start + form.len();
            let here = chars.get(start..end)?.iter().map(char::to_ascii_lowercase);
            if here.eq(form.iter().copied()) && !chars.get(end).is_some_and(|c| is_word(*c)) {
                return Some((half, end));
            }
        }
    }
    None
}

/// A sign that says something of the number at it: a currency, a comparison, a percentage; or
/// an operator between two numbers.
fn lone_sign(chars: &[char], at: usize) -> Option<char> {
    let sign = chars[at];
    let digit = |c: Option<&char>| c.is_some_and(|c| is_digit(*c));
    let before = digit(chars[..at].iter().rev().find(|c| !c.is_whitespace()));
    let after = digit(chars[at + 1..].iter().find(|c| !c.is_whitespace()));
    let told = match sign {
        '$' | '€' | '£' | '¥' | '₹' | '₽' | '₩' | '₺' | '₫' | '฿' | '%' | '‰' | '°' | '<' | '>' | '='
        | '≤' | '≥' | '≠' | '≈' | '~' | '±' | '^' | '√' => before || after,
        '+' | '-' | '*' | '/' | '×' | '÷' | ':' => before && after,
        _ => false,
    };
    told.then_some(sign)
}

/// The end of the run of digits and Latin letters at `from`; marks within digits belong to it.
fn run_end(chars: &[char], from: usize) -> usize {
    let mut end = from;
    while end < chars.len() {
        let c = chars[end];
        let inner = end > from
            && matches!(c, '.' | ',' | ':' | '/' | '-' | '_' | '\'' | '’')
            && is_digit(chars[end - 1])
            && chars.get(end + 1).is_some_and(|next| is_digit(*next));
        if !(is_word(c) || inner) {
            break;
        }
        end += 1;
    }
    end
}

/// Digits of any script, and ½, ², Ⅷ and the like.
fn is_digit(c: char) -> bool {
    c.is_numeric()
}

/// What may stand in one word with digits. Letters of scripts without spaces do not.
fn is_word(c: char) -> bool {
    is_digit(c) || (c.is_alphabetic() && (c as u32) < 0x2e80)
}

/// Full-width signs and digits of any script in their ASCII form; all dashes of arithmetic as
/// hyphens.
fn fold(c: char) -> char {
    const ZEROS: [u32; 18] = [
        0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50, 0xed0,
        0xf20, 0x1040, 0x17e0, 0x1810,
    ];
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        '−' | '‐' | '‑' => '-',
        '\u{a0}' | '\u{202f}' | '\u{2009}' | '\u{3000}' => ' ',
        _ => ZEROS
            .iter()
            .find_map(|zero| (c as u32).checked_sub(*zero).filter(|digit| *digit < 10))
            .and_then(|digit| char::from_digit(digit, 10))
            .unwrap_or(c),
    }
}

#[cfg(test)]
mod tests;

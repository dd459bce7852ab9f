//! A text cut into words.
//!
//! Contractions are written out ("don't": do not), typographic forms folded, numbers brought to
//! one form (1,000 and 1k), amounts parted from their units (10kg). Signs of scripts without
//! spaces are words of their own; phrases are found later.

use super::literal::literal;

/// A word before phrases are found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// In small letters, except in literals.
    pub(super) text: String,
    /// Marked like a name: by a capital letter where no sentence begins or within the word, or
    /// by quotes around it.
    pub(super) name: bool,
    pub(super) kind: Kind,
    /// A sentence begins with it.
    pub(super) begins: bool,
}

/// What a word is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// Code, a path, an address: to be taken to the letter.
    Literal,
    /// A sign of a script without spaces, or some that make a word.
    Sign,
}

/// The words of a text, in order.
pub(super) fn words(text: &str) -> Vec<Word> {
    let chars: Vec<char> = text.chars().map(fold).collect();
    let mut reader = Reader { chars: &chars, words: Vec::new(), begins: true, quoted: false };
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        if is_sign(c) {
            reader.push(c.to_string(), Kind::Sign, false);
            at += 1;
        } else if c.is_whitespace() {
            reader.begins |= c == '\n';
            at += 1;
        } else {
            let ends = |c: &&char| c.is_whitespace() || is_sign(**c);
            let end = at + chars[at..].iter().take_while(|c| !ends(c)).count();
            reader.chunk(at, end);
            at = end;
        }
    }
    reader.words
}

struct Reader<'a> {
    chars: &'a [char],
    words: Vec<Word>,
    begins: bool,
    quoted: bool,
}

impl Reader<'_> {
    fn push(&mut self, text: String, kind: Kind, name: bool) {
        if !text.is_empty() {
            let begins = std::mem::take(&mut self.begins);
            self.words.push(Word { text, kind, name: name || self.quoted, begins });
        }
    }

    fn plain(&mut self, text: &str) {
        self.push(text.into(), Kind::Plain, false);
    }

    /// What stands between spaces: one literal, or words parted by marks.
    fn chunk(&mut self, from: usize, to: usize) {
        let chars = self.chars;
        if let Some(text) = literal(&chars[from..to]) {
            self.push(text, Kind::Literal, false);
            self.begins = matches!(chars[to - 1], '.' | '?' | '!' | ':');
            return;
        }
        let mut at = from;
        while at < to {
            if chars[at].is_alphanumeric() {
                let end = word_end(chars, at, to);
                self.word(&chars[at..end]);
                at = end;
            } else {
                if let Some(mark) = mark(chars, at) {
                    self.plain(&mark.to_string());
                }
                if chars[at] == '"' {
                    self.quoted = !self.quoted && is_closed(chars, at);
                }
                self.begins |= matches!(chars[at], '.' | '?' | '!' | ':' | '"');
                at += 1;
            }
        }
    }

    /// A word, or the words that it is drawn together of.
    fn word(&mut self, chars: &[char]) {
        let inner = chars.len() > 1 && chars.iter().skip(1).any(|c| c.is_uppercase());
        let capital = chars.iter().any(|c| c.is_uppercase()) && (inner || !self.begins);
        let text: String = chars.iter().flat_map(|c| c.to_lowercase()).collect();
        if chars[0].is_numeric() {
            return self.amount(&text);
        }
        let name = capital && !matches!(text.split('\'').next(), Some("i"));
        match text.as_str() {
            // The country, not the pronoun.
            "us" if capital => self.push("usa".into(), Kind::Plain, true),
            "n't" => self.plain("not"),
            "can't" | "cannot" | "cant" => self.both("can", "not"),
            "won't" | "wont" => self.both("will", "not"),
            "dont" | "doesnt" | "didnt" | "isnt" | "arent" | "wasnt" | "werent" | "havent" | "hasnt"
            | "hadnt" | "couldnt" | "shouldnt" | "wouldnt" | "mustnt" => {
                self.both(&text[..text.len() - 2], "not");
            }
            _ => match text.rsplit_once('\'') {
                Some((stem, "t")) if stem.ends_with('n') => self.both(&stem[..stem.len() - 1], "not"),
                Some((stem, "s")) if IS.contains(&stem) => self.both(stem, "is"),
                Some((stem, "s" | "re" | "ve" | "ll" | "d" | "m")) => {
                    self.push(stem.into(), Kind::Plain, name);
                }
                Some((first, rest)) => self.both(first, rest),
                None => self.push(text, Kind::Plain, name),
            },
        }
    }

    fn both(&mut self, first: &str, second: &str) {
        self.plain(first);
        self.plain(second);
    }

    /// A number, and the unit that is written at it.
    fn amount(&mut self, text: &str) {
        let digits = text.find(char::is_alphabetic).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number = number.replace(',', "");
        let plain = number.bytes().all(|b| b.is_ascii_digit());
        match unit {
            "k" if plain => self.plain(&format!("{number}000")),
            _ if UNITS.contains(&unit) => self.both(&number, unit),
            _ => self.plain(&format!("{number}{unit}")),
        }
    }
}

/// What "is" is drawn together with.
const IS: &[&str] = &["what", "who", "where", "how", "when", "why", "it", "that", "there", "here"];

/// Units that are written at their numbers.
const UNITS: &[&str] = &[
    "kg", "g", "mg", "lb", "lbs", "oz", "km", "m", "cm", "mm", "mi", "ft", "ml", "l", "kb", "mb", "gb", "tb",
    "hz", "khz", "mhz", "ghz", "ms", "s", "min", "h", "hr", "hrs", "am", "pm", "rs", "usd", "eur", "gbp",
    "inr", "w", "kw", "v", "c", "f", "kcal", "mph", "kmh", "days", "weeks", "months", "years", "hours",
    "minutes",
];

/// Whether a quote that opens here soon ends.
fn is_closed(chars: &[char], at: usize) -> bool {
    const LONGEST: usize = 60;
    chars[at + 1..].iter().take(LONGEST).any(|c| *c == '"')
}

fn word_end(chars: &[char], from: usize, to: usize) -> usize {
    let next = |at: usize| chars[..to].get(at + 1);
    let mut end = from;
    while end < to {
        let inner = match chars[end] {
            '\'' => next(end).is_some_and(|c| c.is_alphabetic()),
            '.' | ',' | ':' | '/' => chars[end - 1].is_numeric() && next(end).is_some_and(|c| c.is_numeric()),
            // C#, F#, C++, Notepad++
            '#' => end == from + 1 && next(end).is_none_or(|c| !c.is_alphanumeric()),
            '+' => {
                chars[end - 1].is_alphabetic() && next(end) == Some(&'+')
                    || chars[from..end].ends_with(&['+'])
            }
            c => c.is_alphanumeric(),
        };
        if !inner {
            break;
        }
        end += 1;
    }
    end
}

/// A mark that says something of the number at it, or of the two it stands between.
fn mark(chars: &[char], at: usize) -> Option<char> {
    let digit = |c: Option<&char>| c.is_some_and(|c| c.is_numeric());
    let before = digit(chars[..at].iter().rev().find(|c| !c.is_whitespace()));
    let after = digit(chars[at + 1..].iter().find(|c| !c.is_whitespace()));
    let told = match chars[at] {
        '$' | '€' | '£' | '¥' | '₹' | '₽' | '%' | '°' | '<' | '>' | '=' | '≤' | '≥' | '≠' | '√' => {
            before || after
        }
        '^' | '+' | '*' | '/' | '×' | '÷' => before && after,
        // Between digits without a space it is a range or a date.
        '-' | '−' => after && at.checked_sub(1).is_none_or(|last| chars[last].is_whitespace()),
        _ => false,
    };
    told.then_some(if chars[at] == '−' { '-' } else { chars[at] })
}

/// Signs of scripts that put no spaces between words.
fn is_sign(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Full-width forms as ASCII, typographic quotes and marks as plain ones.
fn fold(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        '’' | '‘' | '´' => '\'',
        '“' | '”' | '„' | '«' | '»' | '「' | '」' | '『' | '』' | '《' | '》' => '"',
        '、' | '。' | '・' => ',',
        '‐' | '‑' => '-',
        '\u{3000}' | '\u{a0}' | '\u{202f}' => ' ',
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(text: &str) -> Vec<String> {
        words(text).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn words_in_one_form() {
        for (text, expected) in [
            ("Don't you?", "do not you"),
            ("I can’t, won't, dont", "i can not will not do not"),
            ("What's Ann's plan? They're late", "what is ann plan they late"),
            ("does n't", "does not"),
            ("two-factor (2FA)", "two factor 2fa"),
            ("1,000 = 1k", "1000 = 1000"),
            ("10kg, 7am and 3.5 GB", "10 kg 7 am and 3.5 gb"),
            ("C++, C# and F#.", "c++ c# and f#"),
            ("5 - 3 and -3 but 3-5", "5 - 3 and - 3 but 3 5"),
            ("怎么用ＡＢ？", "怎 么 用 ab"),
            ("the US and us", "the usa and us"),
        ] {
            assert_eq!(texts(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn names_are_marked() {
        let names = |text: &str| -> Vec<String> {
            words(text).into_iter().filter(|word| word.name).map(|word| word.text).collect()
        };
        assert_eq!(names("Where is Oslo? The iPhone and NASA. I'm here, I say"), ["oslo", "iphone", "nasa"]);
        assert_eq!(names("Oslo is cold"), Vec::<String>::new());
        assert_eq!(names("was heißt „kaum“ hier"), ["kaum"]);
        assert_eq!(names("an \"open end"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = words(&text);
        }
    }
}

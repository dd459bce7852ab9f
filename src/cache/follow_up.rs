//! Does a question lean on what was said before it?
//!
//! "And the second one?" has as many answers as there are conversations. Two such turns may be
//! equal to the letter and still ask for different things, so they may only ever meet in the
//! same history; a question that says itself what it is about may meet another anywhere.
//!
//! Only the text is looked at: what is the same text is the same in every conversation, so both
//! sides of a match are judged by the same rule. What leans on the past shows it in one of three
//! ways: a **pronoun** whose antecedent does not stand in the text ("is it safe?"), a
//! **fragment** that another sentence has to complete ("for children?", "shorter please"), or a
//! **reference** to an earlier turn ("your last answer"). English and Chinese have rules for
//! each; elsewhere a text is judged by its length alone. Doubt means that it leans: that costs a
//! hit, the reverse would cost an answer.
//!
//! Not seen is what only knowledge of the world can tell: "how does testing work?" after a talk
//! on food labels, or "is the ticket refundable?".

mod chinese;
mod elsewhere;
mod english;
mod list;

use crate::cache::embedder::coverage::Language;

/// How much of a text is read, in bytes from its beginning and, in all that is longer, as much
/// again from its end. No encoder's window is that long, so what is longer never meets a text in
/// other words.
const READ: usize = 8 * 1024;

/// Whether the question depends on what was said before it.
///
/// Only a turn that has others before it can: in a first one, nothing but caution hangs on the
/// answer. Where the scope leaves the history out and this is true, not even an equal text may
/// meet another history.
///
/// Time and memory grow no faster than the text and are bounded: some 5 to 20 µs for a question,
/// a millisecond or two for the longest text.
pub fn is_follow_up(question: &str) -> bool {
    let (head, tail) = ends(question);
    let script = Script::of(head);
    leans(head, script) || tail.is_some_and(|tail| refers_back(tail, script))
}

fn leans(text: &str, script: Script) -> bool {
    match script {
        Script::Chinese => chinese::leans(text),
        Script::Latin => match Language::of(text) {
            None | Some(Language::English) => english::leans(text),
            // Few words tell no language: "hi", "shorter please".
            Some(Language::Other(_)) => {
                !english::is_complete(text) && (english::says_nothing(text) || elsewhere::leans(text))
            }
        },
        Script::Other => elsewhere::leans(text),
    }
}

fn refers_back(text: &str, script: Script) -> bool {
    match script {
        Script::Chinese => chinese::refers_back(text),
        Script::Latin => english::refers_back(text),
        Script::Other => false,
    }
}

/// The text, or its two ends when it is longer than they are.
fn ends(text: &str) -> (&str, Option<&str>) {
    if text.len() <= 2 * READ {
        return (text, None);
    }
    let head = text.floor_char_boundary(READ);
    let tail = text.ceil_char_boundary(text.len() - READ);
    (&text[..head], Some(&text[tail..]))
}

/// Whose rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Chinese,
    Latin,
    Other,
}

impl Script {
    /// Chinese where there are at least as many of its characters as words of Latin letters, so
    /// that names ("用 Python 呢") do not hide it; never with kana, which make it Japanese.
    fn of(text: &str) -> Self {
        let (mut chinese, mut latin, mut other) = (0usize, 0usize, 0usize);
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            if word.chars().any(is_kana) {
                return Self::Other;
            }
            match word.chars().filter(|c| is_han(*c)).count() {
                0 if word.chars().any(|c| c.is_alphabetic() && !is_latin(c)) => other += 1,
                0 => latin += 1,
                han => chinese += han,
            }
        }
        if chinese > 0 && chinese >= latin {
            Self::Chinese
        } else if other > latin {
            Self::Other
        } else {
            Self::Latin
        }
    }
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}')
}

fn is_kana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30ff}')
}

fn is_latin(c: char) -> bool {
    matches!(c, 'A'..='Z' | 'a'..='z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}')
}

#[cfg(test)]
mod tests;

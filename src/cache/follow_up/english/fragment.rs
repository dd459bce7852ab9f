//! Turns that an earlier sentence has to complete.

use super::super::list::sections;
use super::text::Text;
use super::word::Class;

/// Texts of listed words only that are complete nevertheless, by lines and bars.
const COMPLETE: &str = include_str!("complete.txt");

/// So many words tell enough, even if each of them is listed.
const ENOUGH: usize = 14;

/// Greetings, the time, and questions about the other side.
pub(super) fn is_complete(text: &Text<'_>) -> bool {
    let mut known =
        sections(COMPLETE).into_iter().flat_map(|(_, lines)| lines).flat_map(|line| line.split('|'));
    (1..8).contains(&text.len())
        && known.any(|known| known.split(' ').count() == text.len() && text.follows(0, known))
}

/// Whether the text is a fragment.
pub(super) fn is_one(text: &Text<'_>) -> bool {
    says_nothing(text) || opens_late(text) || is_phrase(text) || lacks_choice(text)
}

/// Nothing in it names anything: neither a name, nor "my …", nor people. What it asks of the
/// other side ("what would you do?") counts as said, unless it asks for another answer ("can you
/// explain?"). A language alone names little ("can you say it in French?").
pub(super) fn says_nothing(text: &Text<'_>) -> bool {
    const TASKS: [Class; 5] =
        [Class::Command, Class::Preposition, Class::Adverb, Class::Reply, Class::Language];
    let task = text.is(0, &TASKS) || text.word(1) == "you" || text.len() <= 3;
    let language = text.count(&[Class::Language]) > 0 && !task;
    let defined = text.follows(0, "what is a") || text.follows(0, "what is an");
    let compared = text.opens_with_any(&["between"])
        && text.opens_with_any(&["and"])
        && text.count(&[Class::Ordinal, Class::Third]) == 0;
    let owned = text.opens_with_any(&["my", "myself"]);
    let named = text.is_about()
        || language
        || defined
        || compared
        || owned
        || text.is_formula
        || text.count(&[Class::Person]) > 0
        || text.count(&[Class::Number]) >= 2;
    !named && text.len() < ENOUGH && !asks_about_you(text)
}

/// "What would you do?", not "can you explain?", "do you mean …?", "are you sure?".
fn asks_about_you(text: &Text<'_>) -> bool {
    const REQUESTED: [Class; 5] = [Class::Command, Class::Adverb, Class::Verb, Class::Reply, Class::Be];
    const MEANT: &[&str] = &[
        "mean",
        "sure",
        "say",
        "said",
        "think",
        "know",
        "explain",
        "suggest",
        "recommend",
        "prefer",
        "choose",
        "certain",
        "wrong",
        "right",
        "please",
        "pick",
        "not",
        "did",
        "talking",
        "want",
        "see",
        "understand",
    ];
    if text.len() <= 3 {
        return false;
    }
    let yours =
        text.opens_with_any(&["your", "yourself", "yourselves"]) && !text.is(start(text), &[Class::Command]);
    let you = (0..text.len()).filter(|at| text.word(*at) == "you");
    yours
        || you.into_iter().any(|at| {
            let asked = at > 0 && matches!(text.word(at - 1), "can" | "could" | "would" | "will");
            let requested = asked && text.is(at + 1, &REQUESTED);
            !requested && !MEANT.contains(&text.word(at + 1))
        })
}

/// The first word that is no filler.
pub(super) fn start(text: &Text<'_>) -> usize {
    const FILLERS: &[&str] = &[
        "ok",
        "okay",
        "please",
        "hey",
        "hi",
        "hello",
        "thanks",
        "great",
        "cool",
        "hmm",
        "oh",
        "um",
        "uh",
        "ah",
        "wow",
        "interesting",
        "alright",
        "nice",
        "thank",
        "right",
    ];
    (0..text.len())
        .find(|at| {
            let thanked = *at > 0 && text.word(*at - 1) == "thank" && text.word(*at) == "you";
            !FILLERS.contains(&text.word(*at)) && !thanked
        })
        .unwrap_or(0)
}

/// It begins as only the second of two turns does.
fn opens_late(text: &Text<'_>) -> bool {
    const ANSWERED: &[&str] =
        &["i", "it", "that", "the", "not", "you", "please", "but", "this", "in", "what"];
    const FURTHER: &[&str] = &["more", "again", "further"];
    let at = start(text);
    let next = text.next(at);
    let rest = text.len().saturating_sub(at);
    let alone = text.ends(at);
    match text.word(at) {
        "and" | "or" | "but" | "also" | "likewise" | "similarly" | "alternatively" | "additionally"
        | "furthermore" | "moreover" | "therefore" | "however" | "conversely" | "otherwise" | "then"
        | "same" | "more" | "try" => true,
        "so" => rest <= 5,
        "too" => rest <= 4,
        "still" => rest <= 6,
        "what" | "how" => next == "about",
        "why" => next == "not" && rest <= 7 || rest <= 3 && !text.after_is(at, &[Class::Be, Class::Aux]),
        "yes" | "yeah" | "yep" | "yup" | "no" | "nope" | "nah" | "exactly" | "correct" | "true"
        | "indeed" | "sure" => alone || ANSWERED.contains(&next),
        "not" => rest <= 6 && !text.opens_with_any(&["my"]),
        "if" => {
            let clause = text.opens_with_any(&["then", "what", "how", "is", "can"]);
            matches!(next, "so" | "not" | "yes" | "no")
                || rest <= 6 && text.names(at, text.len()) < 2 && !clause
        }
        "because" | "unless" | "except" | "until" => rest <= 7,
        "instead" => next != "of",
        "continue" => {
            alone || matches!(next, "where" | "from" | "with" | "on" | "please") && !text.has_given()
        }
        "actually" | "besides" | "finally" | "lastly" | "next" | "plus" => alone,
        "now" => alone || next == "do" || text.is_verb(at + 1),
        "tell" | "give" | "show" | "list" | "add" | "write" | "say" | "need" | "want" | "explain"
        | "find" | "suggest" | "generate" => text.has(at, at + 4, FURTHER),
        "can" | "could" | "would" | "will" | "i" => {
            text.has(at, at + 6, FURTHER) && text.is(at + 2, &[Class::Command])
        }
        _ => false,
    }
}

/// A phrase without a verb: "for beginners?", "the blue car", "how many calories?", "Germany?".
fn is_phrase(text: &Text<'_>) -> bool {
    const WEIGHTLESS: &[&str] = &["please", "pls", "then", "though", "exactly"];
    let at = start(text);
    let Some(first) = text.words.get(at) else { return true };
    let rest = text.words[at..].iter().filter(|word| !WEIGHTLESS.contains(&word.text)).count();
    let has_verb = (at + 1..text.len().min(at + 8)).any(|at| {
        text.is(at, &[Class::Be, Class::Aux, Class::Wh])
            || text.is_verb(at) && !text.is(at, &[Class::Command])
            || text.word(at) == "to"
    });
    let last = text.len() - 1;
    let one_clause = text.clause(last) <= at || rest <= 4;
    let added = matches!(text.word(last), "too" | "though" | "either" | "then")
        || text.word(last) == "well" && text.previous(last) == "as";
    if rest <= 1 {
        // A code is asked about by itself.
        return first.text.len() < 3 || !first.text.bytes().any(|byte| byte.is_ascii_digit());
    }
    if added && text.len() <= 7 {
        return true;
    }
    match first.text {
        _ if first.is(&[Class::Aux, Class::Be]) => rest <= 2,
        "without" => rest <= 6 && one_clause,
        "using" => rest <= 4,
        "how" => matches!(text.next(at), "many" | "much") && rest <= 3,
        "which" | "what" => rest <= 2,
        "to" => rest <= 3 || rest <= 6 && !has_verb && text.is(at + 1, &[Class::Determiner, Class::Number]),
        "the" | "a" | "an" | "any" | "some" | "only" => rest <= 3 && !has_verb,
        // "Option b"
        _ if first.is(&[Class::Noun]) && rest == 2 => text.word(at + 1).len() == 1,
        _ => first.is(&[Class::Preposition]) && rest <= 6 && one_clause && !has_verb,
    }
}

/// "Which is better for beginners?", "which should I use?", and nothing to choose from.
fn lacks_choice(text: &Text<'_>) -> bool {
    let at = start(text);
    if text.word(at) != "which" {
        return false;
    }
    let last = text.clause(text.len() - 1);
    let choice = text.opens_with_any(&[
        "or",
        "vs",
        "versus",
        "between",
        "among",
        "and",
        "of",
        "yourself",
        "yourselves",
    ]) || text.has_given()
        || last > at && text.names(0, last) > 0;
    let described = text.is(at + 2, &[Class::Adjective, Class::Adverb])
        && !text.is_name(at + 3)
        && !text.is(at + 3, &[Class::Noun, Class::Determiner]);
    let best =
        text.word(at + 2) == "the" && text.is(at + 3, &[Class::Adjective]) && text.names(at, text.len()) == 0;
    let most = text.follows(at + 2, "the most") && text.len() == at + 5;
    let bare = match text.next(at) {
        "should" | "would" | "do" | "does" | "did" | "can" | "could" => true,
        "is" | "are" | "was" | "were" => described || best || most,
        _ => false,
    };
    bare && !choice
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::follow_up::is_follow_up;

    #[test]
    fn every_complete_text_is_complete() {
        for (_, lines) in sections(COMPLETE) {
            for known in lines.iter().flat_map(|line| line.split('|')) {
                assert!(is_complete(&Text::read(known)), "{known}");
                assert!(!is_follow_up(known), "{known}");
            }
        }
    }

    #[test]
    fn fillers_are_passed_over() {
        let start_of = |text| start(&Text::read(text));
        assert_eq!(start_of("ok thank you, so why"), 3);
        assert_eq!(start_of("so why"), 0);
        assert_eq!(start_of("ok"), 0);
        assert_eq!(start_of(""), 0);
    }
}

//! The "it" that means nothing.
//!
//! English puts "it" where a clause is too long to be a subject ("is it safe to eat raw eggs?"),
//! and where there is none ("is it raining in Paris?"). Such a text is complete when the clause
//! that "it" stands for follows, and says what it is about.

use super::text::Text;
use super::word::Class;

/// How far behind "it" the clause may begin, in words.
const REACH: usize = 9;

/// Whether the "it" at `at` needs no antecedent.
pub(super) fn is_one(text: &Text<'_>, at: usize) -> bool {
    let end = text.sentence_end(at);
    is_fixed(text, at, end) || is_ambient(text, at, end) || has_clause(text, at, end)
}

/// "Worth it", "when it comes to", "it has been years since".
fn is_fixed(text: &Text<'_>, at: usize, end: usize) -> bool {
    const WHEN: &[&str] = &["since", "for", "over", "week", "weeks", "days", "month", "months", "years"];
    match (text.previous(at), text.next(at)) {
        ("worth", _)
        | ("when", "comes")
        | ("take", "easy")
        | ("as", "is" | "was")
        | ("make" | "makes" | "made", "so")
        | ("like" | "love" | "hate" | "appreciate", "if" | "when") => text.has_names(),
        (_, "appears" | "seems") => text.says(at, end) > 0,
        ("make" | "makes" | "made", "to" | "through" | "into") => text.names(at, end) > 0,
        (_, "is" | "has" | "was" | "had") if text.word(at + 2) == "been" => {
            text.has_names() && text.has(at, end, WHEN)
        }
        _ => false,
    }
}

/// Weather, time and distance have no subject; there must be a place, or the like, to ask about.
fn is_ambient(text: &Text<'_>, at: usize, end: usize) -> bool {
    const AMBIENT: &[&str] = &[
        "rain", "raining", "rains", "snow", "snowing", "snows", "sunny", "cloudy", "windy", "hot", "cold",
        "warm", "humid", "dark", "freezing", "clock", "time", "day", "date", "year", "month", "season",
        "far", "late", "early", "midnight", "noon",
    ];
    let before = text.has(at.saturating_sub(4), at, AMBIENT);
    let after = text.has(at + 1, (at + 4).min(end), AMBIENT);
    let placed = text.has(at, end, &["in", "at"]) && text.names(at, end) > 0;
    (before || after) && (placed || text.names(at + 1, end) > usize::from(after))
}

/// The clause that "it" stands for follows.
fn has_clause(text: &Text<'_>, at: usize, end: usize) -> bool {
    let be = text.before(at).is_some_and(|before| takes_clause(text, before))
        || text.after(at).is_some_and(|next| takes_clause(text, next) || text.next(next) == "be");
    let verb = (at + 1..(at + 4).min(end)).any(|verb| IMPERSONAL.contains(&text.word(verb)));
    if !be && !verb {
        return false;
    }
    // Adjectives that nobody listed may stand before it, but no object.
    let most = if be { 2 } else { 1 };
    for word in at + 1..end.min(at + REACH) {
        if text.names(at + 1, word) > most {
            return false;
        }
        let opens = opens_clause(text, word, at, end, be) && is_told(text, word, end);
        // What follows an infinitive belongs to it.
        if opens || text.word(word) == "to" {
            return opens;
        }
    }
    false
}

fn takes_clause(text: &Text<'_>, at: usize) -> bool {
    const TAKE: &[&str] = &[
        "make",
        "makes",
        "made",
        "making",
        "find",
        "finds",
        "found",
        "get",
        "keep",
        "consider",
        "considered",
        "think",
        "become",
        "becomes",
        "became",
        "would",
        "should",
        "could",
    ];
    text.is(at, &[Class::Be]) || TAKE.contains(&text.word(at))
}

/// Verbs besides "be" whose subject may follow as a clause.
const IMPERSONAL: &[&str] = &[
    "take", "takes", "took", "taken", "cost", "costs", "feel", "feels", "mean", "means", "matter", "matters",
    "work", "works", "help", "helps", "hurt", "hurts", "look", "looks", "sound", "sounds", "seem", "seems",
    "make", "makes", "pay", "pays", "suck", "bother", "bothers", "happen", "turn", "require", "requires",
    "affect",
];

/// Before "to" these have a real subject ("is it able to …").
const PERSONAL: &[&str] = &[
    "able",
    "going",
    "supposed",
    "used",
    "ready",
    "meant",
    "designed",
    "due",
    "set",
    "about",
    "compatible",
    "need",
    "needs",
    "want",
    "wants",
    "have",
    "has",
    "had",
    "try",
    "tries",
    "tend",
    "tends",
    "similar",
    "related",
    "compared",
    "close",
    "applied",
    "connected",
    "like",
    "next",
    "equal",
    "equivalent",
    "up",
    "linked",
    "added",
];

fn opens_clause(text: &Text<'_>, word: usize, it: usize, end: usize, be: bool) -> bool {
    let previous = text.word(word - 1);
    match text.word(word) {
        "to" => {
            !PERSONAL.contains(&previous)
                && !text.is(word + 1, &[Class::Determiner, Class::Third, Class::Preposition])
        }
        "that" | "who" | "like" => !text.ends(word),
        "before" | "until" | "since" | "after" => true,
        // "Is it normal if …", not "is it faster if …".
        "if" => !matches!(previous, "it" | "better" | "faster" | "work" | "works" | "happen" | "look"),
        "when" | "whether" | "how" | "why" | "what" | "where" => word > it + 1,
        "for" => text.has(word, end, &["to"]),
        gerund => {
            be && word > it + 1
                && gerund.len() > 4
                && gerund.ends_with("ing")
                && !text.is(word, &[Class::Adverb, Class::Noun])
        }
    }
}

/// The clause says something.
fn is_told(text: &Text<'_>, word: usize, end: usize) -> bool {
    text.says(word + 1, end) > 0
        || (word + 1..end.min(word + REACH))
            .any(|word| text.is(word, &[Class::Person]) || text.word(word) == "sorry")
}

//! Pronouns without an antecedent.
//!
//! Outside of its own clause a pronoun may mean anything named before it; inside, it may not
//! (principle B of binding: in "can Python do it?", *it* is not Python). So a pronoun is free
//! unless an earlier clause names something. Possessives may be bound in their own clause ("how
//! do cats use their tails?"). A text with many names before a pronoun is not held to that: with
//! so many, one of them is meant.

use super::dummy;
use super::text::Text;
use super::word::Class;

/// So many names before a pronoun bind it, wherever they stand.
const MANY: usize = 4;

/// Whether some pronoun has nothing to stand for.
pub(super) fn is_free(text: &Text<'_>) -> bool {
    (0..text.len()).filter(|at| !text.words[*at].quoted).any(|at| is_free_at(text, at))
}

fn is_free_at(text: &Text<'_>, at: usize) -> bool {
    match text.word(at) {
        "it" => !is_bound(text, at) && !is_shown(text, at) && !has_it(text, at) && !dummy::is_one(text, at),
        "they" => {
            !matches!(text.next(at), "say" | "call") && !is_bound_person(text, at) && !is_shown(text, at)
        }
        "them" | "theirs" => !is_bound_person(text, at) && !is_shown(text, at) && !has_it(text, at),
        "he" | "she" | "him" | "hers" => !is_bound_person(text, at),
        "her" if text.ends(at) || text.after_is(at, &NEVER_OWNED) => !is_bound_person(text, at),
        "his" | "her" | "their" | "its" => text.names(0, at) == 0 && !text.has_person_before(at),
        "this" | "these" => this_is_free(text, at),
        "that" => that_is_pronoun(text, at) && !is_bound_event(text, at) && !is_shown(text, at),
        "those" => !those_is_defined(text, at) && !is_bound(text, at),
        "there" => there_is_free(text, at),
        "so" => {
            matches!(text.previous(at), "do" | "doing" | "does" | "did")
                && text.ends(at)
                && !is_bound_event(text, at)
        }
        _ => false,
    }
}

/// Words that follow an object and never a possessive.
const NEVER_OWNED: [Class; 9] = [
    Class::Be,
    Class::Aux,
    Class::Wh,
    Class::Preposition,
    Class::Determiner,
    Class::Conjunction,
    Class::Subject,
    Class::Third,
    Class::Adverb,
];

/// An earlier clause names something, or many names stand before, or two before "to": an
/// infinitive is a clause too ("a trick to get a dog to like it").
pub(super) fn is_bound(text: &Text<'_>, at: usize) -> bool {
    text.names(0, text.clause(at)) > 0
        || text.names(0, at) >= MANY
        || text.last_before(at, "to").is_some_and(|to| text.names(0, to) >= 2)
}

fn is_bound_person(text: &Text<'_>, at: usize) -> bool {
    is_bound(text, at) || text.has_person_before(at)
}

/// An earlier clause tells enough to be meant as a whole.
pub(super) fn is_bound_event(text: &Text<'_>, at: usize) -> bool {
    let clause = text.clause(at);
    text.names(0, at) >= MANY || (text.names(0, clause) > 0 && clause >= 4)
}

/// What it means is shown later ("fix it: …"), and the text does not begin with it as its
/// subject ("it gives this error: …").
fn is_shown(text: &Text<'_>, at: usize) -> bool {
    text.is_given_after(at) && text.before(at).is_some()
}

/// "Food with gluten in it", "pages that have pictures on them": bound by what has it.
fn has_it(text: &Text<'_>, at: usize) -> bool {
    text.before_is(at, &[Class::Preposition])
        && ["with", "without", "has", "have", "had"]
            .iter()
            .filter_map(|has| text.last_before(at, has))
            .any(|has| text.names(0, has) > 0)
}

/// Times and places that everybody shares.
const SHARED: &[&str] = &[
    "year",
    "week",
    "month",
    "season",
    "summer",
    "winter",
    "spring",
    "autumn",
    "fall",
    "century",
    "decade",
    "morning",
    "evening",
    "afternoon",
    "weekend",
    "world",
    "planet",
    "life",
    "universe",
    "moment",
    "country",
    "earth",
    "age",
    "days",
    "day",
    "era",
    "generation",
    "times",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

fn this_is_free(text: &Text<'_>, at: usize) -> bool {
    let point = text.next(at) == "point" && matches!(text.word(at + 2), "in" | "of");
    // "Is this normal? My screen flickers when …"
    let told_later = text.names(text.sentence_end(at), text.len()) >= 3;
    let sequence =
        (at + 1..at + 12).filter(|at| text.word(*at).starts_with(|c: char| c.is_ascii_digit())).count() >= 3;
    let shown = told_later || sequence || text.is_given_after(at) || text.is_quoted_after(at);
    !SHARED.contains(&text.next(at)) && !point && !shown && !is_bound(text, at)
}

/// Verbs that "that" is the subject of where it is a pronoun.
const THAT_DOES: &[&str] = &[
    "mean", "means", "work", "works", "happen", "happens", "happened", "sound", "sounds", "seem", "seems",
    "look", "looks", "help", "helps", "make", "makes", "matter", "come", "cost", "take",
];

/// Whether "that" is a pronoun here, or points at a part of an answer; else it joins clauses, or
/// points at what everybody knows ("that new-car smell").
fn that_is_pronoun(text: &Text<'_>, at: usize) -> bool {
    const OPENS: [Class; 5] = [Class::Be, Class::Aux, Class::Wh, Class::Preposition, Class::Conjunction];
    let Some(next) = text.after(at) else { return true };
    let previous = text.previous(at);
    if matches!(previous, "something" | "anything" | "everything" | "nothing" | "such" | "so")
        || text.word(next) == "of"
    {
        return false;
    }
    let Some(before) = text.before(at) else { return is_subject(text, at, next) };
    let opens = text.is(before, &OPENS)
        || previous == "not" && before > 0 && text.is(before - 1, &OPENS)
        || matches!(previous, "say" | "think" | "believe" | "guess" | "mean" | "but" | "use" | "exactly");
    // "Is that illegal?"
    let asked = text.sentence_end(at) - at <= 3 && (text.is(before, &[Class::Be]) || previous == "not");
    // "Put that into a table": short, or it joins clauses ("say that on Mars …").
    let object = text.is(next, &[Class::Preposition, Class::Adverb, Class::Conjunction])
        && (text.is_verb(before) || text.is(before, &[Class::Aux, Class::Preposition]))
        && text.sentence_end(at) - at <= 5;
    opens && (asked || is_subject(text, at, next)) || object
}

/// Whether the word after "that" is its verb, or a part of an answer that it points at.
fn is_subject(text: &Text<'_>, at: usize, next: usize) -> bool {
    let counted = text.word(next) == "one"
        && !text.after(next).is_some_and(|next| text.is_name(next) || text.is(next, &[Class::Noun]));
    text.is(at + 1, &[Class::Be, Class::Aux, Class::Noun]) || THAT_DOES.contains(&text.word(next)) || counted
}

/// "Those who wait", "those of Rome", "those messages that I sent".
fn those_is_defined(text: &Text<'_>, at: usize) -> bool {
    matches!(text.next(at), "with" | "of" | "in" | "people" | "days")
        || text.has(at, at + 4, &["who", "that", "whose", "which"])
}

/// The place; not "there is", "hi there", "out there".
fn there_is_free(text: &Text<'_>, at: usize) -> bool {
    const EXISTING: &[&str] =
        &["exist", "exists", "seem", "seems", "any", "a", "an", "no", "some", "anything", "something"];
    let exists = |at: usize| text.is(at, &[Class::Be, Class::Aux]) || EXISTING.contains(&text.word(at));
    let denied = text.previous(at) == "not" && at >= 2 && text.is(at - 2, &[Class::Be]);
    let existential = (denied || text.before(at).is_some_and(exists)) && !text.ends(at)
        || text.after(at).is_some_and(exists);
    let alone = text.before(at).is_none() && text.ends(at);
    let fixed = matches!(text.previous(at), "hi" | "hello" | "hey" | "out" | "over" | "up");
    !existential && !alone && !fixed && !is_bound(text, at)
}

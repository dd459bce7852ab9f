//! Words that stand for something as pronouns do: "one", "the other", "another", "the same",
//! "the second", "instead".

use super::pronoun::{is_bound, is_bound_event};
use super::text::Text;
use super::word::Class;

/// Whether some of them has nothing to stand for.
pub(super) fn is_free(text: &Text<'_>) -> bool {
    (0..text.len()).filter(|at| !text.words[*at].quoted).any(|at| is_free_at(text, at))
}

fn is_free_at(text: &Text<'_>, at: usize) -> bool {
    match text.word(at) {
        "one" | "ones" => one_is_free(text, at),
        "another" => another_is_free(text, at),
        "other" | "others" => other_is_free(text, at),
        "else" => {
            (text.before_is(at, &[Class::Wh]) || at == 1) && !text.has(at, text.sentence_end(at), BESIDES)
        }
        "similar" => similar_is_free(text, at),
        "same" => same_is_free(text, at),
        "many" => {
            text.previous(at) == "how"
                && text.after_is(at, &[Class::Be, Class::Aux])
                && text.names(0, at) == 0
        }
        "differ" | "compare" => {
            text.ends(at) && !text.opens_with_any(&["and", "or", "between", "with", "to", "these"])
        }
        "latter" | "former" => stands_alone(text, at) && !is_bound(text, at),
        "instead" => text.next(at) != "of" && text.ends(at) && !is_bound_event(text, at),
        "both" | "neither" => {
            let part = text.after_is(at, &[Class::Noun]);
            (part || stands_alone(text, at))
                && !is_bound(text, at)
                && !text.opens_with_any(&["and", "or", "nor"])
        }
        // "Which of the two is healthier?"
        _ if text.is(at, &[Class::Number]) => {
            text.previous(at) == "the" && stands_alone(text, at) && !is_bound(text, at)
        }
        _ => text.is(at, &[Class::Ordinal]) && ordinal_is_free(text, at),
    }
}

/// What takes the given things out of "other".
const BESIDES: &[&str] = &["than", "besides", "apart", "like", "except", "similar", "as", "aside"];

fn stands_alone(text: &Text<'_>, at: usize) -> bool {
    text.ends(at) || text.after_is(at, &[Class::Be, Class::Aux])
}

/// "The second one", "which one", "do I need one"; not "no one", "how does one", "one of".
fn one_is_free(text: &Text<'_>, at: usize) -> bool {
    const FOLLOW: [Class; 5] = [Class::Be, Class::Aux, Class::Preposition, Class::Adverb, Class::Conjunction];
    let stands = text.ends(at) || text.after_is(at, &FOLLOW) && text.next(at) != "of";
    let Some(before) = text.before(at).filter(|_| stands && !text.is_given_after(at)) else { return false };
    let previous = text.word(before);
    let subject =
        text.after_is(at, &[Class::Aux]) && !text.is(before, &[Class::Determiner, Class::Ordinal, Class::Wh]);
    if subject
        || text.is(before, &[Class::Aux]) && !matches!(previous, "have" | "had")
        || matches!(previous, "no" | "any" | "every" | "each" | "if" | "when")
    {
        return false;
    }
    let counted = text.is(before, &[Class::Ordinal, Class::Adjective])
        || text.is_name(before)
        || matches!(
            previous,
            "the" | "this" | "that" | "which" | "another" | "other" | "these" | "those" | "a"
        );
    let object =
        text.word(at) == "one" && (text.is_verb(before) || matches!(previous, "have" | "had" | "as" | "for"));
    // "Replace a video with a new one": unlike "it", bound in its own clause too.
    let bound = if counted { text.names(0, before) > 0 } else { is_bound(text, at) };
    (counted || object) && !bound && !text.opens_with_any(&["or", "vs", "versus", "between", "among"])
}

/// "Give me another one", "try another approach"; not "to another account".
fn another_is_free(text: &Text<'_>, at: usize) -> bool {
    let asked = text.before(at).is_none_or(|before| {
        let part = text.is(at + 1, &[Class::Noun, Class::Third]);
        text.is(before, &[Class::Command]) && (part || before == text.clause(at))
            || matches!(text.word(before), "me" | "is" | "there" | "in" | "just" | "need" | "want")
    });
    asked && text.next(at) != "person" && text.names(0, at) == 0
}

/// "The other one", "what others are there", "any other ideas"; not "other than", "each other".
fn other_is_free(text: &Text<'_>, at: usize) -> bool {
    if text.names(0, at) > 0 || text.opens_with_any(BESIDES) {
        return false;
    }
    let plural = text.word(at) == "others";
    match text.previous(at) {
        "the" => {
            text.ends(at)
                || text.after_is(at, &[Class::Noun, Class::Third, Class::Ordinal, Class::Be, Class::Number])
        }
        _ if plural && !text.ends(at) || text.after_is(at, &[Class::Person]) => false,
        "what" | "which" | "any" | "some" | "are" | "there" => true,
        "each" | "every" | "no" | "one" | "on" => false,
        _ => plural && text.before_is(at, &[Class::Determiner]),
    }
}

/// "Give me similar examples"; not "similar to …", "how similar are …".
fn similar_is_free(text: &Text<'_>, at: usize) -> bool {
    text.names(0, at) == 0
        && text
            .after(at)
            .is_some_and(|next| text.is_name(next) || text.is(next, &[Class::Noun, Class::Third]))
        && !text.has(at, text.sentence_end(at), &["to", "like", "between", "and", "as"])
}

/// "The same for Germany", "do the same in Java", "same question"; not "the same as".
fn same_is_free(text: &Text<'_>, at: usize) -> bool {
    const DOES: &[&str] = &["do", "does", "did", "say", "doing", "true", "apply"];
    const REPEATED: &[&str] = &[
        "thing", "question", "problem", "error", "issue", "task", "but", "for", "result", "answer", "code",
        "rule",
    ];
    let begins = at == 0 || at == 1 && text.word(0) == "the";
    let done = text.previous(at) == "the"
        && at >= 2
        && DOES.contains(&text.word(at - 2))
        && !is_bound_event(text, at);
    let repeated = REPEATED.contains(&text.next(at)) && text.names(0, at) == 0;
    (begins || done || repeated) && !text.has(at, text.sentence_end(at), &["as"])
}

/// "Explain the second point", "and the third?"; not "the first step of mitosis", "the last ten
/// years", "the first thing you see".
fn ordinal_is_free(text: &Text<'_>, at: usize) -> bool {
    const COMPLETED: &[&str] = &["of", "in", "to", "for", "when", "on", "from", "between", "that"];
    if text.previous(at) != "the" && at != 0 || text.has_given() || is_bound(text, at) {
        return false;
    }
    let Some(part) = text.after(at).filter(|next| text.is(*next, &[Class::Noun, Class::Number])) else {
        return text.ends(at) && text.names(0, at) == 0;
    };
    if text.is(part, &[Class::Number])
        && text.after(part).is_some_and(|next| !text.is(next, &[Class::Noun, Class::Third, Class::Be]))
    {
        return false;
    }
    let person = text.after_is(part, &[Class::Person, Class::Subject]);
    let told = text.says(part, text.sentence_end(part)) > 0;
    let complete = person || told && COMPLETED.contains(&text.next(part));
    !complete && !matches!(text.word(part), "time" | "times" | "thing" | "name" | "names")
}

//! References to an earlier turn, in so many words.

use super::text::Text;
use super::word::Class;

/// Whether there is one.
pub(super) fn is_made(text: &Text<'_>) -> bool {
    (0..text.len()).filter(|at| !text.words[*at].quoted).any(|at| is_made_at(text, at))
}

fn is_made_at(text: &Text<'_>, at: usize) -> bool {
    match text.word(at) {
        "your" => is_your_turn(text, at),
        "my" => {
            matches!(
                text.next(at),
                "last" | "previous" | "earlier" | "second" | "prior" | "other" | "original"
            ) && matches!(text.word(at + 2), "question" | "message" | "request" | "prompt" | "example")
        }
        "our" => matches!(text.next(at), "conversation" | "chat" | "discussion"),
        "you" => is_deed(text, at),
        "i" | "we" => is_saying(text, at),
        "above" => is_above(text, at),
        "previous" | "original" | "preceding" | "earlier" | "aforementioned" | "above-mentioned" => {
            text.names(0, at) < 2
                && (text.after_is(at, &[Class::Noun])
                    || matches!(text.next(at), "one" | "ones" | "conversation"))
        }
        "mentioned" | "discussed" | "said" | "stated" | "described" | "explained" => {
            let before = matches!(text.next(at), "earlier" | "before" | "previously" | "above");
            before && (text.ends(at + 1) || text.previous(at) == "as") && !text.is_long_before(at)
        }
        "conversation" | "chat" | "discussion" => {
            text.previous(at) == "this" && text.has(at.saturating_sub(3), at, &["in", "of", "from"])
        }
        "far" => text.previous(at) == "so" && text.names(0, text.len()) < 2,
        _ => false,
    }
}

/// "Your last answer", "your code"; not "explain your reasoning" behind a task.
fn is_your_turn(text: &Text<'_>, at: usize) -> bool {
    const WHICH: &[&str] = &[
        "last", "previous", "earlier", "first", "second", "third", "prior", "other", "own", "original",
        "next",
    ];
    const ANSWERS: &[&str] =
        &["answer", "answers", "response", "responses", "reasoning", "explanation", "reply", "replies"];
    const TURNS: &[&str] = &[
        "suggestion",
        "suggestions",
        "example",
        "examples",
        "solution",
        "list",
        "statement",
        "claim",
        "argument",
        "message",
        "output",
        "point",
        "summary",
        "code",
        "translation",
        "calculation",
        "definition",
        "essay",
        "poem",
        "snippet",
        "steps",
        "instructions",
        "advice",
        "recommendation",
        "recommendations",
        "approach",
        "method",
        "plan",
        "proposal",
    ];
    if text.has_given() {
        return false;
    }
    let which = WHICH.contains(&text.next(at));
    let thing = if which { text.word(at + 2) } else { text.next(at) };
    let (answer, turn) = (ANSWERS.contains(&thing), TURNS.contains(&thing));
    which && (answer || turn || matches!(thing, "question" | "story"))
        || answer && text.names(0, at) < 2
        || turn && text.names(0, at) < 4
}

/// What the other side did with words.
const SAID: &[&str] = &[
    "said",
    "mentioned",
    "gave",
    "wrote",
    "suggested",
    "listed",
    "showed",
    "recommended",
    "described",
    "explained",
    "provided",
    "proposed",
    "referred",
    "told",
    "stated",
    "claimed",
    "generated",
    "cited",
    "quoted",
];

/// "As you said", "the code you gave me", "why did you use a map", "you forgot the import".
fn is_deed(text: &Text<'_>, at: usize) -> bool {
    const REASONED: &[&str] =
        &["choose", "calculate", "conclude", "decide", "derive", "pick", "arrive", "say", "mean"];
    const DONE: &[&str] = &[
        "use", "include", "write", "add", "remove", "skip", "change", "put", "mention", "suggest", "replace",
        "ignore", "forget",
    ];
    const FAILED: &[&str] = &[
        "forgot",
        "missed",
        "misunderstood",
        "skipped",
        "left",
        "made",
        "repeated",
        "changed",
        "removed",
        "keep",
        "still",
    ];
    let next = match text.next(at) {
        "just" | "already" | "also" | "previously" => text.word(at + 2),
        "have" | "had" if matches!(text.previous(at), "as" | "what" | "like" | "that") => text.word(at + 2),
        next => next,
    };
    let supposed = matches!(text.previous(at), "if" | "did" | "have" | "when" | "has");
    // "You said that …" at the beginning reports.
    let reports = at == 0 && text.word(2) == "that";
    let told = SAID.contains(&next) && !supposed && !reports && !text.is_long_before(at);
    let asked = text.previous(at) == "did"
        && at >= 2
        && (REASONED.contains(&next) && text.is(at - 2, &[Class::Wh])
            || DONE.contains(&next) && text.word(at - 2) == "why");
    let blamed = at < 3
        && text.before(at).is_none()
        && (FAILED.contains(&next)
            || ["you did not", "you are wrong", "you are right", "you should have"]
                .iter()
                .any(|blame| text.follows(at, blame)));
    told || asked || blamed
}

/// "I meant the other", "what I asked before", "we just discussed".
fn is_saying(text: &Text<'_>, at: usize) -> bool {
    let next = match text.next(at) {
        "just" | "already" | "have" | "had" => text.word(at + 2),
        next => next,
    };
    if text.word(at) == "we" {
        return matches!(next, "discussed" | "talked")
            || next == "were" && matches!(text.word(at + 2), "talking" | "discussing");
    }
    let starts = at < 3 && text.before(at).is_none();
    let asked = next == "asked" && matches!(text.word(at + 2), "for" | "you" | "about") && text.len() <= 10;
    let just = text.next(at) == "just" && matches!(next, "asked" | "said" | "told" | "mentioned" | "sent");
    let before = matches!(next, "asked" | "said" | "mentioned" | "told" | "sent")
        && text.has(at, at + 6, &["earlier", "before", "above"]);
    starts && (matches!(next, "meant" | "mean" | "said") || asked) || just || before
}

/// "The code above", "the above"; not "above the clouds", nor where the text itself has an above.
fn is_above(text: &Text<'_>, at: usize) -> bool {
    const FOLLOW: [Class; 4] = [Class::Be, Class::Aux, Class::Conjunction, Class::Preposition];
    if text.is_long_before(at) {
        return false;
    }
    let last = text.ends(at) || text.after_is(at, &FOLLOW) && text.next(at) != "about";
    let after_noun = text.before(at).is_some_and(|before| !text.is(before, &[Class::Conjunction]))
        && text.names(0, at) < 3;
    matches!(text.previous(at), "the" | "all") || last && after_noun
}

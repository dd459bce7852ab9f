//! An edit of a text that is not there: "remove the comments", "add a docstring".

use super::fragment::start;
use super::text::Text;
use super::word::Class;

/// Longer commands bring what they work on.
const LONG: usize = 12;

/// Whether the text is one.
pub(super) fn is_one(text: &Text<'_>) -> bool {
    let mut at = start(text);
    if text.has_given() || text.is_formula || text.len() > at + LONG {
        return false;
    }
    if matches!(text.word(at), "can" | "could" | "would") && text.next(at) == "you" {
        at += 2;
    }
    let placed = text.has(at, text.len(), &["to", "in", "into", "on", "from", "of", "at", "onto"])
        || text.is_quoted_after(at);
    match text.word(at) {
        "fix" | "correct" | "change" | "translate" | "check" => {
            text.next(at) == "the" && text.len() == at + 3
        }
        "add" | "include" | "incorporate" => !placed && text.count(&[Class::Number]) == 0,
        "remove" | "revise" | "rework" | "redo" | "modify" | "alter" | "adjust" | "rephrase" | "reformat"
        | "refactor" | "rewrite" | "reword" | "shorten" | "expand" | "continue" | "summarize"
        | "summarise" | "undo" | "improve" | "simplify" | "elaborate" | "keep" => {
            matches!(text.next(at), "the" | "on" | "" | "more" | "with" | "using" | "as") && !placed
        }
        _ => false,
    }
}

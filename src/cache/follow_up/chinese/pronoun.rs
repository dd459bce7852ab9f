//! Pronouns without an antecedent.
//!
//! Two characters that name something before a mark bind a pronoun, and so do four before it in
//! its own clause, since Chinese strings clauses together without a mark ("手机黑屏了这个怎么办").

use super::phrase::{Phrases, phrases};
use super::word::{Class, Text};

/// So much named before a pronoun binds it, when no mark stands between.
const MUCH: usize = 4;

/// Whether some pronoun has nothing to stand for.
pub(super) fn is_free(text: &Text) -> bool {
    // Where nothing but particles is left.
    let tail = text
        .tokens
        .iter()
        .rposition(|token| token.names > 0 || token.is(Class::Question) || token.length > 1);
    let one_clause = text.tokens.iter().filter(|token| token.begins).take(2).count() == 1;
    let (mut named, mut named_earlier) = (0, 0);
    for (at, token) in text.tokens.iter().enumerate() {
        if token.begins {
            named_earlier = named;
        }
        if token.is(Class::Third) {
            // "能用在苹果手机上吗，这个"
            let trails = token.begins && at > 0 && at + 1 == text.tokens.len();
            let last = one_clause && tail.is_none_or(|tail| tail <= at);
            if trails || named_earlier < 2 && is_free_at(text, at, named, last) {
                return true;
            }
        }
        named += token.names;
    }
    false
}

fn is_free_at(text: &Text, at: usize, named: usize, last: bool) -> bool {
    let before = if at > 0 { text.word(at - 1) } else { "" };
    match text.word(at) {
        // "林黛玉要嫁给他吗": not bound in its own clause.
        "它" | "它们" | "他" | "她" | "他们" | "她们" => named < 2 || last && named < MUCH,
        "这" | "这样" | "那样" | "这事" | "那事" | "这件事" | "那件事" | "这方面" | "那方面" => {
            named < MUCH && !text.has_given() && stands_alone(text, at) && !ADDRESSED.contains(&before)
        }
        "这个" | "那个" | "这些" | "那些" | "这种" | "那种" | "这款" | "那款" | "这首" | "那首" | "这部"
        | "那部" | "这本" | "那本" | "这张" | "那张" | "这家" | "那家" | "这类" | "那类" => {
            let much = if stands_alone(text, at) { MUCH } else { 2 };
            named < much && !text.has_given() && !ADDRESSED.contains(&before)
        }
        "那个人" | "那人" | "那些人" => named < 2,
        "那里" | "那儿" | "那边" | "那时" | "那次" => {
            named < 2 && !matches!(before, "你" | "我" | "他" | "她")
        }
        "这句" | "那句" | "这段" | "那段" | "这条" | "那条" => named < 2 && !text.has_given(),
        "其" => at == 0,
        "此" | "该" => at == 0 && is_part(text.word(1)),
        _ => false,
    }
}

/// "你这个机器人", "就这样".
const ADDRESSED: &[&str] = &["你", "我", "您", "就", "那么"];

/// A pronoun by itself, or before a part of an answer; not before a name ("这个手机").
fn stands_alone(text: &Text, at: usize) -> bool {
    let Some(next) = text.tokens.get(at + 1) else { return true };
    let word = text.text(next);
    next.begins || phrases(Phrases::Predicate).contains(&word) || is_part(word)
}

fn is_part(word: &str) -> bool {
    phrases(Phrases::Part).contains(&word)
}

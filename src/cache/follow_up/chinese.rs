//! Does a Chinese text lean on what was said before it?
//!
//! Chinese needs neither subject nor object, so most that leans shows it by what it lacks: once
//! the words that name nothing are taken out ("再详细一点", "为什么呢", "怎么做"), nothing is
//! left. Conjunctions that open a turn, a noun and "呢", pronouns and references come on top.
//! Traditional characters are read as simplified ones.

mod edit;
mod phrase;
mod pronoun;
mod reference;
mod word;

use phrase::{Phrases, phrases};
use word::{Class, Text};

/// Whether it does.
pub(super) fn leans(text: &str) -> bool {
    let text = Text::read(text);
    !phrases(Phrases::Complete).contains(&text.said.as_str())
        && (says_nothing(&text)
            || opens_late(&text)
            || asks_by_name(&text)
            || edit::is_one(&text)
            || pronoun::is_free(&text)
            || reference::is_made(&text))
}

/// Whether it points at an earlier turn in so many words.
pub(super) fn refers_back(text: &str) -> bool {
    reference::is_made(&Text::read(text))
}

/// Nothing in it names anything; whoever says "I" or "you" names somebody, unless in asking the
/// other side to do something with its text.
fn says_nothing(text: &Text) -> bool {
    let from = text.after_frame();
    let you = text.said.contains('你');
    let persons = text.tokens[from..]
        .iter()
        .any(|token| token.is(Class::Person) || token.is(Class::Frame) && text.text(token).contains('你'));
    let deeds = you && ["做什么", "干什么", "干嘛"].iter().any(|deed| text.said.contains(deed));
    let asks = text.tokens.iter().any(|token| token.is(Class::Question));
    let names = text.names(from);
    let short = names <= 1 && !you && (text.length() <= 2 || asks && text.length() <= 4);
    (names == 0 || short) && (!persons && !deeds || is_lost(text)) && !asks_for_words(text)
}

/// "我没听懂", "你确定吗".
fn is_lost(text: &Text) -> bool {
    let about_you =
        text.said.contains('你') && !phrases(Phrases::SaidToYou).iter().any(|sign| text.said.contains(sign));
    !about_you && text.names(0) == 0 && phrases(Phrases::Lost).iter().any(|sign| text.said.contains(sign))
}

/// "抱歉用英语怎么说": the words before are meant as words. "你会讲法语吗": an ability.
fn asks_for_words(text: &Text) -> bool {
    const ASKED: &[&str] = &["怎么说", "怎么写", "怎么读", "咋说", "什么"];
    let Some(language) = text.tokens.iter().position(|token| token.is(Class::Language)) else { return false };
    let able =
        text.said.contains('你') && text.word(language + 1) == "吗" && language + 2 == text.tokens.len();
    able || language > text.after_frame() + 1 && ASKED.iter().any(|ask| text.said.contains(ask))
}

/// It begins as only the second of two turns does.
fn opens_late(text: &Text) -> bool {
    let from = text.after_reply();
    let (rest, framed) = (text.rest(from), text.rest(text.after_frame()));
    let opens = |phrase: Phrases| {
        phrases(phrase).iter().any(|opening| rest.starts_with(opening) || framed.starts_with(opening))
    };
    let asks = text.tokens.iter().any(|token| token.is(Class::Question) || text.text(token) == "吗");
    let too = rest.starts_with('太') && rest.ends_with('了') && text.length() <= 5;
    let named = text.tokens.get(from).is_some_and(|first| first.is(Class::Name));
    too || opens(Phrases::Opening)
        || asks && opens(Phrases::OpeningQuestion)
        || !named && opens_with_then(rest)
}

/// "那第二个呢", "那应该怎么做"; not "那你是谁", which asks the same without 那.
fn opens_with_then(rest: &str) -> bool {
    /// Pronouns have a rule of their own.
    const POINTING: &[&str] = &["那年", "那些", "那种", "那个"];
    let Some(after) = rest.strip_prefix("那么").or_else(|| rest.strip_prefix('那')) else { return false };
    if POINTING.iter().any(|pronoun| rest.starts_with(pronoun)) {
        return false;
    }
    let person = after.starts_with(['你', '我', '您', '咱', '么']);
    let about_me = person && !after.contains('你') && Text::read(after).names(0) == 0;
    !person || about_me || after.ends_with('呢') && after.chars().count() <= 4
}

/// "德国呢", "如果下雨呢": a name and 呢, without a question word or a verb.
fn asks_by_name(text: &Text) -> bool {
    let Some(topic) = text.said.strip_suffix('呢') else { return false };
    let asks = text.tokens.iter().any(|token| token.is(Class::Question));
    let conditional = ["如果", "要是", "假如", "万一"].iter().any(|condition| topic.starts_with(condition));
    let verb = phrases(Phrases::Verb).iter().any(|verb| topic.contains(verb));
    let asked = if conditional { !topic.contains('你') } else { !verb && text.names(0) <= 4 };
    !asks && topic.chars().count() <= 20 && asked
}

//! Does an English text lean on what was said before it?

mod dummy;
mod edit;
mod fragment;
mod proform;
mod pronoun;
mod reference;
mod text;
mod word;

use text::Text;

/// Whether it does.
pub(super) fn leans(text: &str) -> bool {
    let lower = lower(text);
    let text = Text::read(&lower);
    !fragment::is_complete(&text)
        && (fragment::is_one(&text)
            || edit::is_one(&text)
            || reference::is_made(&text)
            || pronoun::is_free(&text)
            || proform::is_free(&text))
}

/// Whether it is a greeting, or the like, that nothing has to complete.
pub(super) fn is_complete(text: &str) -> bool {
    let lower = lower(text);
    fragment::is_complete(&Text::read(&lower))
}

/// Whether nothing in it names anything.
pub(super) fn says_nothing(text: &str) -> bool {
    let lower = lower(text);
    fragment::says_nothing(&Text::read(&lower))
}

/// Whether it points at an earlier turn in so many words.
pub(super) fn refers_back(text: &str) -> bool {
    let lower = lower(text);
    reference::is_made(&Text::read(&lower))
}

/// The text in lower case, except that "IT" and "US" written so are not "it" and "us".
fn lower(text: &str) -> String {
    let shouts = !text.chars().any(char::is_lowercase);
    let mut lower = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        match &rest[..word] {
            "IT" if !shouts => lower.push_str("i.t"),
            "US" if !shouts => lower.push_str("u.s"),
            word => lower.extend(word.chars().flat_map(char::to_lowercase)),
        }
        let mark = rest[word..].chars().next();
        lower.extend(mark.map(|mark| if matches!(mark, '’' | '‘') { '\'' } else { mark }));
        rest = &rest[word + mark.map_or(0, char::len_utf8)..];
    }
    lower
}

//! An edit of what is not there: "翻译成英文", "用英语怎么说", "简短一点", "改成表格".

use super::phrase::{Phrases, phrases};
use super::word::{Class, Text};

/// Longer commands bring what they work on, in characters.
const LONG: usize = 12;

/// Whether the text is one.
pub(super) fn is_one(text: &Text) -> bool {
    if text.has_given() || text.length() > LONG {
        return false;
    }
    let from = text.after_frame();
    let rest = text.rest(from);
    let brings = text.names(from) > 3
        || text.tokens.iter().any(|token| token.is(Class::Person) || token.is(Class::Question));
    is_with(rest)
        || !brings && phrases(Phrases::Edit).iter().any(|edit| rest.starts_with(edit))
        || text.length() <= 10 && is_more(rest)
}

/// "用 Python 写一遍": with what, and nothing to do it to.
fn is_with(rest: &str) -> bool {
    let end = rest.trim_end_matches(['呢', '吧', '吗', '一', '下', '遍', '次', '可', '以']);
    rest.starts_with('用') && phrases(Phrases::EditWith).iter().any(|verb| end.ends_with(verb))
}

/// "幽默一点", "语气正式一些", "短点": how, and nothing to be so.
fn is_more(rest: &str) -> bool {
    let rest = rest.trim_end_matches(['吧', '吗', '呢', '啊', '么', '的']);
    phrases(Phrases::More)
        .iter()
        .filter_map(|more| rest.strip_suffix(more))
        .any(|how| (1..=4).contains(&how.chars().count()) && Text::read(how).names(0) == 0)
}

//! Does the answer depend on when the question is asked?
//!
//! "What is new today?" of yesterday has another answer, whatever its likeness. Such questions
//! go past the semantic layer (by default). Words that have other senses too (current, now)
//! count: a question too many costs a hit.

/// Words and phrases of languages that put spaces between words.
const SPACED: &str = include_str!("time_bound/words.txt");

/// Words of languages without spaces, or whose words carry endings; found anywhere.
const ANYWHERE: &str = include_str!("time_bound/signs.txt");

/// The entries of a list: separated by commas, beside lines that name their language.
fn entries(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines().filter(|line| !line.starts_with('#')).flat_map(|line| line.split(", "))
}

/// Whether the text has a word that ties its answer to the time of asking.
pub fn is_time_bound(text: &str) -> bool {
    let lower = text.to_lowercase();
    if entries(ANYWHERE).any(|sign| lower.contains(sign)) {
        return true;
    }
    let words = spaced(&lower);
    entries(SPACED).any(|phrase| has_phrase(&words, phrase))
}

/// The text's words, with one space before, between and after them.
fn spaced(lower: &str) -> String {
    let mut words = String::with_capacity(lower.len() + 2);
    words.push(' ');
    // "today's" and "aujourd'hui": the latter is listed as two words, the former as one.
    let lower = lower.replace("'s ", "s ").replace("’s ", "s ");
    for word in lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        words.push_str(word);
        words.push(' ');
    }
    words
}

fn has_phrase(words: &str, phrase: &str) -> bool {
    words
        .match_indices(phrase)
        .any(|(at, _)| words[..at].ends_with(' ') && words[at + phrase.len()..].starts_with(' '))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_of_time() {
        for text in [
            "What's the news today?",
            "What is today's menu?",
            "TODAY",
            "who is the president now",
            "What is the latest version of Rust?",
            "Which holidays are there this week?",
            "What did they do last night?",
            "What is the weather in Paris?",
            "What time is it in Tokyo?",
            "The meeting is tomorrow, where?",
            "今天有什么新闻",
            "最新的政策是什么",
            "现在几点了",
            "這個月的活動",
            "¿Qué tiempo hace hoy?",
            "Qu'est-ce qui se passe aujourd'hui ?",
            "Was gibt es heute Neues?",
            "Quem é o presidente atual?",
            "Bugün hava nasıl?",
            "Hôm nay có gì mới?",
            "Apa berita hari ini?",
            "Что нового сегодня?",
            "今週の予定は",
            "오늘 날씨 어때",
            "วันนี้มีอะไรใหม่",
            "आज क्या है",
            "ما الجديد اليوم؟",
        ] {
            assert!(is_time_bound(text), "{text}");
        }
    }

    #[test]
    fn words_that_only_hold_such_words() {
        for text in [
            "",
            "How do I know my plan?",
            "Where is the knowledge base?",
            "What is snow made of?",
            "Is there a concurrently running job?",
            "How does the week of a nurse look?",
            "What was this?",
            "这个怎么用",
            "怎么重置密码",
            "¿Cómo restablezco mi contraseña?",
            "Wie funktioniert das?",
            "What happened in the year 1990?",
        ] {
            assert!(!is_time_bound(text), "{text}");
        }
    }

    #[test]
    fn every_phrase_is_found_in_its_listed_form() {
        for phrase in entries(SPACED).chain(entries(ANYWHERE)) {
            assert!(is_time_bound(&format!("x {phrase}? y")), "{phrase}");
            assert_eq!(phrase, phrase.to_lowercase());
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = is_time_bound(&text);
        }

        #[test]
        fn case_and_punctuation_do_not_matter(before in "[a-z]{0,8}", after in "[,.!? ]{1,3}") {
            let text = format!("{} Today{after}", before.to_uppercase());
            prop_assert!(is_time_bound(&text));
        }
    }
}

use proptest::prelude::*;

use super::list::sections;
use super::*;

/// Turns that need an earlier one, by language.
const DEPENDENT: &str = include_str!("tests/dependent.txt");

/// Questions that stand by themselves.
const SELF_CONTAINED: &str = include_str!("tests/self_contained.txt");

fn table(table: &'static str) -> Vec<String> {
    let lines = sections(table).into_iter().flat_map(|(_, lines)| lines);
    lines.map(|line| line.replace("\\n", "\n")).collect()
}

#[test]
fn of_turns_that_lean_on_the_past_few_pass_as_questions() {
    let turns = table(DEPENDENT);
    let missed: Vec<_> = turns.iter().filter(|turn| !is_follow_up(turn)).collect();
    assert!(turns.len() >= 600);
    assert!(missed.len() * 100 <= turns.len(), "{missed:#?}");
}

#[test]
fn of_questions_that_stand_by_themselves_hardly_any_leans() {
    let questions = table(SELF_CONTAINED);
    let leaning: Vec<_> = questions.iter().filter(|question| is_follow_up(question)).collect();
    assert!(questions.len() >= 190);
    assert!(leaning.len() * 100 <= questions.len(), "{leaning:#?}");
}

#[test]
fn case_and_marks_at_the_ends_do_not_matter() {
    for turn in table(DEPENDENT).iter().filter(|turn| is_follow_up(turn)) {
        assert!(is_follow_up(&format!("  {turn}  ")), "{turn}");
        assert!(is_follow_up(&format!("{turn}!!")), "{turn}");
        assert!(is_follow_up(&turn.to_uppercase()), "{turn}");
    }
}

#[test]
fn an_antecedent_in_the_text_is_enough() {
    for (free, bound) in [
        ("Is it safe?", "I bought a ladder. Is it safe?"),
        ("How do I clean it?", "I have a wool carpet, how do I clean it?"),
        ("Where was she born?", "Who was Marie Curie and where was she born?"),
        ("What does it mean?", "What does it mean: \"carpe diem\"?"),
        ("Fix this", "Fix this:\nfn main() { panic }"),
        ("Which one is better?", "Which one is better, tea or coffee?"),
        ("Explain the second point", "Explain the second point of Euclid's proof"),
        ("它安全吗", "我买了一个梯子，它安全吗"),
        ("他是谁", "水浒传的主角叫林冲，他是谁"),
        ("这是什么意思", "这是什么意思：画蛇添足"),
        ("翻译成英文", "翻译成英文：早上好"),
    ] {
        assert!(is_follow_up(free), "{free}");
        assert!(!is_follow_up(bound), "{bound}");
    }
}

#[test]
fn the_first_clause_does_not_bind_its_own_pronoun() {
    assert!(is_follow_up("Can Python do it?"));
    assert!(!is_follow_up("If Python is slow, how do I make it faster?"));
}

#[test]
fn an_it_without_meaning_needs_the_clause_it_stands_for() {
    for (empty, full) in [
        ("Is it safe?", "Is it safe to eat raw eggs?"),
        ("How long does it take?", "How long does it take to boil an egg?"),
        ("What is it like?", "What is it like to live in Berlin?"),
        ("Is it raining there?", "Is it raining in Paris?"),
        ("Is it able to fly to Mars?", "Is it possible to fly to Mars?"),
    ] {
        assert!(is_follow_up(empty), "{empty}");
        assert!(!is_follow_up(full), "{full}");
    }
}

#[test]
fn traditional_characters_are_read_like_simplified_ones() {
    for (traditional, simplified) in [
        ("再說詳細一點", "再说详细一点"),
        ("那應該怎麼辦", "那应该怎么办"),
        ("剛才說的方法不行", "刚才说的方法不行"),
        ("為什麼天空是藍色的", "为什么天空是蓝色的"),
        ("換個說法", "换个说法"),
    ] {
        assert_eq!(is_follow_up(traditional), is_follow_up(simplified), "{traditional}");
    }
}

#[test]
fn a_text_without_a_word_says_nothing() {
    for text in ["", " ", "?", "...", "👍", "🙏🙏"] {
        assert!(is_follow_up(text), "{text:?}");
    }
}

#[test]
fn of_a_long_text_only_the_ends_are_read() {
    let question = "Which of these painters lived in Rome? ";
    let long = |middle: &str| format!("{question}{}{question}", middle.repeat(4 * READ / middle.len()));
    assert!(!is_follow_up(&long("Names of painters. ")));
    // A reference in the middle is not seen, one at the end is.
    let hidden =
        format!("{}As in your last answer. {}", long("Names of painters. "), long("Names of painters. "));
    assert!(!is_follow_up(&hidden));
    assert!(is_follow_up(&format!("{}Do as in your last answer.", long("Names of painters. "))));
}

/// Texts made of words that rules look for, so that all of them meet all others.
fn soup() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        proptest::sample::select(vec![
            "it", "that", "this", "one", "which", "to", "is", "and", "cat", "you", "said", "above", "the",
            "second", "what", "Python", "\"", ":", ",", "\n", ". ", "?", "same", "there", "IT", "other",
            "in", "can't",
        ]),
        proptest::sample::select(vec![
            "它", "这个", "那", "你", "再", "上面", "的", "呢", "手机", "，", "：", "怎么", "用", "英文",
            "9", "說", "一点", "é", "あ",
        ]),
    ];
    proptest::collection::vec((word, any::<bool>()), 0..40).prop_map(|words| {
        words.into_iter().map(|(word, space)| word.to_owned() + if space { " " } else { "" }).collect()
    })
}

proptest! {
    #[test]
    fn never_panics(text in "\\PC*") {
        let _ = is_follow_up(&text);
    }

    #[test]
    fn never_panics_on_words_of_its_own(text in soup()) {
        let _ = is_follow_up(&text);
    }

    #[test]
    fn never_panics_on_long_texts(text in soup(), times in 1usize..2000) {
        let text = text.repeat(times);
        prop_assume!(text.len() < 200_000);
        let _ = is_follow_up(&text);
    }

    #[test]
    fn what_is_read_of_a_text_is_bounded(text in soup(), times in 1usize..4000) {
        let text = text.repeat(times);
        let (head, tail) = ends(&text);
        prop_assert!(text.starts_with(head));
        match tail {
            None => prop_assert!(head.len() == text.len() && head.len() <= 2 * READ),
            Some(tail) => prop_assert!(text.ends_with(tail) && head.len() <= READ && tail.len() <= READ),
        }
    }
}

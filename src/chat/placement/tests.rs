use proptest::prelude::*;

use super::pattern::TEXT;
use super::*;

const RAG: &str = r"(?s)^Context:\n.*\nQuestion: (?<question>[^\n]+)";

fn pattern(pattern: &str) -> Placement {
    Placement::Pattern(QuestionPattern::try_new(pattern).unwrap())
}

fn turn(parts: &[&str]) -> Question {
    Question::try_new(parts.iter().map(|part| (*part).to_owned()).collect()).unwrap()
}

fn placed(placement: &Placement, parts: &[&str]) -> Placed {
    placement.place(turn(parts))
}

/// The turn that question and context came from.
fn whole(placed: &Placed) -> Vec<String> {
    let Placed { question, context } = placed;
    if context.is_empty() {
        return question.parts().to_vec();
    }
    let question = &question.parts()[0];
    let part = |part: &Part| match part {
        Part::None => question.clone(),
        Part::All(text) => text.clone(),
        Part::Around(before, after) => format!("{before}{question}{after}"),
    };
    context.0.iter().map(part).collect()
}

#[test]
fn the_pattern_takes_the_question_out_of_its_context() {
    let placed =
        placed(&pattern(RAG), &["Context:\nRome has seven hills.\nQuestion: How many hills?\nBe brief."]);
    assert_eq!(placed.question.parts(), ["How many hills?"]);
    assert_eq!(
        placed.context.to_json(),
        Json::parse(br#"[["Context:\nRome has seven hills.\nQuestion: ", "\nBe brief."]]"#, 9).unwrap()
    );
}

#[test]
fn without_a_match_the_whole_turn_is_the_question() {
    for parts in [&["How many hills?"][..], &["a", "b"], &["Context:\nx\nQuestion: "]] {
        for placement in [Placement::Turn, pattern(RAG)] {
            let placed = placed(&placement, parts);
            assert_eq!(placed.question, turn(parts));
            assert!(placed.context.is_empty());
        }
    }
}

#[test]
fn a_blank_question_is_none() {
    let placed = placed(&pattern("^(?<question>.*)"), &["  \t\nWhat now?"]);
    assert_eq!(placed.question.parts(), ["  \t\nWhat now?"]);
}

#[test]
fn the_last_part_that_matches_holds_the_question() {
    let placement = pattern("Q: (?<question>.+)");
    let placed = placed(&placement, &["Q: first", "a picture of hills", "Q: second", "bye"]);
    assert_eq!(placed.question.parts(), ["second"]);
    assert_eq!(
        placed.context.to_json(),
        Json::parse(br#"["Q: first", "a picture of hills", ["Q: ", ""], "bye"]"#, 9).unwrap()
    );
}

#[test]
fn the_last_part_is_the_question_and_blank_ones_behind_it_are_not() {
    let placed = placed(&Placement::LastPart, &["Rome has seven hills.", "How many hills?", " "]);
    assert_eq!(placed.question.parts(), ["How many hills?"]);
    assert_eq!(placed.context.to_json(), Json::parse(br#"["Rome has seven hills.", null, " "]"#, 9).unwrap());
}

#[test]
fn a_question_that_fills_its_turn_has_no_context() {
    for placement in [Placement::LastPart, pattern("(?s)^(?<question>.*)$")] {
        let placed = placed(&placement, &["How many hills?"]);
        assert_eq!(placed, Placement::Turn.place(turn(&["How many hills?"])));
    }
}

#[test]
fn longer_texts_than_are_searched_are_questions() {
    let long = format!("Q: {}", "a".repeat(TEXT));
    assert!(placed(&pattern("Q: (?<question>.+)"), &[&long]).context.is_empty());
    assert!(!placed(&pattern("Q: (?<question>.+)"), &[&long[..TEXT]]).context.is_empty());
}

#[test]
fn settings() {
    assert_eq!(Placement::try_new(None, Some("last")), Ok(Placement::LastPart));
    for written in ["Q: (?<question>.+)", "Q: (?P<question>.+)"] {
        assert_eq!(Placement::try_new(Some(written), None), Ok(pattern(written)));
    }
}

#[test]
fn errors_say_what_is_allowed() {
    let long = format!("(?<question>{})", "a".repeat(1000));
    for (written, part, words) in [
        (None, Some("first"), r#"part = "first": "last" is allowed"#),
        (None, None, r#"neither pattern nor part is set: { pattern = "…" } or { part = "last" } is allowed"#),
        (Some("(?<question>.+)"), Some("last"), "both pattern and part are set: one of them is allowed"),
        (
            Some("Q: (.+)"),
            None,
            "the pattern has no group named question: write (?<question>…) around what is the question",
        ),
        (
            Some("(Q|F): (?<question>.+)"),
            None,
            "the pattern has 2 groups: one named question is allowed, write the others as (?:…)",
        ),
        (Some("(?<question>.+"), None, "the pattern is no regular expression: unclosed group"),
        (
            Some(r"(?<question>(?:\w{1,100}){100})"),
            None,
            "the pattern takes more than 128 KiB compiled: write shorter repetitions",
        ),
        (Some(&*long), None, "the pattern has 1013 bytes: up to 1000 are allowed"),
    ] {
        let error = Placement::try_new(written, part).unwrap_err();
        assert_eq!(error.to_string(), words, "{written:?} {part:?}");
    }
}

#[test]
fn usual_patterns_fit() {
    for usual in [
        RAG,
        r"(?s).*<question>(?<question>.*)</question>",
        r"(?is)(?:question|query|frage|问题)\s*[:：]\s*(?<question>[^\n]+)",
        r"(?m)^Q: (?<question>[\w\s',.?-]+)$",
        r"(?s)^(?<question>.*?)\n\n---",
        r"(?<question>\p{L}[\p{L}\p{N}\s]*\?)\s*$",
    ] {
        assert!(QuestionPattern::try_new(usual).is_ok(), "{usual}");
    }
}

fn placements() -> impl Strategy<Value = Placement> {
    prop_oneof![
        Just(Placement::Turn),
        Just(Placement::LastPart),
        Just(pattern(RAG)),
        Just(pattern("a(?<question>.*)b")),
        Just(pattern("(?<question>.+)$")),
        Just(pattern("(?s)^(?<question>.*)$")),
        Just(pattern("x?(?<question>y)?")),
    ]
}

fn turns() -> impl Strategy<Value = Question> {
    proptest::collection::vec(
        "[abxy é问\n]{0,12}|\\PC{0,12}|(Context:\n[ab]{0,4}\nQuestion: [ab]{0,4})",
        1..5,
    )
    .prop_filter_map("blank", Question::try_new)
}

/// A question and what may stand before and after it, without what the pattern looks for.
fn prompts() -> impl Strategy<Value = (String, String, String)> {
    ("[a-z .\n]{0,40}", "[a-z][a-z ?]{0,20}", "(\n[a-z .\n]{0,20})?")
}

fn prompt((context, question, rest): &(String, String, String)) -> Placed {
    placed(&pattern(RAG), &[&format!("Context:\n{context}\nQuestion: {question}{rest}")])
}

proptest! {
    #[test]
    fn question_and_context_hold_every_character_of_the_turn(placement in placements(), turn in turns()) {
        let placed = placement.place(turn.clone());
        prop_assert_eq!(whole(&placed), turn.parts());
        prop_assert!(placed.question.parts().iter().any(|part| !part.trim().is_empty()));
    }

    #[test]
    fn different_turns_stay_different(placement in placements(), a in turns(), b in turns()) {
        let (one, other) = (placement.place(a.clone()), placement.place(b.clone()));
        let same = one.question == other.question && one.context.to_json() == other.context.to_json();
        prop_assert_eq!(same, a == b);
    }

    #[test]
    fn another_context_is_another_scope(a in prompts(), b in prompts()) {
        let b = (b.0, a.1.clone(), b.2);
        let (one, other) = (prompt(&a), prompt(&b));
        prop_assert_eq!(&one.question, &other.question);
        prop_assert_eq!(one.context.to_json() == other.context.to_json(), (a.0, a.2) == (b.0, b.2));
    }

    #[test]
    fn another_question_is_the_same_scope(a in prompts(), question in "[a-z][a-z ?]{0,20}") {
        let b = (a.0.clone(), question, a.2.clone());
        let (one, other) = (prompt(&a), prompt(&b));
        prop_assert_eq!(one.context.to_json(), other.context.to_json());
        prop_assert_eq!(one.question == other.question, a.1 == b.1);
    }

    #[test]
    fn any_pattern_is_compiled_or_refused_in_words(written in "\\PC{0,40}") {
        match QuestionPattern::try_new(&format!("(?<question>{written})")) {
            Ok(pattern) => { let _ = pattern.find(&written); }
            Err(error) => {
                let words = error.to_string();
                prop_assert!(!words.contains('\n') && words.starts_with("the pattern"), "{}", words);
            }
        }
    }
}

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// The lines of a table, without comments, cut at bars.
fn rows(table: &'static str) -> Vec<Vec<&'static str>> {
    let lines = table.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split(" | ").collect()).collect()
}

fn different() -> Vec<Vec<&'static str>> {
    rows(include_str!("tests/different.txt"))
}

fn same() -> Vec<Vec<&'static str>> {
    rows(include_str!("tests/same.txt"))
}

#[test]
fn what_changes_the_answer_is_seen_and_named() {
    let seen: Vec<String> = different()
        .iter()
        .filter_map(|row| {
            let found = difference(row[1], row[2]).map_or("none", Difference::label);
            (found != row[0]).then(|| format!("{found}, not {}: {} | {}", row[0], row[1], row[2]))
        })
        .collect();
    assert!(seen.is_empty(), "{}", seen.join("\n"));
}

#[test]
fn what_changes_nothing_is_let_pass() {
    let refused: Vec<String> = same()
        .iter()
        .filter_map(|row| {
            difference(row[0], row[1]).map(|found| format!("{}: {} | {}", found.label(), row[0], row[1]))
        })
        .collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn who_asks_first_does_not_matter() {
    for row in different() {
        assert_eq!(difference(row[1], row[2]), difference(row[2], row[1]), "{row:?}");
    }
}

#[test]
fn every_difference_has_a_row_and_a_label_of_its_own() {
    let labels: HashSet<&str> = different().iter().map(|row| row[0]).collect();
    assert_eq!(labels.len(), 14);
}

#[test]
fn texts_too_long_to_be_laid_side_by_side_are_compared_by_numbers_and_literals() {
    let long = |extra: &str| format!("{extra} {}", "word after word ".repeat(200));
    let other = |extra: &str| format!("{extra} {}", "line upon line ".repeat(200));
    assert_eq!(difference(&long("enable it"), &other("disable it")), None);
    assert_eq!(difference(&long("run 5"), &other("run 6")), Some(Difference::Numbers));
    assert_eq!(difference(&long("run --fast"), &other("run --slow")), Some(Difference::Code));
}

#[test]
fn in_a_long_text_a_small_difference_is_seen() {
    let text = |word: &str| {
        format!("{} how do I {word} the alarm {}", "one two ".repeat(300), "six ten ".repeat(300))
    };
    assert_eq!(difference(&text("enable"), &text("disable")), Some(Difference::Antonym));
    assert_eq!(difference(&text("enable"), &text("activate")), None);
}

/// Were any step quadratic, this would take minutes.
#[test]
fn long_texts_take_no_long_time() {
    for piece in [
        "不",
        "the ",
        "not ",
        "from a to b ",
        "Java \"x\" ",
        "5 - ",
        "a_b ",
        "enable it. ",
        "-",
        "\"",
        "是不是",
    ] {
        let text = piece.repeat(5_000);
        let _ = difference(&text, &format!("why {text} not"));
        let _ = difference(&text, &format!("{text} enable {text} disable 5"));
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        4 => "[a-zA-Z]{1,8}",
        2 => "[一二三不没能开关上下吗么什北京]{1,4}",
        1 => "[-0-9.,:/+%$#'\"]{1,5}",
        1 => "\\PC{0,5}",
        3 => "(not|enable|disable|from|to|and|Java|--force|only)",
    ];
    prop::collection::vec((pieces, prop::bool::ANY), 0..12).prop_map(|pieces| {
        pieces.into_iter().map(|(piece, space)| if space { piece + " " } else { piece }).collect()
    })
}

proptest! {
    #[test]
    fn never_panics_and_is_symmetric(a in any_text(), b in any_text()) {
        prop_assert_eq!(difference(&a, &b), difference(&b, &a));
    }

    #[test]
    fn never_panics_on_any_characters(a in "\\PC*", b in "\\PC*") {
        prop_assert_eq!(difference(&a, &b).is_some(), difference(&b, &a).is_some());
    }

    #[test]
    fn a_text_does_not_differ_from_itself(text in any_text()) {
        prop_assert_eq!(difference(&text, &format!(" {text} ")), None);
    }

    #[test]
    fn one_word_of_two_opposites_is_always_seen(subject in "(door|alarm|printer) (near|beside) the (desk|stairs)") {
        let ask = |word: &str| format!("How do I {word} the {subject}?");
        prop_assert_eq!(difference(&ask("lock"), &ask("unlock")), Some(Difference::Antonym));
    }
}

use proptest::prelude::*;

use super::*;

fn assert_same(a: &str, b: &str) {
    assert!(same(a, b), "{a:?} {:?}\n{b:?} {:?}", numbers(a), numbers(b));
}

fn assert_different(a: &str, b: &str) {
    assert!(!same(a, b), "{a:?} and {b:?}: {:?}", numbers(a));
}

#[test]
fn forms_of_one_number() {
    for (a, b) in [
        ("Who won in 2022?", "2022: who won"),
        ("How do I send 1,000 dollars?", "How do I send 1000 dollars?"),
        ("What is 1,234,567.50 plus tax?", "what is 1234567.50 plus tax"),
        ("What happens at 5 pm?", "What happens at 5PM?"),
        ("What happens at 5:30 p.m.?", "What happens at 5:30pm?"),
        ("Is 5 percent a lot?", "Is 5% a lot?"),
        ("What are the three laws?", "What are the 3 laws?"),
        ("有３个问题", "有3个问题"),
        ("三个问题怎么办", "3个问题怎么办"),
        ("二〇二四年的法律", "2024年的法律"),
        ("如何一起玩", "怎么一起玩"),
        ("ما هي القوانين ٣؟", "ما هي القوانين 3؟"),
        ("Which one is best?", "What is the best?"),
    ] {
        assert_same(a, b);
    }
}

#[test]
fn different_numbers() {
    for (a, b) in [
        ("Who won in 2022?", "Who won in 2023?"),
        ("Who won in 2022?", "Who won?"),
        ("What is new in 3.5?", "What is new in 35?"),
        ("What is new in 3.5?", "What is new in 3.50?"),
        ("What is new in v2?", "What is new in 2?"),
        ("Is -5 odd?", "Is 5 odd?"),
        ("Is −5 odd?", "Is 5 odd?"),
        ("What is 5 + 3?", "What is 5 - 3?"),
        ("What is 5+3?", "What is 5-3?"),
        ("What is 8 / 2?", "What is 8 * 2?"),
        ("Is 5 more than 7?", "Is 7 more than 5?"),
        ("Is x > 5?", "Is x < 5?"),
        ("What is x^2?", "What is x^3?"),
        ("What is m²?", "What is m³?"),
        ("Is 5% a lot?", "Is 5 a lot?"),
        ("What is $5 worth?", "What is €5 worth?"),
        ("Open at 7 am?", "Open at 7 pm?"),
        ("What came of World War I?", "What came of World War II?"),
        ("What are the two laws?", "What are the three laws?"),
        ("¿Cuánto es 1,000 más dos?", "¿Cuánto es 1000 más dos?"),
        ("Wie viel ist 1,5 Liter?", "Wie viel ist 15 Liter?"),
        ("第一章讲什么", "第二章讲什么"),
        ("3万块够吗", "3块够吗"),
        ("一年有几天", "两年有几天"),
        ("Ring 555-1234?", "Ring 555-1235?"),
        ("On 01/02/2024?", "On 02/01/2024?"),
        ("How many of 10.000?", "How many of 10?"),
        ("Compare 2 to 3 and 3", "Compare 2 to 3"),
        ("Is GPT-4 good?", "Is GPT-3 good?"),
        ("What is ½ cup?", "What is ¼ cup?"),
    ] {
        assert_different(a, b);
        assert_different(b, a);
    }
}

#[test]
fn a_dash_after_a_letter_is_no_sign() {
    assert_eq!(numbers("Is covid-19 over?"), ["19"]);
    assert_eq!(numbers("pages 3-5"), ["3-5"]);
    assert_eq!(numbers("below -3.5 degrees"), ["-3.5"]);
}

#[test]
fn only_whole_groups_of_thousands_lose_their_commas() {
    for (text, number) in [
        ("1,000", "1000"),
        ("12,345,678.9", "12345678.9"),
        ("1,00", "1,00"),
        ("1000,000", "1000,000"),
        ("1,000,00", "1,000,00"),
        ("1.000", "1.000"),
        ("1.5,000", "1.5,000"),
    ] {
        assert_eq!(without_thousands_separators(text.into()), number);
    }
}

proptest! {
    #[test]
    fn any_text_has_the_numbers_it_has(text in "\\PC*") {
        prop_assert!(same(&text, &text));
    }

    #[test]
    fn different_integers_differ(a in any::<u32>(), b in any::<u32>()) {
        prop_assert_eq!(same(&format!("what is {a} worth"), &format!("what is {b} worth")), a == b);
    }

    #[test]
    fn order_of_arguments_is_irrelevant(a in "[0-9a-z .,:%$+-]{0,20}", b in "[0-9a-z .,:%$+-]{0,20}") {
        prop_assert_eq!(same(&a, &b), same(&b, &a));
    }

    #[test]
    fn changing_a_digit_is_seen(before in "[0-9.,:/-]{0,5}", digit in 0_u8..10, after in "[0-9.,:/-]{0,5}") {
        let text = |digit: u8| format!("is it {before}{digit}{after} or not");
        prop_assert!(!same(&text(digit), &text((digit + 1) % 10)));
    }

    #[test]
    fn separators_of_thousands_do_not_count(n in 1_000_u32..) {
        let digits = n.to_string();
        let mut grouped = String::new();
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place) % 3 == 0 {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        let text = |number: &str| format!("how much is {number} in dollars");
        prop_assert!(same(&text(&digits), &text(&grouped)));
    }
}

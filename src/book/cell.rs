//! Values that are text in CSV and Markdown: lists, durations, yes and no.

use std::time::Duration;

use super::skipped::Reason;

/// A list: a JSON array of strings if it begins with `[`, else what `separator` parts.
pub(super) fn list(field: &'static str, text: &str, separator: char) -> Result<Vec<String>, Reason> {
    let text = text.trim();
    if text.starts_with('[') {
        let wrong = |_| value(field, text, "what begins with [ must be a JSON array of strings");
        return serde_json::from_str(text).map_err(wrong);
    }
    Ok(text.split(separator).map(|item| item.trim().to_owned()).collect())
}

/// A list as [`list`] reads it, on one line; `items` have no space around them and none is empty.
pub(super) fn written_list(items: &[String], separator: char, glue: &str) -> String {
    if items.iter().any(|item| item.contains([separator, '\n']) || item.starts_with('[')) {
        return serde_json::Value::from(items).to_string();
    }
    items.join(glue)
}

/// A duration as the config has it; none if nothing is said.
pub(super) fn duration(field: &'static str, text: &str) -> Result<Option<Duration>, Reason> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = |_| value(field, text, "a duration such as 7d or 1h 30m is allowed");
    humantime::parse_duration(text).map(Some).map_err(wrong)
}

/// A duration as people write it, without a space: `1m30s`.
pub(super) fn written_duration(duration: Duration) -> String {
    humantime::format_duration(duration).to_string().replace(' ', "")
}

/// Yes or no, also as spreadsheets have it; no if nothing is said.
pub(super) fn yes(field: &'static str, text: &str) -> Result<bool, Reason> {
    let text = text.trim();
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "1" => Ok(true),
        "no" | "false" | "0" | "" => Ok(false),
        _ => Err(value(field, text, "yes or no is allowed")),
    }
}

fn value(field: &'static str, text: &str, allowed: &'static str) -> Reason {
    Reason::Value { field, value: shortened(text), allowed }
}

/// What a reason shows of a text: enough to find it, not a megabyte.
pub(super) fn shortened(text: &str) -> String {
    const SHOWN: usize = 120;
    let shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_list_is_parted_or_json() {
        assert_eq!(list("tags", " a | b c |d", '|').unwrap(), ["a", "b c", "d"]);
        assert_eq!(list("tags", " [\"a|b\", \"c\"] ", '|').unwrap(), ["a|b", "c"]);
        assert_eq!(list("tags", "a [x]|b", '|').unwrap(), ["a [x]", "b"]);
        for broken in ["[urgent] how?", "[1]", "[\"a\"", "[\"a\"]|b"] {
            list("tags", broken, '|').unwrap_err();
        }
        let said = list("aliases", &format!("[{}", "é".repeat(200)), '|').unwrap_err().to_string();
        let shown = "é".repeat(119);
        assert_eq!(
            said,
            format!("aliases is \"[{shown}…\": what begins with [ must be a JSON array of strings")
        );
    }

    #[test]
    fn durations_are_the_configs() {
        assert_eq!(duration("ttl", " 1h 30m ").unwrap(), Some(Duration::from_mins(90)));
        assert_eq!(duration("ttl", "").unwrap(), None);
        for wrong in ["soon", "7", "-1d", "7 moons"] {
            let said = duration("ttl", wrong).unwrap_err().to_string();
            let expected = format!("ttl is {wrong:?}: a duration such as 7d or 1h 30m is allowed");
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn yes_is_said_in_three_ways() {
        for (text, expected) in [("yes", true), ("TRUE", true), (" 1", true), ("No", false), ("", false)] {
            assert_eq!(yes("pinned", text).unwrap(), expected, "{text:?}");
        }
        let said = yes("pinned", "y").unwrap_err().to_string();
        assert_eq!(said, "pinned is \"y\": yes or no is allowed");
    }

    proptest! {
        #[test]
        fn durations_read_back(duration in any::<Duration>()) {
            prop_assert_eq!(super::duration("ttl", &written_duration(duration)).unwrap(), Some(duration));
        }

        #[test]
        fn lists_read_back(items in prop::collection::vec("[a|,\\[\\]\"\\\\é]([a|,\\[\" \n]{0,3}[a|\\[\"])?", 1..4)) {
            for (separator, glue) in [('|', "|"), (',', ", ")] {
                let written = written_list(&items, separator, glue);
                prop_assert!(!written.contains('\n'));
                prop_assert_eq!(&list("tags", &written, separator).unwrap(), &items);
            }
        }
    }
}

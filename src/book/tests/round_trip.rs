use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::book::record::words;

/// What a text is made of: all that means something in one of the forms, and some that does not.
const PARTS: &[&str] = &[
    "\n",
    "\n",
    "\n",
    "\r\n",
    "\r",
    " ",
    "   ",
    "\t",
    "## ",
    "##",
    "# ",
    "#",
    "### ",
    "\\",
    "\\\\",
    "```",
    "````",
    "~~~",
    "~~~",
    "`",
    "~",
    "sh",
    "Also: ",
    "Tags:",
    "TTL: 7d",
    "Pinned: no",
    ":",
    ",",
    "|",
    "[",
    "]",
    "\"",
    "\"\"",
    "{",
    "}",
    "'",
    ";",
    "=",
    "-",
    "a",
    "b",
    "é",
    "问",
    "\u{feff}",
    "\u{a0}",
    "\u{2028}",
    "\u{85}",
    "\u{b}",
    "\0",
    "🙂",
];

fn text(parts: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    prop::collection::vec(select(PARTS), parts).prop_map(|parts| parts.concat())
}

/// Lines that a Markdown answer may stumble over.
fn lines() -> impl Strategy<Value = String> {
    let line = (select(vec!["", " ", "    ", "\\", "\\\\"]), select(PARTS), select(PARTS));
    let line = line.prop_map(|(indent, first, second)| format!("{indent}{first}{second}"));
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

fn record() -> impl Strategy<Value = Option<Record>> {
    let list = || prop::collection::vec(text(0..5), 0..4);
    let answer = prop_oneof![text(0..30), lines(), any::<String>()];
    let ttl = prop::option::of(any::<Duration>());
    (text(0..6), answer, list(), list(), ttl, any::<bool>()).prop_map(
        |(question, answer, aliases, tags, ttl, pinned)| {
            Record::try_new(Draft { question, answer, aliases, tags, ttl, pinned }).ok()
        },
    )
}

/// Records with questions that differ.
fn records() -> impl Strategy<Value = Vec<Record>> {
    prop::collection::vec(record(), 0..8).prop_map(|records| {
        let mut seen = HashSet::new();
        let new = |record: &Record| seen.insert(words(record.question()));
        records.into_iter().flatten().filter(new).collect()
    })
}

/// The records in these bytes; the test fails at a gap.
fn read_back(form: Form, bytes: &[u8]) -> Vec<Record> {
    let reader = Reader::try_new(form, bytes).unwrap();
    reader
        .map(|item| item.unwrap_or_else(|gap| panic!("{gap}\n{}", String::from_utf8_lossy(bytes))).item)
        .collect()
}

fn has_several_lines(record: &Record) -> bool {
    record.aliases().iter().any(|alias| alias.contains('\n')) || record.question().contains('\n')
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn tables_and_objects_read_back(records in records()) {
        for form in [Form::Csv, Form::Jsonl] {
            let bytes = written(form, &records).unwrap();
            prop_assert_eq!(&read_back(form, &bytes), &records);
        }
    }

    #[test]
    fn documents_read_back_or_are_refused(records in records()) {
        let mut writer = Writer::try_new(Form::Markdown, Vec::new()).unwrap();
        let mut kept = Vec::new();
        for record in records {
            match writer.write(&record) {
                Ok(()) => {
                    prop_assert!(!has_several_lines(&record));
                    kept.push(record);
                }
                Err(WriteError::Unwritable(Unwritable::SeveralLines)) => prop_assert!(has_several_lines(&record)),
                Err(WriteError::Unwritable(Unwritable::Fence)) => {
                    prop_assert!(record.answer().contains("```") || record.answer().contains("~~~"));
                }
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            }
        }
        let bytes = writer.finish().unwrap();
        prop_assert_eq!(&read_back(Form::Markdown, &bytes), &kept);
        let text = String::from_utf8(bytes).unwrap();
        let with_returns = text.replace('\n', "\r\n");
        prop_assert_eq!(&read_back(Form::Markdown, with_returns.as_bytes()), &kept, "with other line endings");
        let title = format!("\u{feff}# Title\n\nText\n{text}\n# Part\n\n");
        prop_assert_eq!(read_back(Form::Markdown, title.as_bytes()), kept, "within a document");
    }

    #[test]
    fn one_form_becomes_another(records in records()) {
        let table = written(Form::Csv, &records).unwrap();
        let objects = written(Form::Jsonl, &read_back(Form::Csv, &table)).unwrap();
        prop_assert_eq!(written(Form::Csv, &read_back(Form::Jsonl, &objects)).unwrap(), table);
    }

    #[test]
    fn whatever_the_bytes_a_reader_ends_and_its_lines_rise(
        bytes in prop_oneof![text(0..60).prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 0..200)],
    ) {
        for form in Form::ALL {
            let heading: &[u8] = if form == Form::Csv { b"question,answer\n" } else { b"" };
            let bytes = [heading, &bytes].concat();
            let all = bytes.split(|byte| *byte == b'\n').count() as u64;
            let mut last = 0;
            for item in Reader::try_new(form, &bytes[..]).unwrap() {
                let (line, last_line) = match item {
                    Ok(numbered) => (numbered.line, numbered.line),
                    Err(gap) => (gap.line, gap.last_line),
                };
                prop_assert!(last < line && line <= last_line && last_line <= all);
                last = last_line;
            }
        }
    }
}

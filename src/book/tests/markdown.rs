use std::time::Duration;

use super::*;

fn markdown(text: &str) -> (Vec<(String, String)>, Vec<String>) {
    summary(Form::Markdown, text)
}

fn render(draft: Draft) -> String {
    String::from_utf8(written(Form::Markdown, &[Record::try_new(draft).unwrap()]).unwrap()).unwrap()
}

#[test]
fn a_heading_for_each_question() {
    let text = "\u{feff}# Our FAQ\r\n\r\nAbout it.\r\n\r\n\
                ## How do I *reset* it? \r\n\
                Also: I forgot it\r\n\
                tags: account, log in\r\n\
                Also: lost: it\r\n\
                TTL: 1h 30m\r\n\
                PINNED: yes\r\n\
                \r\n\
                Choose *Forgot it?*\r\n\
                \r\n\
                ### Then\r\n\
                \r\n    code\r\n\r\n\r\n\
                ## Really\n\
                Yes.\n\
                Tags: are fine";
    let first = Draft {
        aliases: strings(&["I forgot it", "lost: it"]),
        tags: strings(&["account", "log in"]),
        ttl: Some(Duration::from_mins(90)),
        pinned: true,
        ..draft("How do I *reset* it?", "Choose *Forgot it?*\n\n### Then\n\n    code")
    };
    let second = draft("Really", "Yes.\nTags: are fine");
    assert_eq!(read(Form::Markdown, text), [Ok((5, first)), Ok((19, second))]);
    for empty in ["", "# Only a title\n", "text\n"] {
        assert_eq!(read(Form::Markdown, empty), []);
    }
}

#[test]
fn a_fence_holds_no_heading() {
    let text = "```\n## no\n```\n## q\n~~~~sh\n## no\n# no\n\\## no\n~~~\n~~~~\n## r\na\n";
    let answer = "~~~~sh\n## no\n# no\n\\## no\n~~~\n~~~~";
    assert_eq!(markdown(text), (pairs(&[("q", answer), ("r", "a")]), vec![]));
}

#[test]
fn a_title_behind_an_answer_is_a_parts() {
    let text = "## q\na\n# of the answer\nb\n\n# Part 2\n\n# Part 2a\n\n## r\n\n# Part 3\n## s\nb\n";
    let (records, gaps) = markdown(text);
    assert_eq!(records, pairs(&[("q", "a\n# of the answer\nb"), ("s", "b")]));
    assert_eq!(gaps, ["lines 10 to 12: the answer is empty"]);
}

#[test]
fn a_backslash_makes_a_heading_the_answers() {
    let text = "## q\n\n\\## a\n\\\\# b\n\\x\n\\### c\n \\## d\n\\# e\n";
    let answer = "## a\n\\# b\n\\x\n\\### c\n \\## d\n# e";
    assert_eq!(markdown(text), (pairs(&[("q", answer)]), vec![]));
}

#[test]
fn a_bad_record_does_not_stop_the_rest() {
    for (record, expected) in [
        ("##\nx\n", "lines 1 to 2: the question is empty"),
        ("## x\n\n", "lines 1 to 2: the answer is empty"),
        ("## x\nTTL: 1\ny\n", "lines 1 to 3: TTL is \"1\": a duration such as 7d or 1h 30m is allowed"),
        ("## x\nTTL: 1d\nTTL: 1d\ny\n", "lines 1 to 4: there is a second `TTL:` line"),
        ("## x\nTags: a\nAlso: b\nTags: c\ny\n", "lines 1 to 5: there is a second `Tags:` line"),
        (
            "## x\nTags: [a]\ny\n",
            "lines 1 to 3: Tags is \"[a]\": what begins with [ must be a JSON array of strings",
        ),
        ("## x\nPinned: the top\ny\n", "lines 1 to 3: Pinned is \"the top\": yes or no is allowed"),
        (
            "## x\n\nAlso: y\n\nz\n",
            "lines 1 to 5: `Also:` stands beneath an empty line: put it directly beneath the heading, \
             or, if the answer begins with it, put `Pinned: no` there",
        ),
        (
            "## x\n```sh\na\n## y\n```py\nb\n```\n",
            "lines 1 to 7: the code fence on line 2 holds a `## ` line, and another fence opens on line 5",
        ),
        (
            "```sh\na\n## y\n```py\nb\n```\n",
            "lines 1 to 6: the code fence on line 1 holds a `## ` line, and another fence opens on line 4",
        ),
    ] {
        let expected = (pairs(&[("q", "a")]), strings(&[expected]));
        assert_eq!(markdown(&format!("{record}## q\na\n")), expected, "{record:?}");
    }
    let (records, gaps) = summary(Form::Markdown, b"\xff\n## x\n\xff\n## q\na\n");
    assert_eq!((records, gaps), (pairs(&[("q", "a")]), strings(&["lines 2 to 3: is not UTF-8"])));
}

#[test]
fn what_an_open_fence_swallows_is_not_read() {
    let open = |line, lines: &str| {
        strings(&[&format!("{lines}: the code fence on line {line} is not closed up to the end of the file")])
    };
    let text = "## q\na\n## x\n\n```\ny\n## r\nb\n";
    assert_eq!(markdown(text), (pairs(&[("q", "a")]), open(5, "lines 3 to 8")));
    assert_eq!(markdown("# FAQ\n```\n## q\na\n"), (vec![], open(2, "lines 1 to 4")));
}

#[test]
fn a_record_that_is_too_long_ends_where_it_ends() {
    let text = format!("## x\n{}```\n## no\n```\n## q\na\n", "y\n".repeat(MAX_RECORD / 2));
    let (records, gaps) = markdown(&text);
    assert_eq!(records, pairs(&[("q", "a")]));
    assert_eq!(gaps, ["lines 1 to 524292: is longer than 1048576 bytes"]);
    let text = format!("## {}\na\n## q\n{}\n## r\na\n", "x".repeat(MAX_RECORD), "y".repeat(MAX_RECORD));
    let (records, gaps) = markdown(&text);
    assert_eq!((records, gaps.len()), (pairs(&[("r", "a")]), 2));
}

#[test]
fn is_written_as_people_would() {
    let full = Draft {
        aliases: strings(&["So?", "[x] how?"]),
        tags: strings(&["a", "b c"]),
        ttl: Some(Duration::from_hours(36)),
        pinned: true,
        ..draft("How?", "# Steps\n\n1. Go.\n")
    };
    assert_eq!(
        render(full),
        "## How?\nAlso: So?\nAlso: [x] how?\nTags: a, b c\nTTL: 1day12h\nPinned: yes\n\n# Steps\n\n1. Go.\n"
    );
    let tagged = Draft { tags: strings(&["a, b", "c"]), ..draft("q", "a") };
    assert_eq!(render(tagged), "## q\nTags: [\"a, b\",\"c\"]\n\na\n");
    assert_eq!(render(draft("q", "Also: x")), "## q\nPinned: no\n\nAlso: x\n");
    assert_eq!(
        render(draft("q", "## x\n# y\n```\n## z\n```\n# w")),
        "## q\n\n\\## x\n# y\n```\n## z\n```\n\\# w\n"
    );
    let records = [draft("q", "a"), draft("r", "b")].map(|draft| Record::try_new(draft).unwrap());
    assert_eq!(written(Form::Markdown, &records).unwrap(), b"## q\n\na\n\n## r\n\nb\n");
}

#[test]
fn what_cannot_be_expressed_is_refused_and_leaves_nothing() {
    let mut writer = Writer::try_new(Form::Markdown, Vec::new()).unwrap();
    for (refused, expected) in [
        (draft("q\nr", "a"), Unwritable::SeveralLines),
        (Draft { aliases: strings(&["x\ny"]), ..draft("q", "a") }, Unwritable::SeveralLines),
        (draft("q", "a\n```\nb"), Unwritable::Fence),
        (draft("q", "```sh\n## b\n```py\n```"), Unwritable::Fence),
        (draft("q", &"a".repeat(MAX_RECORD)), Unwritable::TooLong),
    ] {
        let refusal = writer.write(&Record::try_new(refused).unwrap()).unwrap_err();
        assert!(matches!(refusal, WriteError::Unwritable(what) if what == expected), "{refusal}");
    }
    writer.write(&Record::try_new(draft("q", "a")).unwrap()).unwrap();
    assert_eq!(writer.finish().unwrap(), b"## q\n\na\n");
}

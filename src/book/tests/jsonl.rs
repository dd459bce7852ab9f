use std::time::Duration;

use super::*;

#[test]
fn an_object_a_line() {
    let text = "\u{feff}{\"answer\":\"Ask.\\r\\nThem.\",\"question\":\" How? \",\"aliases\":[\"So?\"],\
                \"tags\":[\"x\"],\"ttl\":\"1h 30m\",\"pinned\":true}\r\n\
                \n  \n\
                {\"question\":\"q\",\"answer\":\"a\",\"ttl\":null}";
    let first = Draft {
        aliases: strings(&["So?"]),
        tags: strings(&["x"]),
        ttl: Some(Duration::from_mins(90)),
        pinned: true,
        ..draft("How?", "Ask.\nThem.")
    };
    assert_eq!(read(Form::Jsonl, text), [Ok((1, first)), Ok((4, draft("q", "a")))]);
    assert_eq!(read(Form::Jsonl, ""), []);
}

#[test]
fn what_is_not_said_is_not_written() {
    let plain = Record::try_new(draft("q", "a")).unwrap();
    let full = Draft { ttl: Some(Duration::from_hours(36)), pinned: true, ..draft("q\n2", "a") };
    let text = String::from_utf8(written(Form::Jsonl, &[plain, Record::try_new(full).unwrap()]).unwrap());
    assert_eq!(
        text.unwrap(),
        "{\"question\":\"q\",\"answer\":\"a\"}\n\
         {\"question\":\"q\\n2\",\"answer\":\"a\",\"ttl\":\"1day 12h\",\"pinned\":true}\n"
    );
}

#[test]
fn a_bad_line_does_not_stop_the_rest() {
    let lines: [(&[u8], &str); 10] = [
        (b"nonsense", "line 1: is no JSON object"),
        (b"[\"x\",\"y\",[],[],null,false]", "line 1: is no JSON object"),
        (b"{\"question\":\"x\"}", "line 1: missing field `answer` at column 16"),
        (
            b"{\"question\":\"x\",\"answer\":\"y\",\"model\":\"m\"}",
            "line 1: unknown field `model`, expected one of `question`, `answer`, `aliases`, `tags`, `ttl`, `pinned` \
             at column 36",
        ),
        (
            b"{\"question\":\"x\",\"answer\":\"y\",\"ttl\":7}",
            "line 1: invalid type: integer `7`, expected a duration at column 36",
        ),
        (b"{\"question\":\"x\",\"answer\":\"y\"} {}", "line 1: trailing characters at column 31"),
        (b"{\"question\":\"\",\"answer\":\"y\"}", "line 1: the question is empty"),
        (b"{\"question\":\"x\",\"answer\":\" \\n\"}", "line 1: the answer is empty"),
        (b"{\"question\":\"x\",\"answer\":\"\xc3\"}", "line 1: is not UTF-8"),
        (b"{\"question\":\"x\",\"answer\":\"y\",\"ttl\":\"0s\"}", "line 1: the ttl is 0"),
    ];
    for (line, expected) in lines {
        let text = [line, b"\n{\"question\":\"q\",\"answer\":\"a\"}\n"].concat();
        assert_eq!(summary(Form::Jsonl, text), (pairs(&[("q", "a")]), strings(&[expected])));
    }
}

#[test]
fn a_line_that_is_too_long_ends_where_it_ends() {
    let line = |length: usize| {
        let frame = "{\"question\":\"x\",\"answer\":\"\"}\n".len();
        format!("{{\"question\":\"x\",\"answer\":\"{}\"}}\n", "y".repeat(length - frame))
    };
    let text = line(MAX_RECORD + 1) + &line(MAX_RECORD);
    let (records, gaps) = summary(Form::Jsonl, text);
    assert_eq!((records.len(), gaps), (1, strings(&["line 1: is longer than 1048576 bytes"])));
}

#[test]
fn a_reason_does_not_repeat_a_megabyte() {
    let text = format!("{{\"{}\":1}}", "x".repeat(MAX_RECORD / 2));
    let (_, gaps) = summary(Form::Jsonl, text);
    assert!(gaps[0].len() < 200, "{}", gaps[0].len());
}

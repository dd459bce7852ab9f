use std::time::Duration;

use super::*;

fn heading_error(text: &str) -> String {
    Reader::try_new(Form::Csv, text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn columns_stand_in_any_order() {
    let text = "\u{feff}TTL, answer ,pinned,question,tags,aliases\r\n\
                7d,\"Ask, \"\"IT\"\".\r\n\r\nOr wait.\",yes,How?,a|b c,\"[\"\"x|y\"\",\"\"z\"\"]\"\r\n\
                \r\n\
                ,Yes,,Really?,,\r\n";
    let first = Draft {
        aliases: strings(&["x|y", "z"]),
        tags: strings(&["a", "b c"]),
        ttl: Some(Duration::from_hours(7 * 24)),
        pinned: true,
        ..draft("How?", "Ask, \"IT\".\n\nOr wait.")
    };
    assert_eq!(read(Form::Csv, text), [Ok((2, first)), Ok((6, draft("Really?", "Yes")))]);
}

#[test]
fn a_heading_names_known_columns_once() {
    for (text, expected) in [
        ("", "there is no heading"),
        ("\n\r\n", "there is no heading"),
        (
            "question,answer,note\n",
            "the heading has a column \"note\": question, answer, aliases, tags, ttl and pinned are allowed",
        ),
        (
            "question;answer\n",
            "the heading has a column \"question;answer\": \
             question, answer, aliases, tags, ttl and pinned are allowed",
        ),
        (
            "question,answer,\n",
            "the heading has a column \"\": question, answer, aliases, tags, ttl and pinned are allowed",
        ),
        ("question,tags\n", "the heading has no column \"answer\""),
        ("question,answer,Question\n", "the heading names the column \"question\" twice"),
        ("question,\"answer\n", "the heading: a quoted cell is not closed up to the end of the file"),
    ] {
        assert_eq!(heading_error(text), expected, "{text:?}");
    }
    let not_text = Reader::try_new(Form::Csv, &b"question,answer\xff\n"[..]).unwrap_err();
    assert_eq!(not_text.to_string(), "the heading: is not UTF-8");
    let long = format!("question,{}\n", "x".repeat(MAX_RECORD));
    assert_eq!(heading_error(&long), "the heading: is longer than 1048576 bytes");
}

#[test]
fn a_bad_row_does_not_stop_the_rest() {
    let rows: [(&[u8], &str); 10] = [
        (b"a,b,7d,", "line 2: the row has 4 cells, the heading 3"),
        (b"a", "line 2: the row has 1 cells, the heading 3"),
        (b"a,b,soon", "line 2: ttl is \"soon\": a duration such as 7d or 1h 30m is allowed"),
        (b"a,b,0s", "line 2: the ttl is 0"),
        (b" ,b,", "line 2: the question is empty"),
        (b"a,\"\n \",", "lines 2 to 3: the answer is empty"),
        (b"a\xff,b,", "line 2: is not UTF-8"),
        (
            b"a,\"b\" c,",
            "line 2: text follows a closing quote; a quote within a quoted cell is written twice",
        ),
        (
            b"a,\"b \"c\" d\",",
            "line 2: text follows a closing quote; a quote within a quoted cell is written twice",
        ),
        (
            b"a,\"b\"\rc,",
            "line 2: text follows a closing quote; a quote within a quoted cell is written twice",
        ),
    ];
    for (row, expected) in rows {
        let text = [b"question,answer,ttl\n", row, b"\nnext,one,\n"].concat();
        let (records, gaps) = summary(Form::Csv, text);
        assert_eq!((records, gaps), (pairs(&[("next", "one")]), strings(&[expected])));
    }
}

#[test]
fn a_quote_within_a_bare_cell_is_text() {
    let (records, gaps) = summary(Form::Csv, "question,answer\n5\" pipe?,the \"long\" one\ra\n");
    assert_eq!((records, gaps), (pairs(&[("5\" pipe?", "the \"long\" one\na")]), vec![]));
}

#[test]
fn a_byte_order_mark_within_the_file_is_text() {
    let (records, gaps) = summary(Form::Csv, "question,answer\n\u{feff}q,a\n");
    assert_eq!((records, gaps), (pairs(&[("\u{feff}q", "a")]), vec![]));
}

#[test]
fn what_an_open_quote_swallows_is_not_read() {
    let text = "question,answer\na,\"b\nq1,a1\nq2,\"a2\"\nq3,a3\n";
    let stray = "lines 2 to 4: text follows a closing quote; a quote within a quoted cell is written twice";
    assert_eq!(summary(Form::Csv, text), (pairs(&[("q3", "a3")]), strings(&[stray])));

    let text = "question,answer\nq1,a1\na,\"b\nq2,a2\n";
    let open = "lines 3 to 4: a quoted cell is not closed up to the end of the file";
    assert_eq!(summary(Form::Csv, text), (pairs(&[("q1", "a1")]), strings(&[open])));
}

#[test]
fn a_row_that_is_too_long_ends_where_it_ends() {
    let long = "x,\n\"\"".repeat(MAX_RECORD / 4);
    let text = format!("question,answer\na,\"{long}\"\r\nq,a\n");
    let (records, gaps) = summary(Form::Csv, text);
    assert_eq!(records, pairs(&[("q", "a")]));
    assert_eq!(gaps, ["lines 2 to 262146: is longer than 1048576 bytes"]);
}

use std::fs;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::*;

#[test]
fn a_question_that_comes_again_is_passed_over() {
    let text = "{\"question\":\"a  b\",\"answer\":\"\"}\n\
                {\"question\":\"a  b\",\"answer\":\"1\"}\n\
                {\"question\":\" a\\nb\",\"answer\":\"2\"}\n\
                {\"question\":\"A b\",\"answer\":\"3\",\"aliases\":[\"c\"]}\n\
                {\"question\":\"c\",\"answer\":\"4\"}\n\
                {\"question\":\"a b\",\"answer\":\"5\"}\n";
    let (records, gaps) = summary(Form::Jsonl, text);
    assert_eq!(records, pairs(&[("a  b", "1"), ("A b", "3"), ("c", "4")]));
    let again = |line: u64| format!("line {line}: the question stands on line 2 already");
    assert_eq!(gaps, ["line 1: the answer is empty".to_owned(), again(3), again(6)]);
}

/// Gives what it has, and then fails for ever; begins with an interruption.
struct Failing<'a>(&'a [u8], bool);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !std::mem::replace(&mut self.1, true) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("the disk is gone")),
            length => Ok(length),
        }
    }
}

#[test]
fn a_file_that_breaks_off_ends_the_reader() {
    for (form, text) in [
        (Form::Csv, "question,answer\nq,a\nr,\"b"),
        (Form::Csv, "question,answer\nq,a\nr,b"),
        (Form::Jsonl, "{\"question\":\"q\",\"answer\":\"a\"}\n\n{\"question\":\"r\","),
        (Form::Markdown, "## q\na\n## r\nb"),
    ] {
        let mut reader = Reader::try_new(form, BufReader::new(Failing(text.as_bytes(), false))).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().item.question(), "q", "{form}");
        let gap = reader.next().unwrap().unwrap_err();
        assert!(gap.reason.ends_the_file(), "{gap}");
        assert!(gap.to_string().ends_with(": cannot be read: the disk is gone"), "{gap}");
        assert!(reader.next().is_none() && reader.next().is_none(), "half a record is none");
    }
    let gone = Reader::try_new(Form::Jsonl, BufReader::new(Failing(b"", false))).unwrap_err();
    assert!(matches!(gone, OpenProblem::Unreadable(_)), "{gone}");
}

#[test]
fn a_file_is_opened_by_its_extension_or_as_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("faq.md");
    fs::write(&path, "## q\na\n").unwrap();
    let questions = |path: &Path, form| {
        let reader = Reader::open(path, form).map_err(|error| error.to_string())?;
        Ok::<_, String>(reader.filter_map(Result::ok).count())
    };
    assert_eq!(questions(&path, None), Ok(1));
    assert_eq!(questions(&path, Some(Form::Jsonl)), Ok(0));
    let named = |path: &Path, problem: &str| Err(format!("{}: {problem}", path.display()));
    let heading =
        "the heading has a column \"## q\": question, answer, aliases, tags, ttl and pinned are allowed";
    assert_eq!(questions(&path, Some(Form::Csv)), named(&path, heading));

    let unknown = folder.path().join("faq.txt");
    fs::rename(&path, &unknown).unwrap();
    let problem = "\"txt\" is no form of an answer book: csv, jsonl and markdown are; --format names it";
    assert_eq!(questions(&unknown, None), named(&unknown, problem));
    assert_eq!(questions(&unknown, Some(Form::Markdown)), Ok(1));
    assert_eq!(questions(&path, None), named(&path, "No such file or directory (os error 2)"));
    assert!(questions(folder.path(), Some(Form::Jsonl)).is_err(), "a folder is no book");
}

#[test]
fn an_import_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("faq.csv");
    fs::write(&path, "question,answer\na,1\n,2\nb,3\na,4\nc,5\n").unwrap();
    let mut imported = Vec::new();
    let mut resume = Resume::load(&path, Form::Csv, "hr").unwrap();
    for (item, done) in Reader::open(&path, None).unwrap().zip(1..).take(3) {
        imported.extend(item.map(|numbered| numbered.item.into_draft().question));
        resume.store(done).unwrap();
    }
    drop(resume);

    let resume = Resume::load(&path, Form::Csv, "hr").unwrap();
    let done = usize::try_from(resume.done()).unwrap();
    let rest: Vec<_> = Reader::open(&path, None).unwrap().skip(done).collect();
    resume.finish().unwrap();
    assert_eq!(rest[0].as_ref().unwrap_err().to_string(), "line 5: the question stands on line 2 already");
    imported.extend(rest.into_iter().flatten().map(|numbered| numbered.item.into_draft().question));
    assert_eq!(imported, ["a", "b", "c"]);
}

mod csv;
mod jsonl;
mod markdown;
mod reader;
mod round_trip;

use std::io::BufReader;

use super::*;

/// What a book holds: each record as its line and its parts, each gap in words.
fn read(form: Form, bytes: impl AsRef<[u8]>) -> Vec<Result<(u64, Draft), String>> {
    // Small pieces, so that a record comes in many.
    let input = BufReader::with_capacity(7, bytes.as_ref());
    let items = Reader::try_new(form, input).unwrap();
    items
        .map(|item| {
            item.map(|numbered| (numbered.line, numbered.item.into_draft())).map_err(|gap| gap.to_string())
        })
        .collect()
}

/// The questions and answers of the records, and the gaps.
fn summary(form: Form, bytes: impl AsRef<[u8]>) -> (Vec<(String, String)>, Vec<String>) {
    let (mut records, mut gaps) = (Vec::new(), Vec::new());
    for item in read(form, bytes) {
        match item {
            Ok((_, draft)) => records.push((draft.question, draft.answer)),
            Err(gap) => gaps.push(gap),
        }
    }
    (records, gaps)
}

fn draft(question: &str, answer: &str) -> Draft {
    Draft { question: question.into(), answer: answer.into(), ..Draft::default() }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

/// As [`summary`] has them.
fn pairs(texts: &[(&str, &str)]) -> Vec<(String, String)> {
    texts.iter().map(|(question, answer)| ((*question).to_owned(), (*answer).to_owned())).collect()
}

/// What a writer makes of these records.
fn written(form: Form, records: &[Record]) -> Result<Vec<u8>, WriteError> {
    let mut writer = Writer::try_new(form, Vec::new())?;
    for record in records {
        writer.write(record)?;
    }
    Ok(writer.finish()?)
}

//! `refrain export`: write what the cache holds as an answer book.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;
use serde::Deserialize;

use super::import::form_of;
use super::remote::{Remote, percent_encoded};
use crate::book::{Draft, Form, Record, WriteError, Writer};
use crate::cli::{Failure, say};

/// Entries asked for at once.
const PAGE: usize = 200;

/// `refrain export`
#[derive(Debug, Args)]
pub(in crate::cli) struct ExportArgs {
    #[command(flatten)]
    remote: Remote,
    /// The book to write: .csv, .jsonl or .md. One that is there is replaced.
    #[arg(value_name = "FILE")]
    book: PathBuf,
    /// Its form, where the name does not say it.
    #[arg(long)]
    format: Option<Form>,
    /// Answers of this namespace only.
    #[arg(long)]
    namespace: Option<String>,
    /// Answers with this tag only.
    #[arg(long)]
    tag: Option<String>,
    /// Only answers that were pinned.
    #[arg(long)]
    pinned: bool,
}

#[derive(Deserialize)]
struct Page {
    entries: Vec<Exported>,
    #[serde(default)]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Exported {
    question: String,
    #[serde(default)]
    answer: Option<String>,
    tags: Vec<String>,
    #[serde(default)]
    pinned: bool,
}

pub(in crate::cli) async fn export(args: ExportArgs) -> Result<(), Failure> {
    let form = form_of(&args.book, args.format)?;
    // Beside the book until it is whole: an export that breaks off leaves the old one as it was.
    let part = args.book.with_added_extension("part");
    let file = File::create(&part).map_err(|error| format!("{}: {error}", part.display()))?;
    let mut writer = Writer::try_new(form, BufWriter::new(file))?;
    let (mut written, mut passed_over) = (0_u64, 0_u64);
    let bar = ProgressBar::new_spinner();
    let mut cursor = None;
    loop {
        let page: Page = serde_json::from_value(args.remote.get(&args.path(cursor.as_deref())).await?)?;
        for entry in page.entries {
            match record(entry, args.pinned) {
                Entry::Left => {}
                Entry::Unfit => passed_over += 1,
                Entry::Fit(record) => match writer.write(&record) {
                    Ok(()) => written += 1,
                    Err(WriteError::Unwritable(_)) => passed_over += 1,
                    Err(WriteError::Failed(error)) => return Err(error.into()),
                },
            }
            bar.set_message(format!("{written} answers"));
            bar.tick();
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let file = writer.finish()?.into_inner().map_err(|error| error.to_string())?;
    file.sync_all()?;
    std::fs::rename(&part, &args.book)?;
    bar.finish_and_clear();
    say(&format!("{written} answers written to {}.", args.book.display()));
    if passed_over > 0 {
        say(&format!("{passed_over} passed over: no text, or none that the form can hold."));
    }
    Ok(())
}

impl ExportArgs {
    fn path(&self, cursor: Option<&str>) -> String {
        let mut path = format!("/admin/entries?answers=true&limit={PAGE}");
        let parts =
            [("namespace", self.namespace.as_deref()), ("tag", self.tag.as_deref()), ("cursor", cursor)];
        for (name, value) in parts {
            if let Some(value) = value {
                let _ = write!(path, "&{name}={}", percent_encoded(value));
            }
        }
        path
    }
}

/// What becomes of an entry.
enum Entry {
    /// It was not asked for.
    Left,
    /// It is no question with a text for an answer.
    Unfit,
    Fit(Box<Record>),
}

fn record(entry: Exported, pinned_only: bool) -> Entry {
    if pinned_only && !entry.pinned {
        return Entry::Left;
    }
    let Exported { question, answer, tags, pinned } = entry;
    let Some(answer) = answer else { return Entry::Unfit };
    let draft = Draft { question, answer, tags, pinned, ..Draft::default() };
    Record::try_new(draft).map_or(Entry::Unfit, |record| Entry::Fit(Box::new(record)))
}

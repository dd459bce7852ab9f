//! `refrain import`: read an answer book into the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::remote::Remote;
use crate::book::{Draft, Form, Numbered, Reader, Resume, Standing};
use crate::cli::{Failure, bar, say};
use crate::server::{ImportReply, ImportRequest};

/// Records in one request: enough to be fast, and little to do again after an interruption.
const PAGE: usize = 32;

/// How often a service that cannot take records now is asked again, a second apart: encoders load for
/// some seconds when the first text needs them.
const PATIENCE: usize = 60;

/// Of records that were passed over so many are shown; the rest is counted.
const SHOWN: u64 = 20;

/// `refrain import`
#[derive(Debug, Args)]
pub(in crate::cli) struct ImportArgs {
    #[command(flatten)]
    remote: Remote,
    /// The book: .csv, .jsonl or .md (docs/answer-book.md).
    #[arg(value_name = "FILE")]
    book: PathBuf,
    /// Its form, where the name does not say it.
    #[arg(long)]
    format: Option<Form>,
    /// Where the answers are kept.
    #[arg(long, default_value = "default")]
    namespace: String,
    /// Whose they are, as `refrain explain` shows it; everybody's where callers are not told apart.
    #[arg(long)]
    tenant: Option<String>,
    /// A file with a chat request as your callers send it: their model, instructions and parameters.
    /// Its question is replaced by each of the book. Without it, answers are for bare questions.
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    like: Option<PathBuf>,
    /// The model that your callers ask for, when their requests are bare questions.
    #[arg(long, default_value = "default")]
    model: String,
    /// Only read the book, and say what is wrong with it.
    #[arg(long)]
    dry_run: bool,
}

/// What was done so far, in this run.
#[derive(Default)]
struct Tally {
    imported: u64,
    entries: u64,
    exact_only: u64,
    skipped: u64,
}

pub(in crate::cli) async fn import(args: ImportArgs) -> Result<(), Failure> {
    let form = form_of(&args.book, args.format)?;
    let like = args.like()?;
    let length = Reader::open(&args.book, Some(form))?.count() as u64;
    let mut resume = Resume::load(&args.book, form, &args.namespace)?;
    if let Standing::Interrupted = resume.standing() {
        say(&format!("An earlier import came to record {}; going on from there.", resume.done()));
    }
    let bar = bar("{wide_bar} {pos}/{len} {eta}", length);
    let mut tally = Tally::default();
    let mut done = if args.dry_run { 0 } else { resume.done() };
    bar.set_position(done);
    let mut page = Vec::new();
    let mut ended_early = None;
    let places = usize::try_from(done).unwrap_or(usize::MAX);
    for item in Reader::open(&args.book, Some(form))?.skip(places) {
        done += 1;
        bar.inc(1);
        match item {
            Ok(Numbered { line, item }) => page.push((line, item.into_draft())),
            Err(skipped) => {
                tally.skip(&bar, &skipped.to_string());
                if skipped.reason.ends_the_file() {
                    ended_early = Some(skipped.to_string());
                    break;
                }
            }
        }
        if page.len() == PAGE {
            args.send(&like, std::mem::take(&mut page), &bar, &mut tally).await?;
            args.note(&mut resume, done)?;
        }
    }
    args.send(&like, page, &bar, &mut tally).await?;
    bar.finish_and_clear();
    args.report(&tally);
    if let Some(why) = ended_early {
        args.note(&mut resume, done.saturating_sub(1))?;
        return Err(why.into());
    }
    if !args.dry_run {
        resume.finish()?;
    }
    Ok(())
}

impl ImportArgs {
    fn like(&self) -> Result<Value, Failure> {
        let Some(file) = &self.like else {
            return Ok(json!({ "model": self.model, "messages": [{ "role": "user", "content": "?" }] }));
        };
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?)
    }

    async fn send(
        &self,
        like: &Value,
        page: Vec<(u64, Draft)>,
        bar: &ProgressBar,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        if self.dry_run || page.is_empty() {
            tally.imported += page.len() as u64;
            return Ok(());
        }
        let (lines, records): (Vec<_>, Vec<_>) = page.into_iter().unzip();
        let request = ImportRequest {
            namespace: Some(self.namespace.clone()),
            tenant: self.tenant.clone(),
            like: Some(like.clone()),
            records,
        };
        let body = serde_json::to_value(&request)?;
        let mut left = PATIENCE;
        let reply = loop {
            match self.remote.post("/admin/import", &[], &body).await {
                Err(error) if left > 0 && error.to_string().contains(" answered 503:") => {
                    left -= 1;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                reply => break reply?,
            }
        };
        let reply: ImportReply = serde_json::from_value(reply)?;
        tally.imported += reply.imported;
        tally.entries += reply.entries.entries;
        tally.exact_only += reply.entries.exact_only;
        for skipped in reply.skipped {
            let place = lines.get(skipped.index).copied().unwrap_or_default();
            tally.skip(bar, &format!("line {place}: {}", skipped.reason));
        }
        Ok(())
    }

    fn note(&self, resume: &mut Resume, done: u64) -> Result<(), Failure> {
        if !self.dry_run {
            resume.store(done)?;
        }
        Ok(())
    }

    fn report(&self, tally: &Tally) {
        let Tally { imported, entries, exact_only, skipped } = tally;
        if self.dry_run {
            return say(&format!("{imported} answers could be imported, {skipped} records are passed over."));
        }
        say(&format!(
            "{imported} answers imported for {entries} wordings into {}, {skipped} records passed over.",
            self.namespace
        ));
        if *exact_only > 0 {
            say(&format!("{exact_only} wordings are found to the letter only."));
        }
    }
}

impl Tally {
    fn skip(&mut self, bar: &ProgressBar, why: &str) {
        self.skipped += 1;
        if self.skipped <= SHOWN {
            bar.suspend(|| say(&format!("Passed over: {why}")));
        }
    }
}

/// The form that was named, else the one that the book's name says.
pub(super) fn form_of(book: &Path, named: Option<Form>) -> Result<Form, Failure> {
    let by_name =
        || Form::of(book).map_err(|error| format!("{}: {error}; name it by --format", book.display()));
    Ok(named.map_or_else(by_name, Ok)?)
}

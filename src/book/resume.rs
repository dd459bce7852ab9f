//! How far an import came: a small file beside the book, so that one that was interrupted goes on.
//!
//! It says which book it is about by the length, a hash of the first 64 KiB, the form and the
//! namespace. A book of the same length that was changed further behind is taken for the same: the
//! records that were done are not looked at again, and whoever edits a book in the middle of an
//! import removes the file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::form::Form;
use crate::durable::{sync_parent, write_atomically};

/// What is hashed of a book, in bytes.
const HASHED: u64 = 64 * 1024;

/// How far the import of a book into a namespace came.
///
/// For one import at a time: two of the same book overwrite each other's state, and each would
/// begin anew after an interruption.
#[derive(Debug)]
pub struct Resume {
    path: PathBuf,
    import: Import,
    done: u64,
    standing: Standing,
}

/// What was found of an earlier import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing: it begins.
    New,
    /// It was interrupted, and goes on.
    Interrupted,
    /// That of another book, form or namespace: it begins.
    Other,
    /// Something that cannot be understood, and why: it begins.
    Unclear(String),
}

/// Which import it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Import {
    /// SHA-256 of the first 64 KiB, in hex.
    digest: String,
    /// Of the file, in bytes.
    length: u64,
    form: String,
    namespace: String,
}

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    import: Import,
    done: u64,
}

impl Resume {
    /// Looks for what an earlier import of this book left. Blocks. An error if the book or the state
    /// cannot be read; a state that makes no sense is none.
    pub fn load(book: &Path, form: Form, namespace: &str) -> io::Result<Self> {
        let import = Import::of(book, form, namespace)?;
        let path = state_path(book);
        let (done, standing) = match std::fs::read(&path) {
            Ok(bytes) => match serde_json::from_slice::<State>(&bytes) {
                Ok(state) if state.import == import => (state.done, Standing::Interrupted),
                Ok(_) => (0, Standing::Other),
                Err(error) => (0, Standing::Unclear(error.to_string())),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => (0, Standing::New),
            Err(error) => return Err(error),
        };
        Ok(Self { path, import, done, standing })
    }

    /// What was found.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// How many items of the reader are done, those that were passed over included: `skip` as many.
    /// The reader still has to read them, to know the questions that come again.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Where the state is kept: `<book>.refrain-import.json`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps that the first `done` items are done, all of them, in whatever order they were. Blocks
    /// for an fsync: not for every record. After a crash the old state or the new is there, whole.
    pub fn store(&mut self, done: u64) -> io::Result<()> {
        let state = State { import: self.import.clone(), done };
        write_atomically(&self.path, &serde_json::to_vec(&state)?)?;
        self.done = done;
        Ok(())
    }

    /// The import is done: removes the state, which may be missing.
    pub fn finish(self) -> io::Result<()> {
        match std::fs::remove_file(&self.path) {
            Ok(()) => sync_parent(&self.path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Import {
    fn of(book: &Path, form: Form, namespace: &str) -> io::Result<Self> {
        let file = File::open(book)?;
        let length = file.metadata()?.len();
        let mut start = Vec::new();
        file.take(HASHED).read_to_end(&mut start)?;
        let digest = hex::encode(Sha256::digest(&start));
        Ok(Self { digest, length, form: form.to_string(), namespace: namespace.to_owned() })
    }
}

fn state_path(book: &Path) -> PathBuf {
    let mut name = book.as_os_str().to_owned();
    name.push(".refrain-import.json");
    name.into()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A book in a folder of its own.
    fn book(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("faq.v2.csv");
        fs::write(&path, content).unwrap();
        (folder, path)
    }

    fn load(book: &Path) -> Resume {
        Resume::load(book, Form::Csv, "hr").unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names.into_iter().map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn goes_on_where_it_stopped() {
        let (folder, book) = book(b"question,answer\n");
        let mut resume = load(&book);
        assert_eq!((resume.done(), resume.standing()), (0, &Standing::New));
        assert_eq!(names(folder.path()), ["faq.v2.csv"], "looking leaves nothing");
        resume.store(3).unwrap();
        resume.store(7).unwrap();
        drop(resume);
        assert_eq!(
            names(folder.path()),
            ["faq.v2.csv", "faq.v2.csv.refrain-import.json"],
            "nothing else is left"
        );

        let resume = load(&book);
        assert_eq!((resume.done(), resume.standing()), (7, &Standing::Interrupted));
        resume.finish().unwrap();
        assert_eq!(names(folder.path()), ["faq.v2.csv"]);
        let resume = load(&book);
        assert_eq!(resume.standing(), &Standing::New);
        resume.finish().unwrap();
    }

    #[test]
    fn another_import_begins_anew() {
        let start = vec![b'x'; usize::try_from(HASHED).unwrap()];
        let (_folder, book) = book(&[&start[..], b"a"].concat());
        load(&book).store(5).unwrap();
        for (form, namespace) in [(Form::Csv, "default"), (Form::Jsonl, "hr")] {
            let resume = Resume::load(&book, form, namespace).unwrap();
            assert_eq!((resume.done(), resume.standing()), (0, &Standing::Other));
        }
        assert_eq!(load(&book).done(), 5, "looking changes nothing");

        fs::write(&book, [&start[..], b"b"].concat()).unwrap();
        assert_eq!(load(&book).done(), 5, "what is further behind is not looked at");
        fs::write(&book, [&start[..], b"bc"].concat()).unwrap();
        assert_eq!(load(&book).standing(), &Standing::Other);
        fs::write(&book, [b"y", &start[..]].concat()).unwrap();
        assert_eq!(load(&book).standing(), &Standing::Other);

        load(&book).store(1).unwrap();
        assert_eq!((load(&book).done(), load(&book).standing()), (1, &Standing::Interrupted));
    }

    #[test]
    fn a_state_that_makes_no_sense_is_none() {
        let (_folder, book) = book(b"x");
        let path = load(&book).path().to_owned();
        for content in ["", "{\"done\":1}", "nonsense", "[]"] {
            fs::write(&path, content).unwrap();
            let resume = load(&book);
            assert!(matches!(resume.standing(), Standing::Unclear(_)), "{content:?}");
            assert_eq!(resume.done(), 0);
        }
        let mut resume = load(&book);
        resume.store(2).unwrap();
        assert_eq!(load(&book).done(), 2);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing.csv");
        let error = Resume::load(&missing, Form::Csv, "hr").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);

        let (_folder, book) = book(b"x");
        let mut resume = load(&book);
        fs::create_dir(resume.path()).unwrap();
        resume.store(1).unwrap_err();
        assert_eq!(resume.done(), 0, "what was not kept is not done");
        Resume::load(&book, Form::Csv, "hr").unwrap_err();
    }
}

//! The changes in a file, one JSON object a line.
//!
//! Why lines that are appended: the file is the audit trail as well, can be read with any tool, and
//! a crash can tear only the last one. Every doubt about the file (a torn line, a write that failed,
//! a file that was moved away) shows in its length, and has one remedy: it is written anew from
//! memory, with the last 1,000 changes and the older ones in force. Whatever another process wrote
//! into it meanwhile is lost then: the file is ours.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Change, check_words};
use crate::durable::{parent, write_atomically};

/// A file larger than this is made smaller at the start, in bytes. About 5,000 changes.
const LARGE: u64 = 1024 * 1024;

/// The file of changes.
#[derive(Debug)]
pub(super) struct Journal {
    /// `None` for one that keeps nothing.
    path: Option<PathBuf>,
    /// How long the file is when it holds what we wrote, whole.
    length: u64,
}

impl Journal {
    /// Reads the file; a missing one holds nothing.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Vec<Change>)> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        if whole < bytes.len() {
            tracing::warn!(path = %path.display(), "the last switch was torn and is passed over");
        }
        let lines = bytes[..whole].split(|byte| *byte == b'\n').enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty());
        let changes = lines.filter_map(|(index, line)| read_line(path, index + 1, line)).collect();
        Ok((Self { path: Some(path.to_owned()), length: length(&bytes[..whole]) }, changes))
    }

    /// One without a file: every change fails to be kept.
    pub(super) fn nowhere() -> Self {
        Self { path: None, length: 0 }
    }

    fn path(&self) -> io::Result<&Path> {
        self.path.as_deref().ok_or_else(|| io::Error::other("there is no file for switches"))
    }

    /// Whether the file should be made smaller.
    pub(super) fn is_large(&self) -> bool {
        self.length > LARGE
    }

    /// Adds a change; once this returns it survives a crash. `all` gives everything the file must
    /// hold, the change included, should it have to be written anew.
    pub(super) fn append(&mut self, change: &Change, all: impl FnOnce() -> Vec<Change>) -> io::Result<()> {
        let found = match std::fs::metadata(self.path()?) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        // A length of 0 also stands for a file that nothing is known of.
        if found != self.length || found == 0 {
            return self.rewrite(&all());
        }
        let line = lines(std::slice::from_ref(change))?;
        let mut file = File::options().append(true).open(self.path()?)?;
        file.write_all(&line)?;
        file.sync_all()?;
        self.length += length(&line);
        Ok(())
    }

    /// Replaces the file, so that after a crash the old or the new one is there, whole.
    pub(super) fn rewrite(&mut self, changes: &[Change]) -> io::Result<()> {
        // Until all is done nothing is known of the file.
        self.length = 0;
        let content = lines(changes)?;
        let path = self.path()?;
        std::fs::create_dir_all(parent(path))?;
        write_atomically(path, &content)?;
        self.length = length(&content);
        Ok(())
    }
}

fn lines(changes: &[Change]) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for change in changes {
        serde_json::to_writer(&mut lines, change)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

fn read_line(path: &Path, number: usize, line: &[u8]) -> Option<Change> {
    let change = serde_json::from_slice::<Change>(line).map_err(|error| error.to_string());
    let change = change.and_then(|change| {
        check_words(&change.by, &change.reason).map_err(|error| error.to_string())?;
        Ok(change)
    });
    change
        .inspect_err(|error| {
            tracing::warn!(path = %path.display(), line = number, error, "a switch that cannot be read");
        })
        .ok()
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

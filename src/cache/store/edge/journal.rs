//! Purge marks in a small file of their own.
//!
//! Not in a shard, because a purge must never wait behind the optimizer.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::cache::store::{Mark, StoreError, marks};
use crate::durable::write_atomically;

/// All marks, in memory and on disk.
#[derive(Debug)]
pub(super) struct JournalFile {
    path: PathBuf,
    marks: Mutex<Vec<Mark>>,
}

impl JournalFile {
    /// Reads the file; a missing one is an empty journal.
    pub(super) fn open(path: PathBuf) -> Result<Self, StoreError> {
        let marks = match std::fs::read(&path) {
            Ok(json) => serde_json::from_slice(&json).map_err(|error| error.to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.to_string()),
        };
        // Going on without it could bring purged answers back.
        let marks = marks.map_err(|error| {
            StoreError::Unusable(
                format!(
                    "the purge journal {} cannot be read ({error}): move the data folder away to begin an empty \
                     cache",
                    path.display()
                )
                .into(),
            )
        })?;
        Ok(Self { path, marks: Mutex::new(marks) })
    }

    /// All marks.
    pub(super) fn marks(&self) -> Vec<Mark> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a mark; once this returns it survives the process. Blocks on the disk.
    pub(super) fn publish(&self, mark: &Mark) -> Result<(), StoreError> {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let after = marks::with(marks.clone(), mark);
        let failed = |error: String| StoreError::Failed(format!("writing the purge journal: {error}").into());
        let json = serde_json::to_vec_pretty(&after).map_err(|error| failed(error.to_string()))?;
        write_atomically(&self.path, &json).map_err(|error| failed(error.to_string()))?;
        *marks = after;
        Ok(())
    }
}

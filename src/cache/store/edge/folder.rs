//! The data folder: whose it is, and whether this version can read it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cache::store::StoreError;
use crate::durable::write_atomically;

/// The layout below; raised when an older program could no longer read it.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Format {
    format: u32,
}

/// A data folder that no other process uses as long as this value lives.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Creates the folder when it is missing, and takes it.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let unusable = |error: io::Error| {
            StoreError::Unusable(
                format!(
                    "the data folder {} cannot be written to ({error}): give this user the right to, or set \
                     store.path to another folder",
                    path.display()
                )
                .into(),
            )
        };
        std::fs::create_dir_all(path.join("shards")).map_err(unusable)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join("lock"))
            .map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Unusable(
                    format!(
                        "the data folder {} is in use by another process: stop that one, or set store.path to \
                         another folder",
                        path.display()
                    )
                    .into(),
                ));
            }
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        let folder = Self { path: path.to_owned(), _lock: lock };
        folder.check_format(unusable)?;
        Ok(folder)
    }

    fn check_format(&self, unusable: impl Fn(io::Error) -> StoreError) -> Result<(), StoreError> {
        let file = self.path.join("format.json");
        let found = match std::fs::read(&file) {
            Ok(json) => serde_json::from_slice::<Format>(&json).ok(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let json = serde_json::to_vec(&Format { format: FORMAT }).expect("a number is valid JSON");
                return write_atomically(&file, &json).map_err(unusable);
            }
            Err(error) => return Err(unusable(error)),
        };
        match found {
            Some(Format { format: FORMAT }) => Ok(()),
            found => Err(StoreError::Unusable(
                format!(
                    "the data folder {} has format {}, this version reads format {FORMAT}: move the folder away \
                     to begin an empty cache, or run the version that wrote it",
                    self.path.display(),
                    found.map_or("unknown".to_owned(), |found| found.format.to_string()),
                )
                .into(),
            )),
        }
    }

    /// Where the folder lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder that holds one folder for each shard.
    pub(super) fn shards(&self) -> PathBuf {
        self.path.join("shards")
    }

    /// The file of purge marks.
    pub(super) fn journal(&self) -> PathBuf {
        self.path.join("journal.json")
    }
}

/// Bytes on disk of everything below `path`. Edge's files are sparse: their blocks count, not
/// their lengths. What vanishes meanwhile counts as nothing.
pub(super) fn disk_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path()),
            Ok(metadata) => metadata.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

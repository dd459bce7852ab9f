//! Files that survive a crash whole.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Replaces a file's content so that after a crash the old or the new one is there, whole.
pub(crate) fn write_atomically(file: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = file.with_extension("new");
    let mut new = File::create(&temporary)?;
    new.write_all(content)?;
    new.sync_all()?;
    std::fs::rename(&temporary, file)?;
    sync_parent(file)
}

/// Makes a rename or a new name durable: it lies in the folder, which has its own fsync.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    File::open(parent(path))?.sync_all()
}

/// The folder that a path's last name lies in.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

//! The shards of a data folder by name, in a stable order.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use tracing::warn;

use super::shard::Shard;
use crate::cache::embedder::EmbedderId;
use crate::cache::store::StoreError;

/// The shard of entries without a vector.
pub(super) const KEYED: &str = "keyed";

/// In front of an embedder's id, so that no id can name anything but a folder inside the data folder.
const VECTORS: &str = "vectors-";

/// In front of the name of a shard while it is being made.
pub(super) const UNFINISHED: &str = "unfinished-";

/// All open shards.
#[derive(Debug)]
pub(super) struct Shards {
    folder: PathBuf,
    shards: RwLock<BTreeMap<String, Arc<Shard>>>,
}

/// The name of an embedder's shard.
pub(super) fn name(embedder: &EmbedderId) -> String {
    format!("{VECTORS}{embedder}")
}

impl Shards {
    /// Opens every shard there is in `folder`, and creates the one for entries without a vector.
    pub(super) fn open(folder: PathBuf) -> Result<Self, StoreError> {
        let unusable = |error: std::io::Error| {
            StoreError::Unusable(
                format!(
                    "the data folder {} cannot be read ({error}): give this user the right to",
                    folder.display()
                )
                .into(),
            )
        };
        let mut shards = BTreeMap::new();
        for entry in std::fs::read_dir(&folder).map_err(unusable)? {
            let entry = entry.map_err(unusable)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name == KEYED || name.starts_with(VECTORS) {
                shards.insert(name, Arc::new(Shard::open(&entry.path())?));
            } else if !name.starts_with(UNFINISHED) {
                warn!(path = %entry.path().display(), "not a shard; it is left alone");
            }
        }
        let all = Self { folder, shards: RwLock::new(shards) };
        all.get_or_create(KEYED, None)?;
        Ok(all)
    }

    /// The shard with this name.
    pub(super) fn get(&self, name: &str) -> Option<Arc<Shard>> {
        self.shards.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// The shard with this name, made when there is none. Only the writer calls this.
    pub(super) fn get_or_create(
        &self,
        name: &str,
        dimensions: Option<usize>,
    ) -> Result<Arc<Shard>, StoreError> {
        if let Some(shard) = self.get(name) {
            return Ok(shard);
        }
        let shard = Arc::new(Shard::create(&self.folder.join(name), dimensions)?);
        let mut shards = self.shards.write().unwrap_or_else(PoisonError::into_inner);
        shards.insert(name.to_owned(), Arc::clone(&shard));
        Ok(shard)
    }

    /// All shards, by name.
    pub(super) fn all(&self) -> Vec<(String, Arc<Shard>)> {
        let shards = self.shards.read().unwrap_or_else(PoisonError::into_inner);
        shards.iter().map(|(name, shard)| (name.clone(), Arc::clone(shard))).collect()
    }
}

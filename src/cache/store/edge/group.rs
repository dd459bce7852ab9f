//! A group of writes that share one flush.
//!
//! Changes are applied in the order they came; runs of upserts into one shard become one
//! update. What an upsert replaces may lie in another shard (the embedder was changed, or the
//! question had no vector then), so it is looked for in all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use qdrant_edge::{
    CountRequest, PointId, PointInsertOperations, PointOperations, PointStructPersisted, UpdateOperation,
};
use tracing::error;

use super::filter;
use super::shard::Shard;
use super::shards::Shards;
use crate::cache::store::{Selector, StoreError, record};

/// What a write does.
pub(super) enum Change {
    /// Writes a point into the shard of this name, made with these dimensions when missing.
    Upsert { shard: String, dimensions: Option<usize>, point: Box<PointStructPersisted> },
    /// Makes the shard of this name when it is missing.
    Create { shard: String, dimensions: usize },
    /// Deletes in all shards.
    Delete(Selector),
}

/// Where the outcome of a change is found.
pub(super) enum Ticket {
    Upsert { shard: String, run: usize },
    Delete(Result<u64, StoreError>),
    Create(Result<(), StoreError>),
}

/// Changes being applied.
pub(super) struct Group<'a> {
    shards: &'a Shards,
    /// Shards that failed since they were opened: opened anew before they are written to, not
    /// at once, because reads may still work.
    suspects: &'a mut BTreeSet<String>,
    pending: BTreeMap<String, Run>,
    touched: BTreeSet<String>,
    runs: Vec<Result<(), StoreError>>,
}

struct Run {
    number: usize,
    dimensions: Option<usize>,
    points: Vec<PointStructPersisted>,
}

/// How it went.
pub(super) struct Outcomes {
    runs: Vec<Result<(), StoreError>>,
    /// The one flush of each shard that was touched.
    pub(super) flushed: BTreeMap<String, Result<(), StoreError>>,
}

impl Outcomes {
    /// Whether a change is durable, and how many entries it touched.
    pub(super) fn of(&self, ticket: Ticket) -> Result<u64, StoreError> {
        match ticket {
            Ticket::Upsert { shard, run } => {
                self.runs[run].clone()?;
                self.flushed.get(&shard).cloned().unwrap_or(Ok(()))?;
                Ok(1)
            }
            Ticket::Create(outcome) => outcome.map(|()| 0),
            Ticket::Delete(deleted) => {
                let deleted = deleted?;
                for outcome in self.flushed.values() {
                    outcome.clone()?;
                }
                Ok(deleted)
            }
        }
    }
}

impl<'a> Group<'a> {
    pub(super) fn new(shards: &'a Shards, suspects: &'a mut BTreeSet<String>) -> Self {
        Self { shards, suspects, pending: BTreeMap::new(), touched: BTreeSet::new(), runs: Vec::new() }
    }

    /// Adds a change behind the others.
    pub(super) fn add(&mut self, change: Change) -> Ticket {
        match change {
            Change::Upsert { shard, dimensions, point } => {
                // The same key on its way into another shard: one after the other.
                if self.pending.iter().any(|(name, run)| *name != shard && run.has(&point.id)) {
                    self.apply_pending();
                }
                let next = self.runs.len();
                let run = self.pending.entry(shard.clone()).or_insert_with(|| {
                    self.runs.push(Ok(()));
                    Run { number: next, dimensions, points: Vec::new() }
                });
                run.points.push(*point);
                Ticket::Upsert { shard, run: run.number }
            }
            Change::Delete(selector) => {
                self.apply_pending();
                Ticket::Delete(self.delete(&selector))
            }
            Change::Create { shard, dimensions } => {
                Ticket::Create(self.shards.get_or_create(&shard, Some(dimensions)).map(drop))
            }
        }
    }

    /// Applies what is left and makes everything durable.
    pub(super) fn finish(mut self) -> Outcomes {
        self.apply_pending();
        let mut flushed = BTreeMap::new();
        for name in &self.touched {
            let Some(shard) = self.shards.get(name) else { continue };
            let outcome = shard.flush();
            if let Err(error) = &outcome {
                error!(shard = %name, %error, "flushing failed; the group is lost");
                self.suspects.insert(name.clone());
            }
            flushed.insert(name.clone(), outcome);
        }
        Outcomes { runs: self.runs, flushed }
    }

    fn apply_pending(&mut self) {
        for (name, run) in std::mem::take(&mut self.pending) {
            let ids: Vec<_> = run.points.iter().map(|point| point.id).collect();
            let written = self.upsert(&name, run.dimensions, run.points);
            let written = written.and_then(|()| self.remove_elsewhere(&name, &ids));
            if let Err(error) = &written {
                error!(shard = %name, %error, "writing entries failed");
            }
            self.runs[run.number] = written;
        }
    }

    fn upsert(
        &mut self,
        name: &str,
        dimensions: Option<usize>,
        points: Vec<PointStructPersisted>,
    ) -> Result<(), StoreError> {
        let shard = self.shards.get_or_create(name, dimensions)?;
        let upsert = PointOperations::UpsertPoints(PointInsertOperations::PointsList(points));
        self.update(name, &shard, upsert)
    }

    fn remove_elsewhere(&mut self, name: &str, ids: &[PointId]) -> Result<(), StoreError> {
        for (other, shard) in self.shards.all() {
            if other == name {
                continue;
            }
            self.restore(&other, &shard)?;
            let found = shard.with(|edge| edge.retrieve(ids, Some(false.into()), None))?;
            if !found.is_empty() {
                let ids = found.into_iter().map(|record| record.id).collect();
                self.update(&other, &shard, PointOperations::DeletePoints { ids })?;
            }
        }
        Ok(())
    }

    fn delete(&mut self, selector: &Selector) -> Result<u64, StoreError> {
        let filter = filter::all_of(&record::conditions(selector));
        let mut deleted = 0;
        for (name, shard) in self.shards.all() {
            self.restore(&name, &shard)?;
            let request = CountRequest { filter: filter.clone(), exact: true };
            let count = shard.with(|edge| edge.count(request))?;
            if count > 0 {
                let filter = filter.clone().unwrap_or_else(filter::anything);
                self.update(&name, &shard, PointOperations::DeletePointsByFilter(filter))?;
                deleted += count as u64;
            }
        }
        Ok(deleted)
    }

    fn update(
        &mut self,
        name: &str,
        shard: &Arc<Shard>,
        operation: PointOperations,
    ) -> Result<(), StoreError> {
        self.restore(name, shard)?;
        self.touched.insert(name.to_owned());
        let outcome = shard.with(|edge| edge.update(UpdateOperation::PointOperation(operation)));
        if outcome.is_err() {
            self.suspects.insert(name.to_owned());
        }
        outcome
    }

    /// Opens a shard that failed anew.
    fn restore(&mut self, name: &str, shard: &Shard) -> Result<(), StoreError> {
        if self.suspects.contains(name) {
            shard.reopen()?;
            self.suspects.remove(name);
        }
        Ok(())
    }
}

impl Run {
    fn has(&self, id: &PointId) -> bool {
        self.points.iter().any(|point| point.id == *id)
    }
}

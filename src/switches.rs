//! What an operator can flip within a second, without a restart.
//!
//! Why beside the config: at three in the morning a provider that answers nonsense must be out of
//! the way at once, by someone who edits no file and restarts nothing, and the next shift must see
//! who did it, why, and until when.
//!
//! A switch never forces anything on: "on" means "as configured". So each thing is on unless
//! someone switched it off, but for `cache_only`, which is off unless someone switched it on. A
//! switch with an end falls back by itself.
//!
//! A flip is in force in memory first and is then written to a file, fsync included, before the
//! operator is told. When the disk is full, read-only or hangs, the switch is in force all the same,
//! since whoever flips it has one trouble already, and the operator is told that it will not survive
//! a restart ([`Kept::InMemory`]). The next flip that can be written brings everything along that
//! could not.

mod file;
mod target;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::clock::Timestamp;
use file::Journal;

pub use target::{Feature, InvalidTarget, Subject, Target};

/// Changes remembered, in memory and when the file is made smaller.
const MAX_AUDIT: usize = 1_000;
/// Switches at once.
const MAX_SWITCHES: usize = 1_000;
/// The longest names and reasons, in characters.
const MAX_BY: usize = 100;
const MAX_REASON: usize = 500;

/// All switches. Shared by all threads: asking is one atomic load while nothing is flipped, and a
/// short read lock that no disk ever holds otherwise.
#[derive(Debug)]
pub struct Switches {
    /// Whether there is any switch; so that asking costs next to nothing on an ordinary day.
    any: AtomicBool,
    state: RwLock<State>,
    /// What the config says, where no operator says otherwise. Locked after `state`, if both are.
    configured: RwLock<Vec<(Target, bool)>>,
    /// Locked after `state` was released, and for as long as the disk takes.
    journal: Mutex<Journal>,
}

/// What an operator wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flip {
    /// What is to be switched.
    pub target: Target,
    /// On or off; `None` takes the switch away, and everything is as configured again.
    pub on: Option<bool>,
    /// Who wants it; 1 to 100 characters.
    pub by: String,
    /// Why; 1 to 500 characters.
    pub reason: String,
    /// From this moment on it is as if it had never been switched; never, when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// A switch in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// What is switched.
    pub target: Target,
    /// On or off.
    pub on: bool,
    /// Who did it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
    /// Until when; until it is taken away, when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// An entry of the audit trail, and a line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Counts up with each change, over restarts too. Lines may stand in the file in another order:
    /// of two changes to one target the higher number holds.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// What.
    pub target: Target,
    /// To what; `None` when the switch was taken away.
    pub on: Option<bool>,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// How safe a change is, which is in force either way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kept", rename_all = "snake_case")]
#[must_use = "an operator must learn that a switch will not survive a restart"]
pub enum Kept {
    /// On disk: it survives a restart.
    OnDisk,
    /// Not on disk: after a restart it is as it was before the change. It gets there with the next
    /// change that can be written.
    InMemory {
        /// What the disk said.
        error: String,
    },
}

/// Why nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidFlip {
    /// Who did it is missing, too long, or holds control characters.
    #[error("by must have 1 to {MAX_BY} characters, none of them a control character")]
    By,
    /// Why is missing, too long, or holds control characters.
    #[error("reason must have 1 to {MAX_REASON} characters, none of them a control character")]
    Reason,
    /// It would end before it begins, or there is nothing to end.
    #[error("until must lie in the future, and goes with on or off only")]
    Until,
    /// There are too many.
    #[error("there are {MAX_SWITCHES} switches already: clear some first")]
    TooMany,
}

/// Why the switches cannot be known at the start.
#[derive(Debug, Error)]
#[error(
    "the file of switches {} cannot be read ({source}): make it readable, or move it away to start with everything \
     as configured",
    path.display()
)]
pub struct UnreadableSwitches {
    path: PathBuf,
    source: std::io::Error,
}

#[derive(Debug, Default)]
struct State {
    /// The changes that set what is switched now, sorted by target; may hold some that are over.
    set: Vec<Change>,
    /// The last changes, the latest last.
    audit: VecDeque<Change>,
}

impl Switches {
    /// The switches as they were, from the file at `path`; a missing file is one without switches.
    /// Blocks on the disk, but for one missing writes nothing.
    ///
    /// A last line that is torn, as a crash leaves it, is passed over; any other line that cannot
    /// be read costs that one change and a warning. A file that is there and cannot be read is an
    /// error: going on without it would turn on again what an operator switched off.
    pub fn open(path: &Path) -> Result<Self, UnreadableSwitches> {
        let (journal, changes) =
            Journal::open(path).map_err(|source| UnreadableSwitches { path: path.to_owned(), source })?;
        let state = State::replayed(changes);
        let switches = Self {
            any: AtomicBool::new(!state.set.is_empty()),
            state: RwLock::new(state),
            configured: RwLock::default(),
            journal: Mutex::new(journal),
        };
        switches.make_smaller(path);
        Ok(switches)
    }

    /// Switches without a file: for whoever only looks at a config, and for tests.
    pub fn in_memory() -> Self {
        Self {
            any: AtomicBool::new(false),
            state: RwLock::default(),
            configured: RwLock::default(),
            journal: Mutex::new(Journal::nowhere()),
        }
    }

    /// Whether `subject` is on at `now`. Each subject stands for itself: a target of a provider that
    /// is off is on here, so whoever chooses one asks for the model, the provider and the target.
    pub fn is_on<'a>(&self, subject: impl Into<Subject<'a>>, now: Timestamp) -> bool {
        let subject = subject.into();
        // A flip happens before the operator is told, and the flag is raised in between: whoever
        // asks after the operator was told sees both.
        if !self.any.load(Ordering::Acquire) {
            return subject.on_by_default();
        }
        let switched = self.read().switched(subject, now);
        switched.or_else(|| self.configured(subject)).unwrap_or_else(|| subject.on_by_default())
    }

    /// What the config says of a subject.
    fn configured(&self, subject: Subject<'_>) -> Option<bool> {
        let configured = self.configured.read().unwrap_or_else(PoisonError::into_inner);
        configured.iter().find(|(target, _)| target.subject() == subject).map(|(_, on)| *on)
    }

    /// Takes over what the config switches, in place of what it said before. What an operator has
    /// switched counts for more, until it is cleared or over. In force once this returns.
    pub fn configure(&self, configured: Vec<(Target, bool)>) {
        let state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        self.any.store(!configured.is_empty() || !state.set.is_empty(), Ordering::Release);
        *self.configured.write().unwrap_or_else(PoisonError::into_inner) = configured;
    }

    /// What the config switches.
    pub fn from_config(&self) -> Vec<(Target, bool)> {
        self.configured.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// [`set`](Self::set) and then [`keep`](Self::keep). Blocks on the disk, so it is not for a thread
    /// of the runtime.
    pub fn flip(&self, flip: Flip, now: Timestamp) -> Result<Kept, InvalidFlip> {
        let change = self.set(flip, now)?;
        Ok(self.keep(&change))
    }

    /// Sets a switch, replaces the one on the same target, or takes it away; taking away what is not
    /// switched is a change too, since someone wanted to be sure. In force, in memory, once this
    /// returns; waits for no disk.
    pub fn set(&self, flip: Flip, now: Timestamp) -> Result<Change, InvalidFlip> {
        check_words(&flip.by, &flip.reason)?;
        if flip.until.is_some_and(|until| until <= now || flip.on.is_none()) {
            return Err(InvalidFlip::Until);
        }
        let change = self.apply(flip, now)?;
        let Change { number, target, on, by, reason, .. } = &change;
        tracing::info!(number, switch = %target, on, by, reason, "switched");
        Ok(change)
    }

    /// Writes a change that is in force to the file, so that it survives a restart. Blocks on the
    /// disk, for as long as that takes.
    pub fn keep(&self, change: &Change) -> Kept {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let written = journal.append(change, || self.read().all());
        drop(journal);
        let Change { number, target, .. } = change;
        match written {
            Ok(()) => Kept::OnDisk,
            Err(error) => {
                tracing::warn!(%error, number, switch = %target, "a switch is in force but not on disk");
                Kept::InMemory { error: error.to_string() }
            }
        }
    }

    fn apply(&self, flip: Flip, now: Timestamp) -> Result<Change, InvalidFlip> {
        let Flip { target, on, by, reason, until } = flip;
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.forget_ended(now);
        if on.is_some() && state.set.len() >= MAX_SWITCHES && state.find(target.subject()).is_err() {
            return Err(InvalidFlip::TooMany);
        }
        let number = state.audit.back().map_or(1, |last| last.number.saturating_add(1));
        let change = Change { number, at: now, target, on, by, reason, until };
        state.apply(change.clone());
        let configured = self.configured.read().unwrap_or_else(PoisonError::into_inner);
        self.any.store(!state.set.is_empty() || !configured.is_empty(), Ordering::Release);
        Ok(change)
    }

    /// The switches in force, sorted by target.
    pub fn list(&self, now: Timestamp) -> Vec<Switch> {
        self.read().set.iter().filter(|change| change.holds(now)).filter_map(Change::as_switch).collect()
    }

    /// The last 1,000 changes, the latest last.
    pub fn audit(&self) -> Vec<Change> {
        self.read().audit.iter().cloned().collect()
    }

    /// Rewrites a file that has grown large. No harm when it fails: the file stays as it is.
    fn make_smaller(&self, path: &Path) {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        if !journal.is_large() {
            return;
        }
        let all = self.read().all();
        if let Err(error) = journal.rewrite(&all) {
            tracing::warn!(%error, path = %path.display(), "the file of switches is large and stays so");
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The state after all changes, however they are ordered.
    fn replayed(mut changes: Vec<Change>) -> Self {
        changes.sort_by_key(|change| change.number);
        // A change that was written anew with all others may be in the file twice.
        changes.dedup_by_key(|change| change.number);
        let mut state = Self::default();
        for change in changes {
            state.apply(change);
        }
        state
    }

    fn apply(&mut self, change: Change) {
        match (self.find(change.target.subject()), change.on) {
            (Ok(index), Some(_)) => self.set[index] = change.clone(),
            (Err(index), Some(_)) => self.set.insert(index, change.clone()),
            (Ok(index), None) => drop(self.set.remove(index)),
            (Err(_), None) => {}
        }
        self.audit.push_back(change);
        if self.audit.len() > MAX_AUDIT {
            self.audit.pop_front();
        }
    }

    fn find(&self, subject: Subject<'_>) -> Result<usize, usize> {
        self.set.binary_search_by(|change| change.target.subject().cmp(&subject))
    }

    fn switched(&self, subject: Subject<'_>, now: Timestamp) -> Option<bool> {
        let change = &self.set[self.find(subject).ok()?];
        change.on.filter(|_| change.holds(now))
    }

    fn forget_ended(&mut self, now: Timestamp) {
        self.set.retain(|change| change.holds(now));
    }

    /// What a file must hold that is written anew, in order: the audit trail, and before it the
    /// changes that are older and still in force.
    fn all(&self) -> Vec<Change> {
        let first = self.audit.front().map_or(u64::MAX, |change| change.number);
        let mut all: Vec<_> = self.set.iter().filter(|change| change.number < first).cloned().collect();
        all.sort_by_key(|change| change.number);
        all.extend(self.audit.iter().cloned());
        all
    }
}

impl Change {
    fn holds(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    fn as_switch(&self) -> Option<Switch> {
        Some(Switch {
            target: self.target.clone(),
            on: self.on?,
            by: self.by.clone(),
            reason: self.reason.clone(),
            since: self.at,
            until: self.until,
        })
    }
}

fn check_words(by: &str, reason: &str) -> Result<(), InvalidFlip> {
    let fine = |text: &str, longest| {
        !text.trim().is_empty() && text.chars().count() <= longest && !text.contains(char::is_control)
    };
    if !fine(by, MAX_BY) {
        return Err(InvalidFlip::By);
    }
    if !fine(reason, MAX_REASON) {
        return Err(InvalidFlip::Reason);
    }
    Ok(())
}

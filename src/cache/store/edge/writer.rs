//! The one thread that changes shards: it updates, flushes and optimizes.
//!
//! One thread, because Edge's `flush` panics when another write holds its lock. Writes that
//! arrive within [`GATHER`] of each other form a group and share a flush; each is acknowledged
//! after that flush.
//!
//! While the optimizer runs, writes wait in the queue and reads go on. It does not run beside
//! the writes, because Edge then keeps deletions in memory until it is done: one that was
//! acknowledged would not outlive a crash.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;
use tracing::{error, info};

use super::folder::disk_bytes;
use super::group::{Change, Group};
use super::shards::Shards;
use crate::cache::store::StoreError;

/// How long the first write of a group waits for others. Nobody waits for a write but the
/// write-back task, so a few milliseconds buy many writes per flush.
const GATHER: Duration = Duration::from_millis(10);

/// The most writes in one group: bounds how long the last of them waits for its flush.
const GROUP: usize = 512;

/// What may wait in the queue, in bytes of entries.
const QUEUE: usize = 64 << 20;

/// So long without a write, and the thread tidies up.
const IDLE: Duration = Duration::from_secs(1);

/// After so many writes it tidies up even if it is never idle: the longer the optimizer is put
/// off, the longer it takes. About what makes a segment large enough for a graph.
const OVERDUE: usize = 20_000;

/// A group is refused when less than this is left on the disk. Edge maps sparse files into
/// memory: on a disk that is really full, touching one kills the process.
const SPARE_DISK: u64 = 256 << 20;

/// A change on its way, and who waits for it.
pub(super) struct Write {
    pub(super) change: Change,
    pub(super) done: oneshot::Sender<Result<u64, StoreError>>,
    _room: OwnedSemaphorePermit,
}

/// How the free bytes of the disk that holds a path are learned.
pub(super) type FreeSpace = Box<dyn Fn() -> std::io::Result<u64> + Send>;

/// The queue in front of the thread.
#[derive(Debug)]
pub(super) struct Writer {
    room: Arc<Semaphore>,
    queue: Mutex<Option<Sender<Write>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    disk_bytes: Arc<AtomicU64>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(
        shards: Arc<Shards>,
        folder: PathBuf,
        free_space: FreeSpace,
    ) -> Result<Self, StoreError> {
        let (queue, writes) = channel();
        let disk_bytes = Arc::new(AtomicU64::new(0));
        let thread = Thread { shards, folder, free_space, writes, disk_bytes: Arc::clone(&disk_bytes) };
        thread.measure();
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || thread.run())
            .map_err(|error| StoreError::Unavailable(format!("no thread for the writer: {error}").into()))?;
        Ok(Self {
            room: Arc::new(Semaphore::new(QUEUE)),
            queue: Mutex::new(Some(queue)),
            thread: Mutex::new(Some(thread)),
            disk_bytes,
        })
    }

    /// Queues a change of about `bytes` and waits until it is durable; returns how many entries
    /// it touched.
    ///
    /// Dropping the future while the change still waits for room or in the queue withdraws an
    /// upsert; a deletion goes on.
    pub(super) async fn write(&self, change: Change, bytes: usize) -> Result<u64, StoreError> {
        let bytes = u32::try_from(bytes.clamp(1, QUEUE)).expect("the queue's size fits");
        let closed = || StoreError::Unavailable("it is closed".into());
        let room = Arc::clone(&self.room).acquire_many_owned(bytes).await.map_err(|_| closed())?;
        let (done, outcome) = oneshot::channel();
        {
            let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let queue = queue.as_ref().ok_or_else(closed)?;
            queue.send(Write { change, done, _room: room }).map_err(|_| closed())?;
        }
        outcome.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Bytes on disk when they were last counted.
    pub(super) fn disk_bytes(&self) -> u64 {
        self.disk_bytes.load(Ordering::Relaxed)
    }

    /// Takes no more writes, finishes those in the queue and ends the thread. Blocks.
    pub(super) fn close(&self) {
        self.room.close();
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            error!("the store's writer had panicked");
        }
    }
}

struct Thread {
    shards: Arc<Shards>,
    folder: PathBuf,
    free_space: FreeSpace,
    writes: Receiver<Write>,
    disk_bytes: Arc<AtomicU64>,
}

impl Thread {
    fn run(self) {
        let mut suspects = BTreeSet::new();
        // Writes since the thread tidied up.
        let mut untidy = 0;
        loop {
            let first = match untidy {
                0 => self.writes.recv().map_err(|_| RecvTimeoutError::Disconnected),
                OVERDUE.. => Err(RecvTimeoutError::Timeout),
                _ => self.writes.recv_timeout(IDLE),
            };
            match first {
                Ok(first) => {
                    let writes = self.gather(first);
                    untidy += writes.len();
                    self.commit(writes, &mut suspects);
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.tidy(&mut suspects);
                    untidy = 0;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn gather(&self, first: Write) -> Vec<Write> {
        let deadline = Instant::now() + GATHER;
        let mut writes = vec![first];
        while writes.len() < GROUP {
            match self.writes.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(write) => writes.push(write),
                Err(_) => break,
            }
        }
        writes
    }

    /// Applies a group, flushes once and answers everyone.
    fn commit(&self, writes: Vec<Write>, suspects: &mut BTreeSet<String>) {
        let space = self.has_space();
        let mut group = Group::new(&self.shards, suspects);
        let mut waiting = Vec::with_capacity(writes.len());
        for Write { change, done, _room } in writes {
            match (change, &space) {
                // Nobody waits any longer: whoever did was told that it failed.
                (Change::Upsert { .. }, _) if done.is_closed() => {}
                (Change::Upsert { .. }, Err(full)) => drop(done.send(Err(full.clone()))),
                (change, _) => waiting.push((done, group.add(change))),
            }
        }
        let outcomes = group.finish();
        for (done, ticket) in waiting {
            // Nobody may be waiting any longer; the change is made all the same.
            drop(done.send(outcomes.of(ticket)));
        }
    }

    fn has_space(&self) -> Result<(), StoreError> {
        let free = (self.free_space)().map_err(|error| StoreError::Failed(error.to_string().into()))?;
        if free < SPARE_DISK {
            let message = format!("the disk is full: {} MiB are left, 256 are needed", free >> 20);
            return Err(StoreError::Failed(message.into()));
        }
        Ok(())
    }

    /// What needs time and nobody waits for: graphs for large segments, room for what was
    /// deleted, an end to the log.
    fn tidy(&self, suspects: &mut BTreeSet<String>) {
        for (name, shard) in self.shards.all() {
            let start = Instant::now();
            match shard.optimize() {
                Ok(true) => info!(shard = %name, took = ?start.elapsed(), "optimized"),
                Ok(false) => {}
                Err(error) => {
                    error!(shard = %name, %error, "optimizing failed");
                    suspects.insert(name.clone());
                }
            }
            if shard.has_long_log()
                && let Err(error) = shard.reopen()
            {
                error!(shard = %name, %error, "opening a shard anew failed; it is tried again before the next write");
                suspects.insert(name);
            }
        }
        self.measure();
    }

    fn measure(&self) {
        self.disk_bytes.store(disk_bytes(&self.folder), Ordering::Relaxed);
    }
}

//! A bounded buffer of lines, and the one thread that writes it out.
//!
//! Bounded in bytes and not in lines, so that the bound is one of memory. Lines gather for a
//! millisecond: a busy service then makes one system call for fifty lines instead of one for each,
//! and who logs hardly ever has to wake the thread.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// What may wait to be written: some ten thousand lines.
pub(super) const CAPACITY: usize = 4 << 20;
/// Memory that the buffers keep when nothing waits.
const KEPT: usize = 64 << 10;
/// How long lines gather.
const GATHER: Duration = Duration::from_millis(1);
/// How long a dropped guard waits for an output that stalls.
const PATIENCE: Duration = Duration::from_secs(1);

/// Lines on their way out. Each `write` is one line; it never blocks, fails or splits.
#[derive(Debug)]
pub(super) struct Lines {
    capacity: usize,
    waiting: Mutex<Waiting>,
    /// Signalled when the buffer stops being empty, when it closes and when it has closed.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    buffer: Vec<u8>,
    /// Lines that found no room after those in the buffer, or that the output refused.
    dropped: u64,
    phase: Phase,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// What waits is still written.
    Closing,
    /// Nothing is written any more.
    Closed,
}

impl Lines {
    /// An empty buffer for so many bytes.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { capacity, waiting: Mutex::default(), changed: Condvar::new() }
    }

    fn push(&self, line: &[u8]) {
        let mut waiting = self.lock();
        if waiting.phase == Phase::Closed || waiting.buffer.len() + line.len() > self.capacity {
            waiting.dropped += 1;
            return;
        }
        let idle = waiting.buffer.is_empty();
        waiting.buffer.extend_from_slice(line);
        drop(waiting);
        if idle {
            self.changed.notify_all();
        }
    }

    /// Waits for lines and moves them to `batch`, which is empty. Gives how many lines were dropped
    /// after them; none when there will be no more.
    fn take(&self, batch: &mut Vec<u8>) -> Option<u64> {
        let idle = |waiting: &mut Waiting| waiting.buffer.is_empty() && waiting.phase == Phase::Open;
        let waiting = self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        let gathering = |waiting: &mut Waiting| waiting.phase == Phase::Open;
        let gathered = self.changed.wait_timeout_while(waiting, GATHER, gathering);
        let (mut waiting, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        if waiting.buffer.is_empty() && waiting.dropped == 0 {
            waiting.phase = Phase::Closed;
            drop(waiting);
            self.changed.notify_all();
            return None;
        }
        std::mem::swap(&mut waiting.buffer, batch);
        Some(std::mem::take(&mut waiting.dropped))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts the thread that writes `lines` to `output`. After lines were dropped, `report` is told
/// how many, once the output takes lines again; what it logs comes after what was not dropped.
pub(super) fn write_out(
    lines: Arc<Lines>,
    output: impl Write + Send + 'static,
    report: impl Fn(u64) + Send + 'static,
) -> io::Result<Guard> {
    let written = Arc::clone(&lines);
    thread::Builder::new().name("log".to_owned()).spawn(move || run(&written, output, &report))?;
    Ok(Guard { lines, patience: PATIENCE })
}

fn run(lines: &Lines, mut output: impl Write, report: &impl Fn(u64)) {
    let mut batch = Vec::new();
    while let Some(dropped) = lines.take(&mut batch) {
        match output.write_all(&batch).and_then(|()| output.flush()) {
            Ok(()) if dropped > 0 => report(dropped),
            Ok(()) => {}
            Err(_) => give_up(lines, &batch, dropped),
        }
        batch.clear();
        batch.shrink_to(KEPT);
    }
}

/// Counts a batch that the output refused. There is nobody to tell until it takes lines again.
fn give_up(lines: &Lines, batch: &[u8], dropped: u64) {
    let refused = batch.split_inclusive(|byte| *byte == b'\n').count() as u64;
    let mut waiting = lines.lock();
    if waiting.phase == Phase::Open {
        waiting.dropped += refused + dropped;
    }
}

/// Keeps the log going; dropping it writes out what waits, for at most a second.
#[derive(Debug)]
#[must_use = "the log ends when this is dropped"]
pub struct Guard {
    lines: Arc<Lines>,
    patience: Duration,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut waiting = self.lines.lock();
        waiting.phase = Phase::Closing;
        self.lines.changed.notify_all();
        let closing = |waiting: &mut Waiting| waiting.phase != Phase::Closed;
        drop(self.lines.changed.wait_timeout_while(waiting, self.patience, closing));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// What an output does with a batch.
    type Outcome = io::Result<()>;

    /// An output that takes each batch only when the test says so.
    struct Gate {
        /// Says what is being written.
        arrived: Sender<String>,
        outcomes: Receiver<Outcome>,
    }

    impl Write for Gate {
        fn write(&mut self, batch: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8(batch.to_vec()).expect("lines are text");
            self.arrived.send(text).expect("the test listens");
            // A test that has ended lets everything pass.
            self.outcomes.recv().unwrap_or(Ok(())).map(|()| batch.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Log {
        lines: Arc<Lines>,
        /// Dropped before the guard, which then need not wait for the test.
        outcomes: Sender<Outcome>,
        guard: Guard,
        arrived: Receiver<String>,
    }

    impl Log {
        fn with_capacity(capacity: usize) -> Self {
            let (sender, arrived) = channel();
            let (outcomes, receiver) = channel();
            let lines = Arc::new(Lines::with_capacity(capacity));
            let own = Arc::clone(&lines);
            let report = move |n| own.push(format!("dropped {n}\n").as_bytes());
            let output = Gate { arrived: sender, outcomes: receiver };
            let guard = write_out(Arc::clone(&lines), output, report).expect("the thread starts");
            Self { lines, outcomes, guard, arrived }
        }

        /// Logs a line and waits until the output holds it back.
        fn stall_at(&self, line: &str) {
            self.lines.push(line.as_bytes());
            assert_eq!(self.arrives(), line);
        }

        fn arrives(&self) -> String {
            self.arrived.recv_timeout(Duration::from_secs(10)).expect("something is written")
        }

        fn decide(&self, outcome: Outcome) {
            self.outcomes.send(outcome).expect("the output waits");
        }
    }

    #[test]
    fn a_stalled_output_costs_lines_and_says_how_many() {
        let log = Log::with_capacity(12);
        log.stall_at("first\n");
        for line in ["one\n", "two\n", "three is too long\n", "four\n", "five\n"] {
            log.lines.push(line.as_bytes());
        }
        log.decide(Ok(()));
        assert_eq!(log.arrives(), "one\ntwo\n", "what found room, in order");
        log.decide(Ok(()));
        assert_eq!(log.arrives(), "dropped 3\n");
        log.decide(Ok(()));
        log.stall_at("flows again\n");
    }

    #[test]
    fn what_an_output_refuses_is_reported_when_it_takes_lines_again() {
        let log = Log::with_capacity(CAPACITY);
        log.stall_at("lost\n");
        log.decide(Err(io::ErrorKind::BrokenPipe.into()));
        log.stall_at("also lost\n");
        log.decide(Err(io::ErrorKind::BrokenPipe.into()));
        log.stall_at("kept\n");
        log.decide(Ok(()));
        assert_eq!(log.arrives(), "dropped 2\n");
    }

    #[test]
    fn dropping_the_guard_writes_what_waits() {
        let Log { lines, outcomes, guard, arrived } = Log::with_capacity(CAPACITY);
        lines.push(b"first\n");
        assert_eq!(arrived.recv().as_deref(), Ok("first\n"));
        lines.push(b"second\n");
        lines.push(b"third\n");
        drop(outcomes);
        drop(guard);
        assert_eq!(arrived.try_iter().collect::<String>(), "second\nthird\n");
        lines.push(b"too late\n");
        assert!(lines.lock().buffer.is_empty(), "nothing gathers when nothing is written");
    }

    #[test]
    fn a_dropped_guard_does_not_wait_for_ever() {
        let mut log = Log::with_capacity(CAPACITY);
        log.stall_at("stalls\n");
        log.guard.patience = Duration::from_millis(5);
        drop(log.guard);
        assert!(log.outcomes.send(Ok(())).is_ok(), "the output still stalls");
    }
}

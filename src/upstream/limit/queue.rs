//! Who has a slot, who waits for one, and who has to go: the pure part of a limiter.
//!
//! Two lines, because an answer that a person waits for is worth more than one of a batch: a
//! batch is served only when nobody else waits, and goes first when there is no room. Within a
//! line the oldest is served first, and dropped first: it has the least of its deadline left, and
//! so the least chance that an answer still finds its caller.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// What a wait is said to take at least, and while nothing is known.
const SHORTEST_RETRY: Duration = Duration::from_secs(1);
/// What it is said to take at most: an estimate over longer than this is none.
const LONGEST_RETRY: Duration = Duration::from_mins(1);

/// How much waiting a request is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Someone waits for the answer.
    Interactive,
    /// Nobody does.
    Batch,
}

/// A waiter's place in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    priority: Priority,
    number: u64,
}

/// What became of someone who wants to wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place<W> {
    /// It waits; `dropped` had to leave for that.
    Waiting { ticket: Ticket, dropped: Option<W> },
    /// There is no room, and nobody who should leave for it.
    None,
}

/// Slots and the line for them. `W` is how a waiter is told.
#[derive(Debug)]
pub(super) struct Queue<W> {
    limit: u32,
    in_flight: u32,
    room: usize,
    interactive: VecDeque<Waiter<W>>,
    batch: VecDeque<Waiter<W>>,
    tickets: u64,
    /// How long a slot is held: a mean over about the last eight.
    held: Option<Duration>,
}

#[derive(Debug)]
struct Waiter<W> {
    number: u64,
    since: Instant,
    wake: W,
}

impl<W> Queue<W> {
    /// `limit` slots, all free, and room for so many to wait.
    pub(super) fn new(limit: u32, room: usize) -> Self {
        Self {
            limit,
            in_flight: 0,
            room,
            interactive: VecDeque::new(),
            batch: VecDeque::new(),
            tickets: 0,
            held: None,
        }
    }

    /// Takes a slot if one is free; while one is, nobody waits.
    pub(super) fn enter(&mut self) -> bool {
        let free = !self.is_full();
        self.in_flight += u32::from(free);
        free
    }

    /// Whether every slot is taken.
    pub(super) fn is_full(&self) -> bool {
        self.in_flight >= self.limit
    }

    /// Joins its line. When there is no room, the oldest batch waiter leaves, or without one the
    /// oldest of all; a batch request does not make an interactive one leave.
    pub(super) fn line_up(&mut self, priority: Priority, wake: W, now: Instant) -> Place<W> {
        let mut dropped = None;
        if self.waiting() >= self.room {
            let front = match priority {
                Priority::Interactive => self.batch.pop_front().or_else(|| self.interactive.pop_front()),
                Priority::Batch => self.batch.pop_front(),
            };
            let Some(front) = front else { return Place::None };
            dropped = Some(front.wake);
        }
        let number = self.tickets;
        self.tickets += 1;
        self.line(priority).push_back(Waiter { number, since: now, wake });
        Place::Waiting { ticket: Ticket { priority, number }, dropped }
    }

    /// A waiter gives up; nothing happens when it waits no more.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        let line = self.line(ticket.priority);
        // Numbers grow along the line.
        if let Ok(place) = line.binary_search_by_key(&ticket.number, |waiter| waiter.number) {
            line.remove(place);
        }
    }

    /// A slot that was held for so long comes back. Gives who is in now, if anyone.
    pub(super) fn release(&mut self, held: Duration) -> Option<W> {
        let mean = self.held.map_or(held, |mean| mean.saturating_mul(7).saturating_add(held) / 8);
        self.held = Some(mean);
        self.in_flight -= 1;
        self.admit()
    }

    /// Changes the number of slots. Gives who is in now; nobody has to go, a lower limit is
    /// reached as slots come back.
    pub(super) fn set_limit(&mut self, limit: u32) -> Vec<W> {
        self.limit = limit;
        std::iter::from_fn(|| self.admit()).collect()
    }

    fn admit(&mut self) -> Option<W> {
        if self.is_full() {
            return None;
        }
        let next = self.interactive.pop_front().or_else(|| self.batch.pop_front())?;
        self.in_flight += 1;
        Some(next.wake)
    }

    fn line(&mut self, priority: Priority) -> &mut VecDeque<Waiter<W>> {
        match priority {
            Priority::Interactive => &mut self.interactive,
            Priority::Batch => &mut self.batch,
        }
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    pub(super) fn waiting(&self) -> usize {
        self.interactive.len() + self.batch.len()
    }

    /// For how long the oldest waiter has waited.
    pub(super) fn oldest(&self, now: Instant) -> Option<Duration> {
        let fronts = [self.interactive.front(), self.batch.front()];
        fronts.into_iter().flatten().map(|waiter| now.saturating_duration_since(waiter.since)).max()
    }

    /// How long someone who comes now would wait, by how long slots were held lately: each of
    /// `limit` slots comes back once in that time, to those in line before it and then to it.
    /// Between one second and one minute.
    pub(super) fn retry_after(&self) -> Duration {
        let turn = u32::try_from(self.waiting()).unwrap_or(u32::MAX).saturating_add(1);
        let wait = self.held.unwrap_or_default().saturating_mul(turn) / self.limit.max(1);
        wait.clamp(SHORTEST_RETRY, LONGEST_RETRY)
    }
}

#[cfg(test)]
mod tests;

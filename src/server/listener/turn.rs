//! Whose turn it is on a connection, and until when.
//!
//! One rule covers the timers of both protocols: the service may take its time (it has
//! deadlines of its own), a client may not. hyper's `header_read_timeout` does not fit, because
//! it knows neither HTTP/2 nor the bytes that tell the protocols apart, and counts the quiet
//! between two requests as the reading of a head.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a client may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// From the first byte of a head to its last; for the first request, from the accept.
    pub(super) header: Duration,
    /// Without a request, or without taking anything of an answer.
    pub(super) idle: Duration,
}

/// What a client is late with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// The head of a request.
    Head,
    /// The next request.
    Request,
    /// Taking the answer.
    Taking,
    /// Leaving, after it was told that the connection closes.
    Leaving,
}

/// The pure part: every event takes `now`.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "four facts that do not depend on each other")]
struct State {
    patience: Patience,
    /// When the turn last passed to the client.
    since: Instant,
    /// A head has begun and is not complete.
    head: bool,
    http2: bool,
    /// Requests whose answers are not all handed to hyper.
    under_way: usize,
    /// Those of them that wait for the service.
    ours: usize,
    /// The kernel takes no more bytes, since.
    blocked: Option<Instant>,
    /// The client was told that the connection closes.
    draining: bool,
    /// A request's body was not read to its end.
    unread: bool,
}

impl State {
    fn accepted(patience: Patience, now: Instant) -> Self {
        Self {
            patience,
            since: now,
            head: true,
            http2: false,
            under_way: 0,
            ours: 0,
            blocked: None,
            draining: false,
            unread: false,
        }
    }

    fn received(&mut self, now: Instant) {
        // On HTTP/2 bytes between requests are mostly pings; a head that trickles in there is
        // cut as idle.
        if self.under_way == 0 && !self.head && !self.http2 {
            self.head = true;
            self.since = now;
        }
    }

    fn begin(&mut self, http2: bool) {
        self.head = false;
        self.http2 = http2;
        self.under_way += 1;
        self.ours += 1;
    }

    fn give(&mut self, was_ours: bool, now: Instant) {
        self.ours -= usize::from(was_ours);
        self.since = now;
    }

    fn end(&mut self, was_ours: bool, now: Instant) {
        self.under_way -= 1;
        self.give(was_ours, now);
    }

    fn drain(&mut self, now: Instant) {
        let told = std::mem::replace(&mut self.draining, true);
        if !told && self.under_way == 0 && !self.head {
            self.since = now;
        }
    }

    /// What the client owes, and until when; `None` when it is the service's turn.
    fn due(&self) -> Option<(Instant, Overdue)> {
        let Patience { header, idle } = self.patience;
        if let Some(since) = self.blocked {
            return Some((since + idle, Overdue::Taking));
        }
        if self.ours > 0 {
            return None;
        }
        let (patience, overdue) = match self {
            Self { under_way: 1.., .. } => (idle, Overdue::Taking),
            Self { head: true, .. } => (header, Overdue::Head),
            Self { draining: true, .. } => (header, Overdue::Leaving),
            _ => (idle, Overdue::Request),
        };
        Some((self.since + patience, overdue))
    }
}

/// The state as socket, requests and answers of one connection share it.
#[derive(Clone, Debug)]
pub(super) struct Turn(Arc<Mutex<State>>);

impl Turn {
    /// A connection accepted just now.
    pub(super) fn accepted(patience: Patience) -> Self {
        Self(Arc::new(Mutex::new(State::accepted(patience, Instant::now()))))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes came in.
    pub(super) fn received(&self) {
        self.state().received(Instant::now());
    }

    /// The kernel takes no more bytes.
    pub(super) fn blocked(&self) {
        self.state().blocked = Some(Instant::now());
    }

    /// The kernel took bytes again.
    pub(super) fn unblocked(&self) {
        let mut state = self.state();
        state.blocked = None;
        state.since = Instant::now();
    }

    /// A request's body was dropped before its end.
    pub(super) fn left_unread(&self) {
        self.state().unread = true;
    }

    /// The client was told that the connection closes.
    pub(super) fn drain(&self) {
        self.state().drain(Instant::now());
    }

    /// There may be bytes under way that nobody will read. Closing over them makes the kernel
    /// send a reset, which can destroy the answer before the client has seen it.
    pub(super) fn owes_reading(&self) -> bool {
        let state = self.state();
        state.head || (state.unread && !state.http2)
    }

    /// What the client owes, and until when; `None` when it is the service's turn.
    pub(super) fn due(&self) -> Option<(Instant, Overdue)> {
        self.state().due()
    }

    /// A request has come.
    pub(super) fn begin(&self, http2: bool) -> UnderWay {
        self.state().begin(http2);
        UnderWay { turn: self.clone(), ours: true }
    }
}

/// A request under way; dropping it ends it.
#[derive(Debug)]
pub(super) struct UnderWay {
    turn: Turn,
    ours: bool,
}

impl UnderWay {
    /// A piece of the answer is there: the client has to take it.
    pub(super) fn give(&mut self) {
        let was_ours = std::mem::replace(&mut self.ours, false);
        self.turn.state().give(was_ours, Instant::now());
    }

    /// The client took all there was; the service has to go on.
    pub(super) fn take_back(&mut self) {
        if !std::mem::replace(&mut self.ours, true) {
            self.turn.state().ours += 1;
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.turn.state().end(self.ours, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience { header: Duration::from_secs(10), idle: Duration::from_secs(75) };

    fn turn() -> Turn {
        Turn::accepted(PATIENCE)
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[track_caller]
    fn owes(turn: &Turn, overdue: Overdue, seconds: u64) {
        let (at, what) = turn.due().expect("it is the client's turn");
        assert_eq!((what, at - Instant::now()), (overdue, Duration::from_secs(seconds)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_connection_owes_a_head_and_trickling_buys_no_time() {
        let turn = turn();
        owes(&turn, Overdue::Head, 10);
        pass(4).await;
        turn.received();
        owes(&turn, Overdue::Head, 6);
    }

    #[tokio::test(start_paused = true)]
    async fn the_service_may_take_its_time() {
        let turn = turn();
        let mut request = turn.begin(false);
        pass(1000).await;
        assert_eq!(turn.due(), None);
        request.give();
        owes(&turn, Overdue::Taking, 75);
        request.take_back();
        request.take_back();
        assert_eq!(turn.due(), None);
        request.give();
        drop(request);
        owes(&turn, Overdue::Request, 75);
    }

    #[tokio::test(start_paused = true)]
    async fn between_requests_the_first_byte_starts_the_head_timer() {
        let turn = turn();
        drop(turn.begin(false));
        pass(70).await;
        owes(&turn, Overdue::Request, 5);
        turn.received();
        owes(&turn, Overdue::Head, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn pings_do_not_keep_an_idle_http2_connection() {
        let turn = turn();
        drop(turn.begin(true));
        pass(70).await;
        turn.received();
        owes(&turn, Overdue::Request, 5);
    }

    #[tokio::test(start_paused = true)]
    async fn one_stream_that_waits_for_the_service_keeps_the_connection() {
        let turn = turn();
        let (mut taken, waiting) = (turn.begin(true), turn.begin(true));
        taken.give();
        assert_eq!(turn.due(), None);
        drop(waiting);
        owes(&turn, Overdue::Taking, 75);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_no_bytes_owes_that_whatever_else_goes_on() {
        let turn = turn();
        let request = turn.begin(false);
        turn.blocked();
        pass(5).await;
        owes(&turn, Overdue::Taking, 70);
        drop(request);
        turn.drain();
        owes(&turn, Overdue::Taking, 70);
        turn.unblocked();
        owes(&turn, Overdue::Leaving, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn draining_gives_an_idle_client_little_and_a_begun_head_no_more_time() {
        let idle = turn();
        drop(idle.begin(false));
        pass(8).await;
        idle.drain();
        owes(&idle, Overdue::Leaving, 10);

        let begun = turn();
        pass(8).await;
        begun.drain();
        owes(&begun, Overdue::Head, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn unread_bytes_are_owed_reading() {
        let turn = turn();
        assert!(turn.owes_reading(), "a head that cannot be parsed");
        let request = turn.begin(false);
        assert!(!turn.owes_reading());
        turn.left_unread();
        drop(request);
        assert!(turn.owes_reading());
        drop(turn.begin(true));
        assert!(!turn.owes_reading(), "HTTP/2 resets the stream instead");
    }
}

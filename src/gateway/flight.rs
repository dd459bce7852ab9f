//! One upstream call for all who ask the same at once.
//!
//! The first to ask leads: a task of its own fetches the answer, while every caller, the first
//! included, follows what has come so far and then waits for more. Late joiners read from the
//! beginning. A flight that nobody follows any more is cancelled, or lands unseen to fill the
//! cache, by setting.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::count::usage;
use super::{Call, GatewayError, Namespace, Source, Substitute};
use crate::cache::Entry;
use crate::cache::key::ExactKey;
use crate::chat::{Api, ChatReply};
use crate::upstream::{Event, Served, UpstreamError, Whole};

/// Calls with equal keys may share a flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FlightKey {
    exact: ExactKey,
    /// What comes is in the form of the call that asked for it.
    api: Api,
    /// A caller who wants usage cannot follow a stream that will not carry it.
    carries_usage: bool,
    /// The answer is stored once: under everyone's tags, for everyone's time.
    tags: Vec<String>,
    ttl: Option<Duration>,
}

impl FlightKey {
    pub(super) fn of(exact: ExactKey, call: &Call) -> Self {
        let carries_usage = !call.request.stream || call.request.include_usage;
        let api = call.request.api;
        Self { exact, api, carries_usage, tags: call.directives.tags.clone(), ttl: call.directives.ttl }
    }
}

/// The flights under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights(Arc<Mutex<HashMap<FlightKey, Arc<Flight>>>>);

/// What is learned on the way to an answer, for headers and counters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Notes {
    /// Why the semantic layer was passed by.
    pub(super) semantic_bypass: Option<&'static str>,
    /// The nearest stored question that was refused, and why.
    pub(super) refused: Option<(f32, &'static str)>,
    /// The answer was accepted for storing.
    pub(super) stored: bool,
}

/// A flight's state, and the bell that rings when it changes. The bell's receivers are the
/// followers.
#[derive(Debug)]
struct Flight {
    state: Mutex<State>,
    bell: watch::Sender<()>,
    /// Of the caller who leads.
    deadline: Instant,
}

#[derive(Debug, Default)]
struct State {
    head: Option<Result<Head, GatewayError>>,
    events: Vec<Event>,
    end: Option<Result<Option<Arc<ChatReply>>, UpstreamError>>,
}

/// How an answer begins.
#[derive(Clone, Debug)]
pub(super) enum Head {
    /// From the cache.
    Kept(Source, Arc<Entry>, Notes),
    /// What stands in for an answer that could not be had.
    Substitute(Substitute, Arc<ChatReply>, Notes),
    /// A provider's whole answer.
    Whole(Served, Arc<Whole>, Notes),
    /// A provider's stream, of which the first event is here.
    Streaming(Served, Notes),
}

impl Flights {
    /// Follows the flight with this key, if it has at least half of the caller's time. The pilot is
    /// for the caller to fly when there was none; others join that one from now on.
    pub(super) fn join(&self, key: FlightKey, deadline: Instant) -> (Follower, Option<Pilot>) {
        let mut flights = lock(&self.0);
        let half = deadline - deadline.saturating_duration_since(Instant::now()) / 2;
        if let Some(flight) = flights.get(&key)
            && flight.deadline >= half
            && !flight.has_failed()
        {
            return (Follower::of(flight), None);
        }
        let flight = Arc::new(Flight::new(deadline));
        flights.insert(key.clone(), Arc::clone(&flight));
        let follower = Follower::of(&flight);
        (follower, Some(Pilot { flight, listed: Some((self.clone(), key)) }))
    }

    /// Nobody joins the flights under way any more: what they bring may have been purged. Those
    /// who follow them asked before.
    pub(super) fn close_boarding(&self) {
        lock(&self.0).clear();
    }

    /// A flight that nobody else can join.
    pub(super) fn alone(deadline: Instant) -> (Follower, Pilot) {
        let flight = Arc::new(Flight::new(deadline));
        (Follower::of(&flight), Pilot { flight, listed: None })
    }
}

impl Flight {
    fn new(deadline: Instant) -> Self {
        Self { state: Mutex::default(), bell: watch::Sender::new(()), deadline }
    }

    fn has_failed(&self) -> bool {
        let state = lock(&self.state);
        matches!((&state.head, &state.end), (Some(Err(_)), _) | (_, Some(Err(_))))
    }
}

/// The side that fetches the answer. Dropped before the answer is whole, it leaves the
/// followers with an error, so that none waits for ever.
#[derive(Debug)]
pub(super) struct Pilot {
    flight: Arc<Flight>,
    listed: Option<(Flights, FlightKey)>,
}

impl Pilot {
    /// Waits until nobody follows any more, and takes the flight off the list in the same step,
    /// so that nobody joins a flight that is about to be cancelled.
    pub(super) async fn abandoned(&self) {
        loop {
            self.flight.bell.closed().await;
            let Some((flights, key)) = &self.listed else { return };
            let mut flights = lock(&flights.0);
            if self.flight.bell.receiver_count() == 0 {
                self.leave_list(&mut flights, key);
                return;
            }
        }
    }

    fn leave_list(&self, flights: &mut HashMap<FlightKey, Arc<Flight>>, key: &FlightKey) {
        if flights.get(key).is_some_and(|listed| Arc::ptr_eq(listed, &self.flight)) {
            flights.remove(key);
        }
    }

    /// The answer's beginning, or that there is none.
    pub(super) fn begin(&self, head: Result<Head, GatewayError>) {
        self.change(|state| state.head = Some(head));
    }

    /// The next event of a stream.
    pub(super) fn event(&self, event: Event) {
        self.change(|state| state.events.push(event));
    }

    /// The end of a stream: whole, or cut.
    pub(super) fn end(&self, end: Result<Option<Arc<ChatReply>>, UpstreamError>) {
        self.change(|state| state.end = Some(end));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut lock(&self.flight.state));
        self.flight.bell.send_replace(());
    }
}

impl Drop for Pilot {
    fn drop(&mut self) {
        if let Some((flights, key)) = &self.listed {
            self.leave_list(&mut lock(&flights.0), key);
        }
        self.change(|state| {
            if state.head.is_none() {
                state.head = Some(Err(GatewayError::Internal));
            }
            if state.end.is_none() {
                let reason = "the request's task ended early".into();
                state.end = Some(Err(UpstreamError::Broken { provider: "refrain".into(), reason }));
            }
        });
    }
}

/// The side that waits for the answer.
#[derive(Debug)]
pub(super) struct Follower {
    flight: Arc<Flight>,
    bell: watch::Receiver<()>,
}

impl Follower {
    fn of(flight: &Arc<Flight>) -> Self {
        Self { bell: flight.bell.subscribe(), flight: Arc::clone(flight) }
    }

    /// Until when the one who leads waits.
    pub(super) fn deadline(&self) -> Instant {
        self.flight.deadline
    }

    /// Waits for the answer's beginning.
    pub(super) async fn head(&mut self) -> Result<Head, GatewayError> {
        self.wait_for(|state| state.head.clone()).await
    }

    /// Waits for the end of a stream and returns what it says as a whole.
    pub(super) async fn reply(mut self) -> Result<Option<Arc<ChatReply>>, UpstreamError> {
        self.wait_for(|state| state.end.clone()).await
    }

    /// The events from the first one on, until the deadline.
    pub(super) fn events(self, deadline: Instant) -> EventTail {
        EventTail { follower: self, read: 0, ended: false, deadline, saves_for: None }
    }

    // The flight holds the bell, so waiting for it cannot fail; the pilot's drop ends the wait.
    async fn wait_for<T>(&mut self, look: impl Fn(&State) -> Option<T>) -> T {
        loop {
            if let Some(seen) = look(&lock(&self.flight.state)) {
                return seen;
            }
            let _ = self.bell.changed().await;
        }
    }
}

/// A stream's events, read at the follower's own pace.
#[derive(Debug)]
pub struct EventTail {
    follower: Follower,
    read: usize,
    ended: bool,
    deadline: Instant,
    saves_for: Option<Arc<Namespace>>,
}

impl EventTail {
    /// Has what the answer cost somebody else counted as saved, once it has come to its end.
    pub(super) fn count_savings(&mut self, namespace: &Arc<Namespace>) {
        self.saves_for = Some(Arc::clone(namespace));
    }

    /// The next event; `None` after the last one of a complete answer. An error is the last
    /// thing that comes.
    pub async fn next(&mut self) -> Option<Result<Event, UpstreamError>> {
        if self.ended {
            return None;
        }
        let read = self.read;
        let saves_for = &self.saves_for;
        let next = self.follower.wait_for(|state| match (state.events.get(read), &state.end) {
            (Some(event), _) => Some(Some(Ok(event.clone()))),
            (None, Some(Ok(reply))) => {
                if let (Some(namespace), Some(reply)) = (saves_for, reply) {
                    namespace.metrics().saved(usage(reply, ""));
                }
                Some(None)
            }
            (None, Some(Err(error))) => Some(Some(Err(error.clone()))),
            (None, None) => None,
        });
        let next = timeout_at(self.deadline, next).await;
        let next = next.unwrap_or(Some(Err(UpstreamError::DeadlineExceeded)));
        self.read += 1;
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

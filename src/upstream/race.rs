//! A late call, and another one that may be faster.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::ask::Ask;
use super::attempt::attempt;
use super::hedge::Hedge;
use super::journey::{Admission, Journey};
use super::route::Candidate;
use super::timers::Timers;
use super::{Completion, UpstreamError};

/// The failed calls: which target, and why.
pub(super) type Failures = Vec<(usize, UpstreamError)>;

/// When a call is late, and whether another may be made.
#[derive(Clone, Copy)]
pub(super) struct Lateness<'a> {
    pub(super) hedge: &'a Hedge,
    pub(super) after: Duration,
}

/// Makes the call, and a second one to another target if the first is late. The first content
/// wins; the other call is cancelled at once, and what it cost so far is booked. A call that fails
/// leaves the race to the other, unless what it says ends the request.
pub(super) async fn race(
    timers: &Timers,
    ask: &Ask<'_>,
    journey: &mut Journey<'_>,
    admission: Admission,
    lateness: Option<Lateness<'_>>,
) -> Result<Completion, Failures> {
    let mut first = Runner::start(timers, ask, admission);
    let Some(Lateness { hedge, after }) = lateness else { return first.alone().await };
    tokio::select! {
        answer = &mut first.call => return answer.map_err(|error| vec![(first.leg, error)]),
        () = sleep(after) => {}
    }
    let second = if hedge.try_launch(Instant::now()) { journey.enter_beside(first.leg) } else { None };
    let Some(second) = second else { return first.alone().await };
    let (late, beside) = (first.candidate.provider(), second.candidate.provider());
    tracing::info!(%late, %beside, "a second call races a late one");
    let calls = second.attempt;
    let mut second = Runner::start(timers, ask, second);
    let (answer, is_first) = tokio::select! {
        answer = &mut first.call => (answer, true),
        answer = &mut second.call => (answer, false),
    };
    let beside = Arc::clone(&second.candidate.target.health);
    let (ended, other) = if is_first { (first, second) } else { (second, first) };
    match answer {
        Ok(mut completion) => {
            other.lose(ask);
            if is_first {
                beside.hedge_lost(Instant::now());
            } else {
                beside.hedge_won(Instant::now());
            }
            completion.served.attempts = calls;
            Ok(completion)
        }
        Err(error) if error.fault().reaction().fails_at_once() => {
            other.lose(ask);
            Err(vec![(ended.leg, error)])
        }
        Err(error) => other.call.await.map_err(|last| vec![(ended.leg, error), (other.leg, last)]),
    }
}

/// A call in the race.
struct Runner<'a> {
    leg: usize,
    candidate: Candidate,
    is_lost: Arc<AtomicBool>,
    call: Pin<Box<dyn Future<Output = Result<Completion, UpstreamError>> + Send + 'a>>,
}

impl<'a> Runner<'a> {
    fn start(timers: &'a Timers, ask: &'a Ask<'_>, admission: Admission) -> Self {
        let (leg, candidate) = (admission.leg, admission.candidate.clone());
        let is_lost = Arc::new(AtomicBool::new(false));
        let call = Box::pin(attempt(timers, ask, admission, Arc::clone(&is_lost)));
        Self { leg, candidate, is_lost, call }
    }

    async fn alone(self) -> Result<Completion, Failures> {
        self.call.await.map_err(|error| vec![(self.leg, error)])
    }

    /// Cancels the call. A provider charges for the question of one that was cancelled before its
    /// answer.
    fn lose(self, ask: &Ask<'_>) {
        self.is_lost.store(true, Ordering::Relaxed);
        if let Some(price) = self.candidate.choice.price {
            let cost = f64::from(ask.tokens()) * price.input / 1e6;
            self.candidate.target.health.booked(cost, Instant::now());
        }
    }
}

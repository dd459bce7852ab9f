//! A late call, and another one that may be faster.

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
/// leaves the race to the other.
pub(super) async fn race(
    timers: &Timers,
    ask: &Ask<'_>,
    journey: &mut Journey<'_>,
    admission: Admission,
    lateness: Option<Lateness<'_>>,
) -> Result<Completion, Failures> {
    let (leg, first_candidate) = (admission.leg, admission.candidate.clone());
    let first_lost = Arc::new(AtomicBool::new(false));
    let mut first = Box::pin(attempt(timers, ask, admission, Arc::clone(&first_lost)));
    let Some(Lateness { hedge, after }) = lateness else {
        return first.await.map_err(|error| vec![(leg, error)]);
    };
    tokio::select! {
        answer = &mut first => return answer.map_err(|error| vec![(leg, error)]),
        () = sleep(after) => {}
    }
    let second = if hedge.try_launch(Instant::now()) { journey.enter_beside(leg) } else { None };
    let Some(second) = second else { return first.await.map_err(|error| vec![(leg, error)]) };
    tracing::info!(late = %first_candidate.provider(), beside = %second.candidate.provider(), "a second call races a late one");
    let (other_leg, second_candidate) = (second.leg, second.candidate.clone());
    let second_lost = Arc::new(AtomicBool::new(false));
    let mut second = Box::pin(attempt(timers, ask, second, Arc::clone(&second_lost)));
    tokio::select! {
        answer = &mut first => match answer {
            Ok(completion) => {
                second_lost.store(true, Ordering::Relaxed);
                book_loser(ask, &second_candidate);
                second_candidate.target.health.hedge_lost(Instant::now());
                Ok(completion)
            }
            Err(error) => second.await.map_err(|other| vec![(leg, error), (other_leg, other)]),
        },
        answer = &mut second => match answer {
            Ok(mut completion) => {
                first_lost.store(true, Ordering::Relaxed);
                book_loser(ask, &first_candidate);
                second_candidate.target.health.hedge_won(Instant::now());
                completion.served.attempts = completion.served.attempts.max(2);
                Ok(completion)
            }
            Err(error) => first.await.map_err(|other| vec![(other_leg, error), (leg, other)]),
        },
    }
}

/// A provider charges for the question of a call that was cancelled before its answer.
fn book_loser(ask: &Ask<'_>, candidate: &Candidate) {
    if let Some(price) = candidate.choice.price {
        candidate.target.health.booked(f64::from(ask.tokens()) * price.input / 1e6, Instant::now());
    }
}

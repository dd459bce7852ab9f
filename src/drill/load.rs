//! The load: independent callers, who come when they come.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::Settings;
use super::caller::Caller;
use super::figures::{Record, Sample};
use super::rig::Rig;
use super::scenario::{Act, Plot};
use super::timetable::{Span, Timetable};

/// Of so many requests one asks what was asked before; all others ask what nobody has asked.
const REPEATED: u64 = 10;

/// The questions that come again and again.
const WELL_KNOWN: u64 = 3;

/// The part of the requests that want a stream.
const STREAMED: f64 = 0.6;

/// One request that is to be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Arrival {
    /// Since the start.
    pub(super) at: Duration,
    pub(super) question: u64,
    pub(super) stream: bool,
}

impl Arrival {
    /// What is asked.
    pub(super) fn text(self) -> String {
        format!("Question {} of a bad day?", self.question)
    }
}

/// Requests as a Poisson process makes them: what many who do not know of each other look like.
/// During the bad day there may be more of them.
#[derive(Debug)]
pub(super) struct Arrivals {
    times: Timetable,
    rate: f64,
    crowd: f64,
    rng: SmallRng,
    at: Duration,
    made: u64,
}

impl Arrivals {
    pub(super) fn new(settings: &Settings, times: Timetable, crowd: f64) -> Self {
        let rng = SmallRng::seed_from_u64(settings.seed);
        Self { times, rate: settings.rate, crowd, rng, at: Duration::ZERO, made: 0 }
    }

    /// The rate at a time, and when it ends.
    fn rate_at(&self, at: Duration) -> (f64, Duration) {
        let (from, to) = self.times.span(Span::During);
        if at < from {
            (self.rate, from)
        } else if at < to {
            (self.rate * self.crowd, to)
        } else {
            (self.rate, self.times.length)
        }
    }

    fn next_time(&mut self) -> Option<Duration> {
        loop {
            let (rate, until) = self.rate_at(self.at);
            // The gaps of a Poisson process; 1 - u is never 0, whose logarithm is none.
            let gap = -(1.0 - self.rng.random::<f64>()).ln() / rate;
            let next = Duration::try_from_secs_f64(gap).ok().and_then(|gap| self.at.checked_add(gap));
            match next {
                Some(next) if next < until => {
                    self.at = next;
                    return Some(next);
                }
                _ if until >= self.times.length => return None,
                // The process has no memory: at another rate it begins anew.
                _ => self.at = until,
            }
        }
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let at = self.next_time()?;
        let number = self.made;
        self.made += 1;
        let stream = self.rng.random_bool(STREAMED);
        let repeats = number.is_multiple_of(REPEATED);
        // Numbers of well-known questions come first, and all others after them.
        let question = if repeats { number / REPEATED % WELL_KNOWN } else { number + WELL_KNOWN };
        Some(Arrival { at, question, stream })
    }
}

/// Something that happens at a time, whoever asks.
enum Cue<'a> {
    Plays(&'a Act),
    /// The providers do as before the bad day.
    AllIsWell,
    /// The calls so far are counted.
    Counts,
    /// Who came while all was well is answered first, so that nobody's good day ends badly; the
    /// clock of the drill stands still meanwhile.
    Ends,
}

/// What happens when, in order.
fn cues<'a>(plot: &'a Plot, times: &Timetable) -> Vec<(Duration, Cue<'a>)> {
    let (bad, well) = times.span(Span::During);
    let mut cues = vec![(bad, Cue::Ends)];
    cues.extend(times.bounds().into_iter().map(|at| (at, Cue::Counts)));
    cues.extend(plot.acts.iter().map(|act| (bad + act.after, Cue::Plays(act))));
    cues.push((well, Cue::AllIsWell));
    // Stable: what was counted belongs to what was played before.
    cues.sort_by_key(|(at, _)| *at);
    cues
}

/// Asks as the plot says, from now until all is answered.
pub(super) async fn run(
    rig: &Rig,
    caller: Caller,
    plot: &Plot,
    times: &Timetable,
    settings: &Settings,
    tick: impl Fn(Duration),
) -> Record {
    let mut start = Instant::now();
    let mut arrivals = Arrivals::new(settings, *times, plot.crowd).peekable();
    let mut cues = cues(plot, times).into_iter().peekable();
    let mut asking = JoinSet::new();
    let mut record = Record::default();
    loop {
        let cue = cues.peek().map(|(at, _)| *at);
        let arrival = arrivals.peek().map(|arrival| arrival.at);
        let Some(next) = cue.into_iter().chain(arrival).min() else { break };
        sleep_until(start + next).await;
        tick(next);
        if cue == Some(next) {
            match cues.next() {
                Some((_, Cue::Plays(act))) => rig.play(act.provider, &act.rules),
                Some((_, Cue::AllIsWell)) => rig.play_all(&plot.well),
                Some((at, Cue::Counts)) => record.calls.push((at, rig.calls())),
                Some((at, Cue::Ends)) => {
                    while let Some(asked) = asking.join_next().await {
                        keep(&mut record, asked);
                    }
                    start = Instant::now().checked_sub(at).unwrap_or(start);
                }
                None => {}
            }
        } else if let Some(arrival) = arrivals.next() {
            asking.spawn(caller.clone().ask(arrival, start));
        }
        while let Some(asked) = asking.try_join_next() {
            keep(&mut record, asked);
        }
    }
    while let Some(asked) = asking.join_next().await {
        keep(&mut record, asked);
    }
    // Calls for the last requests come after the last one was due.
    record.calls.push((times.length, rig.calls()));
    record
}

fn keep(record: &mut Record, asked: Result<Sample, tokio::task::JoinError>) {
    match asked {
        Ok(sample) => record.samples.push(sample),
        Err(error) => tracing::error!(%error, "a caller failed, and its request is not counted"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::super::Scenario;
    use super::*;

    fn settings(seconds: u64, rate: f64, seed: u64) -> Settings {
        Settings { length: Duration::from_secs(seconds), rate, seed, ..Settings::default() }
    }

    fn arrivals(settings: &Settings, crowd: f64) -> Vec<Arrival> {
        Arrivals::new(settings, Timetable::of(settings.length), crowd).collect()
    }

    fn between(arrivals: &[Arrival], (from, to): (Duration, Duration)) -> usize {
        arrivals.iter().filter(|arrival| (from..to).contains(&arrival.at)).count()
    }

    #[test]
    fn the_rate_is_what_was_asked_for_and_higher_in_a_crowd() {
        let settings = settings(100, 50.0, 1);
        let times = Timetable::of(settings.length);
        let arrivals = arrivals(&settings, 5.0);
        // Within four standard deviations, so a change of the generator does not matter.
        for (span, expected) in
            [(Span::Before, 1_500.0_f64), (Span::During, 10_000.0), (Span::After, 1_500.0)]
        {
            let found = f64::from(u32::try_from(between(&arrivals, times.span(span))).unwrap());
            assert!((found - expected).abs() < 4.0 * expected.sqrt(), "{span:?}: {found}");
        }
    }

    #[test]
    fn a_tenth_of_the_requests_repeat_and_all_others_are_new() {
        let arrivals = arrivals(&settings(20, 50.0, 2), 1.0);
        let mut asked: HashMap<u64, usize> = HashMap::new();
        for arrival in &arrivals {
            *asked.entry(arrival.question).or_default() += 1;
        }
        let repeated: usize = asked.values().filter(|times| **times > 1).sum();
        assert_eq!(repeated, arrivals.len().div_ceil(10));
        assert_eq!(asked.values().filter(|times| **times > 1).count(), 3);
        let streamed = arrivals.iter().filter(|arrival| arrival.stream).count();
        assert!((500..700).contains(&(streamed * 1_000 / arrivals.len())), "{streamed}");
    }

    #[test]
    fn the_same_seed_gives_the_same_load() {
        let [one, same, other] = [7, 7, 8].map(|seed| arrivals(&settings(5, 50.0, seed), 1.0));
        assert_eq!(one, same);
        assert_ne!(one, other);
    }

    #[test]
    fn calls_are_counted_before_the_scene_changes() {
        let settings = settings(20, 50.0, 1);
        let times = Timetable::of(settings.length);
        let plot = Scenario::Outage.plot(&settings, &times);
        let cues = cues(&plot, &times);
        let at_the_turn: Vec<_> =
            cues.iter().filter(|(at, _)| *at == times.span(Span::During).0).map(|(_, cue)| cue).collect();
        assert!(matches!(
            at_the_turn[..],
            [Cue::Ends, Cue::Counts, Cue::Plays(_), Cue::Plays(_), Cue::Plays(_)]
        ));
        assert!(cues.is_sorted_by_key(|(at, _)| *at));
    }

    proptest! {
        #[test]
        fn arrivals_are_in_order_and_within_the_drill(
            millis in 1..30_000_u64,
            rate in 0.1..300.0,
            crowd in 1.0..6.0,
            seed: u64,
        ) {
            let settings = Settings { length: Duration::from_millis(millis), ..settings(1, rate, seed) };
            let arrivals = arrivals(&settings, crowd);
            prop_assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
            prop_assert!(arrivals.iter().all(|arrival| arrival.at < settings.length));
        }
    }
}

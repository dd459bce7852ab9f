//! The bad days: what goes wrong, when, and what must hold all the same.

use std::time::Duration;

use super::Settings;
use super::promise::Promise;
use super::timetable::{Span, Timetable};
use crate::chaos::Rules;

/// The name that callers ask for.
pub(super) const MODEL: &str = "drill";

/// One of the drill's providers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cast {
    pub(super) name: &'static str,
    /// Its name for the model.
    pub(super) model: &'static str,
    pub(super) tier: u32,
}

/// Two providers of one model, and a smaller model to fall back to, in the order of the chain.
pub(super) const PROVIDERS: [Cast; 3] = [
    Cast { name: "a", model: "big", tier: 1 },
    Cast { name: "b", model: "big", tier: 1 },
    Cast { name: "small", model: "mini", tier: 2 },
];

/// The keys of the first provider.
pub(super) const KEYS: [&str; 2] = ["test-a-1", "test-a-2"];

/// How every provider answers while all is well: 40 ms, log-normal.
const WELL: &str = "latency:40ms:sigma=0.2";

/// Calls at once to a provider where that is not the point.
const LIMIT: u32 = 64;

/// The load on a crowded day, times the usual.
const CROWD: f64 = 5.0;

/// Of contention: how long an answer takes while nobody disturbs anybody.
const ALONE: Duration = Duration::from_millis(100);

/// A kind of bad day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// One provider is out of capacity in bursts.
    CapacityBurst,
    /// One provider is ten times as slow, and fails nothing.
    SlowProvider,
    /// One provider's keys run out of quota, one after the other.
    Quota,
    /// Providers go down and come back, again and again.
    Flapping,
    /// Five times the load, at providers that get slower instead of failing.
    Contention,
    /// All providers are down.
    Outage,
}

impl Scenario {
    /// All there are.
    pub const ALL: [Self; 6] = [
        Self::CapacityBurst,
        Self::SlowProvider,
        Self::Quota,
        Self::Flapping,
        Self::Contention,
        Self::Outage,
    ];

    /// Its name at the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::CapacityBurst => "capacity-burst",
            Self::SlowProvider => "slow-provider",
            Self::Quota => "quota",
            Self::Flapping => "flapping",
            Self::Contention => "contention",
            Self::Outage => "outage",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scenario| scenario.name() == name)
    }

    /// What happens in a drill of these settings.
    pub(super) fn plot(self, settings: &Settings, times: &Timetable) -> Plot {
        let mut plot = match self {
            Self::CapacityBurst => capacity_burst(times),
            Self::SlowProvider => slow_provider(),
            Self::Quota => quota(times),
            Self::Flapping => flapping(times),
            Self::Contention => contention(settings.rate),
            Self::Outage => outage(),
        };
        plot.promises.insert(0, Promise::Success(Span::Before));
        plot.promises.extend([Promise::Success(Span::Recovered), Promise::Deadline, Promise::Right]);
        plot
    }
}

/// A provider does something else from some time into the bad day.
#[derive(Clone, Debug)]
pub(super) struct Act {
    /// Since the bad day began.
    pub(super) after: Duration,
    /// By its place in [`PROVIDERS`].
    pub(super) provider: usize,
    pub(super) rules: Rules,
}

/// What happens, and what must hold.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    /// In a sentence.
    pub(super) story: String,
    /// How every provider answers before and after.
    pub(super) well: Rules,
    pub(super) acts: Vec<Act>,
    /// The load during the bad day, times the usual.
    pub(super) crowd: f64,
    /// Calls at once to a provider, at most.
    pub(super) limit: u32,
    pub(super) promises: Vec<Promise>,
}

impl Plot {
    fn new(story: impl Into<String>, promises: impl Into<Vec<Promise>>) -> Self {
        Self {
            story: story.into(),
            well: rules(WELL),
            acts: Vec::new(),
            crowd: 1.0,
            limit: LIMIT,
            promises: promises.into(),
        }
    }

    fn act(mut self, after: Duration, provider: usize, text: &str) -> Self {
        self.acts.push(Act { after, provider, rules: rules(text) });
        self
    }
}

fn rules(text: &str) -> Rules {
    text.parse().expect("the scenarios' rules are tested")
}

fn time(duration: Duration) -> String {
    format!("{}ms", duration.as_millis().max(1))
}

fn capacity_burst(times: &Timetable) -> Plot {
    // Three tenths of the time, in four bursts.
    let burst = times.during() / 40 * 3;
    let mode = format!("{WELL}:square:on={}:off={}:mode=status:529", time(burst), time(burst * 7 / 3));
    Plot::new(
        format!(
            "a answers 529 in bursts of {}, 30 % of the time; b has the same model and is well",
            time(burst)
        ),
        [
            Promise::Success(Span::During),
            Promise::Goodput(Span::During),
            Promise::Attempts { span: Span::During, most: 1.2 },
            Promise::Degraded { span: Span::During, most: 0.01 },
        ],
    )
    .act(Duration::ZERO, 0, &mode)
}

fn slow_provider() -> Plot {
    Plot::new(
        "a takes ten times as long, and fails nothing; b has the same model and is well",
        [
            Promise::Success(Span::During),
            Promise::Goodput(Span::During),
            Promise::FirstContent(Span::Settled),
            Promise::Degraded { span: Span::During, most: 0.01 },
        ],
    )
    .act(Duration::ZERO, 0, "latency:400ms:sigma=0.2")
}

fn quota(times: &Timetable) -> Plot {
    let [first, second] = KEYS;
    Plot::new(
        "the quota of a's first key is used up, half way through that of its second too; b is well",
        [
            Promise::Success(Span::During),
            Promise::Goodput(Span::During),
            Promise::Attempts { span: Span::During, most: 1.2 },
            Promise::Degraded { span: Span::During, most: 0.01 },
        ],
    )
    .act(Duration::ZERO, 0, &format!("key:{first}:quota:openai; {WELL}"))
    .act(times.during() / 2, 0, &format!("key:{first}:quota:openai; key:{second}:quota:openai; {WELL}"))
}

fn flapping(times: &Timetable) -> Plot {
    let (short, long) = (times.during() / 8, times.during() * 3 / 16);
    Plot::new(
        format!(
            "a resets every connection for {} and is well for {}, again and again; b the same with 503 and {}, so \
             that at times neither is there; the smaller model is well",
            time(short),
            time(short),
            time(long)
        ),
        [
            Promise::Success(Span::During),
            Promise::Goodput(Span::During),
            Promise::Attempts { span: Span::During, most: 1.5 },
        ],
    )
    .act(Duration::ZERO, 0, &format!("{WELL}:flap:{}:reset", time(short)))
    .act(Duration::ZERO, 1, &format!("{WELL}:flap:{}:status:503", time(long)))
}

fn contention(rate: f64) -> Plot {
    // Each provider can bear a quarter more than the usual load, so all three less than the crowd.
    let capacity = whole(1.25 * rate * ALONE.as_secs_f64());
    let peak = 3.0 * f64::from(capacity) / ALONE.as_secs_f64();
    let mut plot = Plot::new(
        format!(
            "five times the usual load at three providers that can give {peak:.0} answers/s together and get slower \
             instead of failing"
        ),
        [
            Promise::Yield { span: Span::Settled, share: 0.8, of: peak.min(CROWD * rate) },
            Promise::Attempts { span: Span::Settled, most: 1.2 },
        ],
    );
    plot.well = rules(&format!("contention:capacity={capacity}:base={}", time(ALONE)));
    plot.crowd = CROWD;
    plot.limit = capacity.saturating_mul(4);
    plot
}

fn outage() -> Plot {
    Plot::new(
        "all three providers are down: a answers 529, b resets, the smaller model answers 500",
        [Promise::Attempts { span: Span::Settled, most: 1.2 }, Promise::Known(Span::During)],
    )
    .act(Duration::ZERO, 0, "status:529")
    .act(Duration::ZERO, 1, "reset")
    .act(Duration::ZERO, 2, "status:500:body=html")
}

/// The next whole number, one at least.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn whole(number: f64) -> u32 {
    number.ceil().max(1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_scenarios() {
        for scenario in Scenario::ALL {
            assert_eq!(Scenario::named(scenario.name()), Some(scenario));
        }
        assert_eq!(Scenario::named("all"), None);
    }

    #[test]
    fn every_plot_can_be_played_at_any_length_and_rate() {
        for length in [Duration::from_millis(1), Duration::from_secs(20), Duration::from_hours(1)] {
            for rate in [0.01, 50.0, 10_000.0] {
                let settings = Settings { length, rate, ..Settings::default() };
                let times = Timetable::of(length);
                for scenario in Scenario::ALL {
                    let plot = scenario.plot(&settings, &times);
                    assert!(plot.acts.iter().all(|act| act.after <= times.during() && act.provider < 3));
                    assert!(plot.promises.contains(&Promise::Deadline), "{scenario:?}");
                }
            }
        }
    }

    #[test]
    fn a_crowd_is_more_than_the_providers_can_give() {
        let plot = contention(50.0);
        assert_eq!(plot.well.to_string(), "contention:capacity=7:base=100ms");
        assert_eq!(plot.promises[0], Promise::Yield { span: Span::Settled, share: 0.8, of: 210.0 });
        assert_eq!(plot.limit, 28);
        // One at a time is the least, and then the crowd itself is what can be given.
        assert_eq!(contention(1.0).promises[0], Promise::Yield { span: Span::Settled, share: 0.8, of: 5.0 });
    }
}

//! What a breaker says of itself, for stats and logs.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// Where a breaker stands, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// All calls pass.
    Closed,
    /// None passes until the cool-down has passed.
    Open,
    /// One call probes whether the target is back.
    HalfOpen,
    /// The target is back: a growing share of the calls passes.
    Ramp,
    /// The operator holds it closed.
    ForcedClosed,
    /// The operator holds it open.
    ForcedOpen,
    /// The operator lets nothing pass, not even as the last resort.
    Isolated,
}

impl Label {
    /// The word for metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
            Self::Ramp => "ramp",
            Self::ForcedClosed => "forced_closed",
            Self::ForcedOpen => "forced_open",
            Self::Isolated => "isolated",
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a breaker does not let everything pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// Too many calls failed.
    ErrorRate {
        /// How many, within the window.
        failed: u32,
        /// Of how many, those under way included.
        calls: u32,
    },
    /// First contents came too late for too long.
    Slow {
        /// Their p95 within the window.
        p95: Duration,
        /// The target's own.
        baseline: Duration,
        /// How often that is bearable.
        factor: f64,
        /// For how long it was not.
        lasted: Duration,
    },
    /// The probe failed.
    ProbeFailed,
    /// The target was shut for being slow, and the probe was slow as well.
    ProbeSlow {
        /// How late.
        after: Duration,
        /// The target's own p95.
        baseline: Duration,
        /// How often that is bearable.
        factor: f64,
    },
    /// The operator wants it so.
    Operator,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ErrorRate { failed, calls } => {
                let percent = 100.0 * f64::from(failed) / f64::from(calls.max(1));
                write!(f, "error rate {percent:.0} % of {calls} calls")
            }
            Self::Slow { p95, baseline, factor, lasted } => {
                let (p95, baseline, lasted) = (InWords(p95), InWords(baseline), InWords(lasted));
                write!(f, "first content p95 {p95} over {factor} x {baseline} for {lasted}")
            }
            Self::ProbeFailed => f.write_str("the probe failed"),
            Self::ProbeSlow { after, baseline, factor } => {
                let (after, baseline) = (InWords(after), InWords(baseline));
                write!(f, "first content of the probe after {after}, over {factor} x {baseline}")
            }
            Self::Operator => f.write_str("the operator wants it so"),
        }
    }
}

struct InWords(Duration);

impl fmt::Display for InWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        match seconds {
            1.0..60.0 => write!(f, "{seconds:.1} s"),
            60.0.. => write!(f, "{:.0} min", seconds / 60.0),
            _ => write!(f, "{} ms", self.0.as_millis()),
        }
    }
}

/// A breaker at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerState {
    /// Where it stands.
    pub label: Label,
    /// Since when.
    pub since: Instant,
    /// When time alone will move it on.
    pub until: Option<Instant>,
    /// Why; none while all is well.
    pub reason: Option<Reason>,
    /// Since when first contents come too late, before it opens for that.
    pub slow_since: Option<Instant>,
}

/// A change, to be logged once the breaker's lock is released.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition {
    /// When; a cool-down's end is known only when the next call asks.
    pub at: Instant,
    /// From where.
    pub from: Label,
    /// To where.
    pub to: Label,
    /// Why; none when all is well again.
    pub reason: Option<Reason>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_in_words() {
        let slow = Reason::Slow {
            p95: Duration::from_millis(8_080),
            baseline: Duration::from_millis(1_900),
            factor: 2.0,
            lasted: Duration::from_millis(301_250),
        };
        let probe = Reason::ProbeSlow {
            after: Duration::from_secs(12),
            baseline: Duration::from_millis(250),
            factor: 2.5,
        };
        for (reason, words) in [
            (Reason::ErrorRate { failed: 9, calls: 21 }, "error rate 43 % of 21 calls"),
            (slow, "first content p95 8.1 s over 2 x 1.9 s for 5 min"),
            (probe, "first content of the probe after 12.0 s, over 2.5 x 250 ms"),
        ] {
            assert_eq!(reason.to_string(), words);
        }
    }
}

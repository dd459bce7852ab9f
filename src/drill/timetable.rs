//! When a drill's phases begin and end.

use std::time::Duration;

/// The phases, and two parts of them in which the first shock is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    /// All is well.
    Before,
    /// The bad day.
    During,
    /// The bad day, once a breaker's window has passed.
    Settled,
    /// All is well again.
    After,
    /// That, once a cool-down and a ramp have passed.
    Recovered,
}

impl Span {
    pub(super) const ALL: [Self; 5] =
        [Self::Before, Self::During, Self::Settled, Self::After, Self::Recovered];

    /// As it stands over a column.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::During => "during",
            Self::Settled => "settled",
            Self::After => "after",
            Self::Recovered => "recovered",
        }
    }
}

/// Times since the start. Three tenths before, four during, three after; a breaker's window is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timetable {
    pub(super) length: Duration,
}

impl Timetable {
    pub(super) fn of(length: Duration) -> Self {
        Self { length }
    }

    /// How long a breaker remembers.
    pub(super) fn window(self) -> Duration {
        self.length / 10
    }

    /// How long a breaker stays open the first time.
    pub(super) fn cool_down(self) -> Duration {
        self.length / 10
    }

    /// How long it takes to let all back in.
    pub(super) fn ramp(self) -> Duration {
        self.length / 20
    }

    /// How long the bad day is.
    pub(super) fn during(self) -> Duration {
        self.length / 10 * 4
    }

    /// From when to when, the end not included.
    pub(super) fn span(self, span: Span) -> (Duration, Duration) {
        let bad = self.length / 10 * 3;
        let well = bad + self.during();
        match span {
            Span::Before => (Duration::ZERO, bad),
            Span::During => (bad, well),
            Span::Settled => (bad + self.window(), well),
            Span::After => (well, self.length),
            Span::Recovered => (well + self.cool_down() + self.ramp(), self.length),
        }
    }

    /// Every moment at which a span begins or ends, once each, in order.
    pub(super) fn bounds(self) -> Vec<Duration> {
        let mut bounds: Vec<_> =
            Span::ALL.iter().flat_map(|span| <[Duration; 2]>::from(self.span(*span))).collect();
        bounds.sort_unstable();
        bounds.dedup();
        bounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_each_other_and_fill_the_time() {
        let times = Timetable::of(Duration::from_secs(20));
        let [before, during, settled, after, recovered] = Span::ALL.map(|span| times.span(span));
        assert_eq!((before.0, before.1, during.1), (Duration::ZERO, during.0, after.0));
        assert_eq!(after.1, times.length);
        assert_eq!(settled, (during.0 + times.window(), during.1));
        assert_eq!(recovered, (after.0 + Duration::from_secs(3), after.1));
        assert_eq!(times.bounds().len(), 6);
    }
}

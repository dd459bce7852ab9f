//! Where a window of the statistics begins, as `?since=` says it.

use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::clock::Timestamp;

/// The beginning of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// So long ago.
    Ago(Duration),
    /// A moment.
    At(Timestamp),
}

impl Since {
    /// The moment meant, `now` being now.
    pub(super) fn moment(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Ago(duration) => now.before(duration),
            Self::At(moment) => moment,
        }
    }
}

/// Text that says no moment.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "{0:?} is no beginning of a window: allowed are a duration like 15m or 6h, a Unix time in seconds, and a time like 2026-11-30T12:00:00Z"
)]
pub struct InvalidSince(String);

impl FromStr for Since {
    type Err = InvalidSince;

    /// Reads a duration (`15m`, `1h 30m`), a Unix time in seconds (`1796040000`; digits only), or
    /// an RFC 3339 time (`2026-11-30T12:00:00Z`).
    fn from_str(text: &str) -> Result<Self, InvalidSince> {
        let text = text.trim();
        if let Ok(seconds) = text.parse() {
            return Ok(Self::At(Timestamp(0).after(Duration::from_secs(seconds))));
        }
        if let Ok(duration) = humantime::parse_duration(text) {
            return Ok(Self::Ago(duration));
        }
        text.parse().map(Self::At).map_err(|_| InvalidSince(text.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations_and_both_kinds_of_time() {
        assert_eq!("15m".parse(), Ok(Since::Ago(Duration::from_mins(15))));
        assert_eq!("1h 30m".parse(), Ok(Since::Ago(Duration::from_mins(90))));
        assert_eq!("1796040000".parse(), Ok(Since::At(Timestamp(1_796_040_000_000))));
        assert_eq!("2026-11-30T12:00:00Z".parse(), Ok(Since::At(Timestamp(1_796_040_000_000))));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "yesterday",
            "-5m",
            "-15",
            "5 parsecs",
            "2026-11-30",
            "2026-13-30T12:00:00Z",
            "2026-11-30T12:00:00",
            "99999999999999999999999d",
        ] {
            let since: Result<Since, _> = text.parse();
            assert_eq!(since, Err(InvalidSince(text.to_owned())));
        }
    }

    #[test]
    fn the_end_of_time_is_no_overflow() {
        let far: Since = u64::MAX.to_string().parse().expect("digits");
        assert_eq!(far.moment(Timestamp(5)), Timestamp(u64::MAX));
        assert_eq!(Since::Ago(Duration::MAX).moment(Timestamp(5)), Timestamp(0));
    }
}

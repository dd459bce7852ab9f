//! Points in time as people write them.

use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use thiserror::Error;

use super::{Timestamp, millis};

/// The last second that RFC 3339 can write.
const LAST: u64 = 253_402_300_799;

impl Timestamp {
    /// As RFC 3339 writes it, in UTC and whole seconds; what lies beyond the year 9999 as its end.
    pub fn to_rfc3339(self) -> String {
        let time = UNIX_EPOCH + Duration::from_secs(self.as_secs().min(LAST));
        humantime::format_rfc3339_seconds(time).to_string()
    }
}

/// Text that is no point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("write a time from 1970 on like 2026-12-01T03:00:00Z or 2026-12-01T04:00:00+01:00")]
pub struct InvalidTime;

impl FromStr for Timestamp {
    type Err = InvalidTime;

    /// Reads RFC 3339, with `Z` or with an offset: at night nobody should have to reckon in UTC.
    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        let text = text.to_ascii_uppercase();
        let (local, ahead, offset) = split(&text).ok_or(InvalidTime)?;
        // The library reads on after the seconds and takes more than it should.
        let fraction = local.get(19..).ok_or(InvalidTime)?;
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !fraction.is_empty() && !fraction.strip_prefix('.').is_some_and(is_number) {
            return Err(InvalidTime);
        }
        let time = humantime::parse_rfc3339(&format!("{local}Z")).map_err(|_| InvalidTime)?;
        let time = since_epoch(time)?;
        Ok(if ahead { time.before(offset) } else { time.after(offset) })
    }
}

fn since_epoch(time: SystemTime) -> Result<Timestamp, InvalidTime> {
    let since = time.duration_since(UNIX_EPOCH).map_err(|_| InvalidTime)?;
    Ok(Timestamp(millis(since)))
}

/// The time there, whether clocks there are ahead of UTC, and by how much they differ.
fn split(text: &str) -> Option<(&str, bool, Duration)> {
    if let Some(utc) = text.strip_suffix('Z') {
        return Some((utc, true, Duration::ZERO));
    }
    let (local, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let (ahead, offset) = match (offset.strip_prefix('+'), offset.strip_prefix('-')) {
        (Some(offset), _) => (true, offset),
        (_, Some(offset)) => (false, offset),
        (None, None) => return None,
    };
    let (hours, minutes) = offset.split_once(':')?;
    let number = |digits: &str, below: u64| {
        let two = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u64>().ok().filter(|number| two && *number < below)
    };
    let seconds = (number(hours, 24)? * 60 + number(minutes, 60)?) * 60;
    Some((local, ahead, Duration::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_moment_in_many_places() {
        let moment = Timestamp(1_796_094_000_000);
        assert_eq!(moment.to_rfc3339(), "2026-12-01T03:00:00Z");
        for text in [
            "2026-12-01T03:00:00Z",
            "2026-12-01t03:00:00z",
            "2026-12-01T03:00:00.000+00:00",
            "2026-12-01T04:00:00+01:00",
            "2026-12-01T08:30:00+05:30",
            "2026-11-30T19:00:00-08:00",
        ] {
            assert_eq!(text.parse(), Ok(moment), "{text}");
        }
        assert_eq!("1970-01-01T00:00:01.5Z".parse(), Ok(Timestamp(1_500)));
    }

    #[test]
    fn anything_else_is_no_time() {
        for text in [
            "",
            "soon",
            "Z",
            "+01:00",
            "2026-12-01",
            "2026-12-01T03:00:00",
            "2026-12-01T03:00:00+0100",
            "2026-12-01T03:00:00+24:00",
            "2026-12-01T03:00:00+01:60",
            "2026-12-01T03:00:00*01:00",
            "2026-12-01T03:00:00Z+01:00",
            "2026-12-01T03:00:00ZZ",
            "2026-12-01T03:00:00Z7+01:00",
            "2026-12-01T03:00:00.Z",
            "2026-12-01T03:00:00.5+00:0Z",
            "2026-12-01T25:00:00Z",
            "1969-12-31T23:59:59Z",
            "2026-12-01T03:00:00+é:00",
            "時時時時",
            "2026-12-01T03:00:00é1:00",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(InvalidTime), "{text:?}");
        }
    }

    #[test]
    fn what_is_too_late_to_be_written_is_the_end_of_time() {
        assert_eq!(Timestamp(u64::MAX).to_rfc3339(), "9999-12-31T23:59:59Z");
    }

    proptest! {
        #[test]
        fn whole_seconds_survive_their_text(seconds in 0..=LAST) {
            let time = Timestamp(seconds * 1_000);
            prop_assert_eq!(time.to_rfc3339().parse(), Ok(time));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,30}") {
            let _ = text.parse::<Timestamp>();
        }
    }
}

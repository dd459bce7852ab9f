//! Wall time that paused tests can drive.
//!
//! Entries carry wall-clock times because they outlive the process, while every timer of the
//! service runs on tokio's clock. Deriving the first from the second gives one lever for TTLs,
//! breakers and backoff alike, and keeps a stepping system clock from expiring a whole cache.
//! The cost: a correction of the wall clock after the start is not seen until the next start.

mod rfc3339;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

pub use rfc3339::InvalidTime;

/// A point in wall time, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The time `by` later; saturates at the end of time.
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(millis(by)))
    }

    /// The time `by` earlier; saturates at the epoch.
    pub fn before(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(millis(by)))
    }

    /// How long ago `earlier` was; zero when it lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Whole seconds since the epoch, as chat protocols write it.
    pub fn as_secs(self) -> u64 {
        self.0 / 1000
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Start wall time plus the tokio time that has passed since.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    wall: Timestamp,
    start: Instant,
}

impl Clock {
    /// A clock that agrees with the system's wall clock now.
    #[expect(clippy::disallowed_methods, reason = "this is the one home of wall time")]
    pub fn system() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::starting_at(Timestamp(millis(wall)))
    }

    /// A clock that shows `wall` now; for tests that need a known date.
    pub fn starting_at(wall: Timestamp) -> Self {
        Self { wall, start: Instant::now() }
    }

    /// The wall time now.
    pub fn now(&self) -> Timestamp {
        self.wall.after(self.start.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn moves_with_tokio_time() {
        let clock = Clock::starting_at(Timestamp(5_000));
        tokio::time::advance(Duration::from_millis(1_500)).await;
        assert_eq!(clock.now(), Timestamp(6_500));
        assert_eq!(clock.now().since(Timestamp(6_000)), Duration::from_millis(500));
        assert_eq!(clock.now().since(Timestamp(9_000)), Duration::ZERO);
        assert_eq!(clock.now().as_secs(), 6);
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp(u64::MAX).after(Duration::MAX), Timestamp(u64::MAX));
        assert_eq!(Timestamp(1).before(Duration::MAX), Timestamp(0));
    }
}

//! Where one key stands: open, cooling, or in quarantine.
//!
//! ```text
//!             429                       401, 403, quota
//!    Open ----------> Cooling      any ----------------> Quarantined
//!      ^                 |                                 |      ^
//!      +--- until past --+            until past: one probe|      | the probe fails:
//!      +------------------ it succeeds --------------------+------+ twice as long
//! ```
//!
//! Many calls with the same key are under way at once, so one refusal comes back many times, mixed
//! with successes of calls that began before it. Each change of standing therefore begins a new
//! era, and what a call of an earlier era says counts only as far as it is certain: it may make a
//! rest longer, but neither ends one nor makes the next one twice as long.

use std::time::Duration;

use tokio::time::Instant;

/// The first rest after a 429 that names none; doubled each time in a row.
const FIRST_REST: Duration = Duration::from_secs(1);
/// The longest of these.
const LONGEST_REST: Duration = Duration::from_mins(1);
/// No rest is longer, whatever the provider says (resets a day and more away were seen that
/// were not true): asking once an hour costs little, and a key left out for ever is lost.
const LONGEST: Duration = Duration::from_hours(1);

/// Limits are counted by the minute, so one that is older says nothing about the key's turn.
const RECENT: Duration = Duration::from_mins(1);

/// Why the provider does not accept a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The key is wrong, revoked, or not allowed to do this.
    Auth,
    /// Its account is out of money or over a limit of days.
    Quota,
}

impl Refusal {
    /// A word for metrics and logs.
    pub fn label(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Quota => "quota",
        }
    }

    fn first_rest(self) -> Duration {
        match self {
            Self::Auth => Duration::from_mins(10),
            Self::Quota => Duration::from_mins(15),
        }
    }
}

/// Where a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may be used.
    Ready,
    /// The provider limits it.
    Cooling {
        /// When it may be used again.
        until: Instant,
    },
    /// The provider does not accept it.
    Quarantined {
        /// Why.
        refusal: Refusal,
        /// From when one call may try it again; past while that call is awaited or under way.
        until: Instant,
    },
}

impl Standing {
    /// A word for metrics and logs: `ready`, `cooling` or `quarantined`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Cooling { .. } => "cooling",
            Self::Quarantined { .. } => "quarantined",
        }
    }
}

/// Whether a key can be picked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Ready,
    /// By one call, to see whether it is accepted again.
    Probe,
    /// Not before this.
    From(Instant),
    /// A probe is under way, and nobody knows for how long.
    Probing,
}

/// One key's history, as far as it matters.
#[derive(Debug)]
pub(super) struct Key {
    standing: Standing,
    /// A probe is under way; only ever in quarantine.
    probing: bool,
    /// Grows with every rest.
    era: u64,
    /// 429s in a row that named no time.
    limits: u32,
    /// Quarantines in a row.
    refusals: u32,
    last_limited: Option<Instant>,
    /// When it was last picked, counted in picks.
    last_used: u64,
}

impl Key {
    pub(super) fn new() -> Self {
        Self {
            standing: Standing::Ready,
            probing: false,
            era: 0,
            limits: 0,
            refusals: 0,
            last_limited: None,
            last_used: 0,
        }
    }

    pub(super) fn access(&self, now: Instant) -> Access {
        match self.standing {
            _ if self.probing => Access::Probing,
            Standing::Cooling { until } | Standing::Quarantined { until, .. } if now < until => {
                Access::From(until)
            }
            Standing::Quarantined { .. } => Access::Probe,
            Standing::Ready | Standing::Cooling { .. } => Access::Ready,
        }
    }

    /// Least recently limited first, then least recently used.
    pub(super) fn turn(&self, now: Instant) -> (Option<Instant>, u64) {
        let limited = self.last_limited.filter(|limited| now < *limited + RECENT);
        (limited, self.last_used)
    }

    /// Gives the key to a call; only after [`Key::access`] allowed it. The era is to be said with
    /// the call's result.
    pub(super) fn take(&mut self, pick: u64) -> u64 {
        self.last_used = pick;
        self.probing = matches!(self.standing, Standing::Quarantined { .. });
        self.era
    }

    /// The call ended and says nothing about the key.
    pub(super) fn give_back(&mut self, era: u64) {
        if era == self.era {
            self.probing = false;
        }
    }

    /// The provider accepted the key.
    pub(super) fn succeed(&mut self, era: u64) {
        if era == self.era {
            self.standing = Standing::Ready;
            self.probing = false;
            self.limits = 0;
            self.refusals = 0;
        }
    }

    /// The provider limits the key, until a time it may have named. One that is past counts as
    /// none. Gives the time from which the key may be used again.
    pub(super) fn cool(&mut self, era: u64, named: Option<Instant>, now: Instant) -> Instant {
        self.last_limited = Some(now);
        let current = era == self.era;
        let until = match named {
            Some(named) if now < named => named.min(now + LONGEST),
            _ => now + self.unnamed_rest(current),
        };
        let until = match self.standing {
            Standing::Quarantined { until, .. } if !current => return until,
            Standing::Cooling { until: before } => before.max(until),
            // A key that is limited is accepted: so much for the quarantine.
            Standing::Quarantined { .. } | Standing::Ready => until,
        };
        self.rest(Standing::Cooling { until });
        if current {
            self.refusals = 0;
        }
        until
    }

    fn unnamed_rest(&mut self, current: bool) -> Duration {
        self.limits = if current { self.limits.saturating_add(1) } else { self.limits.max(1) };
        doubled(FIRST_REST, self.limits, LONGEST_REST)
    }

    /// The provider does not accept the key. Gives the time from which it is tried again.
    pub(super) fn quarantine(&mut self, era: u64, refusal: Refusal, now: Instant) -> Instant {
        let current = era == self.era;
        let limited_until = match self.standing {
            Standing::Quarantined { until, .. } if !current => return until,
            Standing::Cooling { until } => until,
            Standing::Quarantined { .. } | Standing::Ready => now,
        };
        self.refusals = if current { self.refusals.saturating_add(1) } else { self.refusals.max(1) };
        let until = limited_until.max(now + doubled(refusal.first_rest(), self.refusals, LONGEST));
        self.rest(Standing::Quarantined { refusal, until });
        until
    }

    fn rest(&mut self, standing: Standing) {
        self.standing = standing;
        self.probing = false;
        self.era += 1;
    }

    /// Where the key stands now.
    pub(super) fn standing(&self, now: Instant) -> Standing {
        match self.standing {
            Standing::Cooling { until } if until <= now => Standing::Ready,
            standing => standing,
        }
    }

    pub(super) fn last_limited(&self) -> Option<Instant> {
        self.last_limited
    }
}

/// `first`, twice as long for each time after the first one, at most `longest`.
fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(times.saturating_sub(1))).min(longest)
}

//! How numbers that only grow stood at earlier minutes: the past that `?since=` asks for.
//!
//! Why marks and no ring of minutes: a namespace that nobody uses costs nothing, and one that is
//! busy all day costs about 200 marks instead of 1440. The last hour is kept by the minute, the
//! day before it by ten minutes. Nothing ticks: whoever counts first in a new minute leaves the
//! mark, so the clock alone drives the history, paused time included.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::lock;
use crate::clock::Timestamp;

/// Marks younger than this are kept by the minute.
const FINE: u64 = 60;
/// Older ones by blocks of this many minutes.
const BLOCK: u64 = 10;
/// No window reaches back further than this.
const REACH: u64 = 24 * 60;

/// A whole minute since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Minute(u64);

impl Minute {
    /// The minute that holds `time`.
    pub(super) fn of(time: Timestamp) -> Self {
        Self(time.as_secs() / 60)
    }

    /// Its first moment.
    pub(super) fn start(self) -> Timestamp {
        Timestamp(self.0.saturating_mul(60_000))
    }

    /// Where a window really begins that was asked to begin here: within reach of `now`, and at a
    /// mark, so never later than asked unless out of reach.
    pub(super) fn answerable(self, now: Self) -> Self {
        let asked = self.0.clamp(now.0.saturating_sub(REACH), now.0);
        if asked + FINE >= now.0 { Self(asked) } else { Self(asked - asked % BLOCK) }
    }
}

/// How a value stood when a minute ended.
#[derive(Debug)]
struct Mark<T> {
    /// The minute that began then.
    minute: Minute,
    value: T,
}

/// The past of one value. At most `FINE + REACH / BLOCK + 3` marks.
#[derive(Debug)]
pub(super) struct Timeline<T> {
    /// The minute that is being counted in, so that counting takes no lock within it.
    current: AtomicU64,
    marks: Mutex<Vec<Mark<T>>>,
}

impl<T: Clone + PartialEq> Timeline<T> {
    /// A timeline without a past.
    pub(super) fn starting_in(minute: Minute) -> Self {
        Self { current: AtomicU64::new(minute.0), marks: Mutex::default() }
    }

    /// Marks how the value stood when the minute last counted in ended, if that was before `now`.
    /// To be called before counting anything, with the minute it happens in. Who counts at the
    /// same moment on another thread may be counted to the neighbouring minute, never twice or not at all.
    pub(super) fn turn(&self, now: Minute, value: impl FnOnce() -> T) {
        if now.0 > self.current.load(Ordering::Relaxed) {
            self.mark(now, value);
        }
    }

    #[cold]
    fn mark(&self, now: Minute, value: impl FnOnce() -> T) {
        let mut marks = lock(&self.marks);
        let ended = self.current.load(Ordering::Relaxed);
        if now.0 <= ended {
            return;
        }
        let value = value();
        if marks.last().is_none_or(|last| last.value != value) {
            marks.push(Mark { minute: Minute(ended + 1), value });
        }
        thin(&mut marks, now);
        self.current.store(now.0, Ordering::Relaxed);
    }

    /// How the value stood when `minute` began; none when nothing had been counted by then.
    /// `minute` must be answerable.
    pub(super) fn value_at(&self, minute: Minute) -> Option<T> {
        let marks = lock(&self.marks);
        let after = marks.partition_point(|mark| mark.minute <= minute);
        after.checked_sub(1).map(|index| marks[index].value.clone())
    }
}

/// Of each block of old minutes only the last mark stays; of what is out of reach only the last
/// mark, which says how the value stood at the edge.
fn thin<T>(marks: &mut Vec<Mark<T>>, now: Minute) {
    let edge = now.0.saturating_sub(REACH + BLOCK);
    let out_of_reach = marks.partition_point(|mark| mark.minute.0 <= edge).saturating_sub(1);
    marks.drain(..out_of_reach);

    let fine = now.0.saturating_sub(FINE);
    marks.dedup_by(|later, kept| {
        let same_block = later.minute.0.div_ceil(BLOCK) == kept.minute.0.div_ceil(BLOCK);
        let merge = same_block && later.minute.0 < fine;
        if merge {
            std::mem::swap(later, kept);
        }
        merge
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_idle_minute_leaves_no_mark() {
        let timeline = Timeline::starting_in(Minute(100));
        timeline.turn(Minute(100), || unreachable!("the minute has not ended"));
        timeline.turn(Minute(105), || 7);
        timeline.turn(Minute(106), || 7);
        timeline.turn(Minute(107), || 7);
        assert_eq!(lock(&timeline.marks).len(), 1);
        assert_eq!(timeline.value_at(Minute(100)), None);
        assert_eq!(timeline.value_at(Minute(101)), Some(7));
        assert_eq!(timeline.value_at(Minute(107)), Some(7));
    }

    #[test]
    fn a_window_begins_at_a_mark_within_reach() {
        let now = Minute(10_005);
        assert_eq!(Minute(10_004).answerable(now), Minute(10_004));
        assert_eq!(Minute(9_945).answerable(now), Minute(9_945));
        assert_eq!(Minute(9_944).answerable(now), Minute(9_940));
        assert_eq!(Minute(3).answerable(now), Minute(8_560));
        assert_eq!(Minute(20_000).answerable(now), now);
        assert_eq!(Minute(0).answerable(Minute(5)), Minute(0));
    }

    #[test]
    fn two_days_of_every_minute_stay_within_the_bound() {
        let timeline = Timeline::starting_in(Minute(1));
        for minute in 2..2 * REACH {
            timeline.turn(Minute(minute), || minute);
            assert!(lock(&timeline.marks).len() as u64 <= FINE + REACH / BLOCK + 3);
        }
    }

    proptest! {
        /// Whatever the gaps, every answerable minute is answered as a full list of minutes would.
        #[test]
        fn thinning_loses_nothing_that_can_be_asked(gaps in prop::collection::vec(1_u64..200, 1..120)) {
            let timeline = Timeline::starting_in(Minute(1_000));
            // What was counted, in which minute: the value is the number of counts so far.
            let mut counted = vec![];
            let mut now = 1_000;
            for gap in gaps {
                timeline.turn(Minute(now), || counted.len());
                counted.push(now);
                now += gap;
            }
            timeline.turn(Minute(now), || counted.len());
            for asked in now.saturating_sub(REACH)..=now {
                let begin = Minute(asked).answerable(Minute(now));
                let expected = counted.iter().filter(|minute| **minute < begin.0).count();
                prop_assert_eq!(timeline.value_at(begin).unwrap_or(0), expected, "since {:?}", begin);
            }
        }
    }
}

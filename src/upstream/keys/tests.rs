use std::time::Duration;

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

fn pool(keys: usize) -> KeyPool<&'static str> {
    KeyPool::new(["sk-canary-1", "sk-canary-2", "sk-canary-3"][..keys].to_vec())
}

/// Picks, and succeeds at once.
fn use_one(pool: &KeyPool<&'static str>, now: Instant) -> Option<usize> {
    let picked = pool.pick(now, &[])?;
    let index = picked.index();
    picked.succeed();
    Some(index)
}

/// Picks a key that must be there.
fn pick(pool: &KeyPool<&'static str>, now: Instant) -> Picked<&'static str> {
    pool.pick(now, &[]).expect("a key can be picked")
}

fn index(picked: Option<Picked<&'static str>>) -> Option<usize> {
    picked.map(|picked| picked.index())
}

#[test]
fn keys_take_turns() {
    let (pool, now) = (pool(3), Instant::now());
    let used: Vec<_> = (0..6).filter_map(|_| use_one(&pool, now)).collect();
    assert_eq!(used, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn concurrent_calls_share_the_keys_evenly() {
    let (pool, now) = (pool(3), Instant::now());
    let held: Vec<_> = (0..30).map(|_| pick(&pool, now)).collect();
    for index in 0..3 {
        assert_eq!(held.iter().filter(|picked| picked.index() == index).count(), 10);
    }
}

#[test]
fn a_request_never_gets_a_key_twice() {
    let (pool, now) = (pool(3), Instant::now());
    assert_eq!(index(pool.pick(now, &[0])), Some(1));
    assert_eq!(index(pool.pick(now, &[0, 1])), Some(2));
    assert_eq!(index(pool.pick(now, &[2, 0, 1])), None);
}

#[test]
fn a_limited_key_rests_until_its_reset_and_is_then_the_last_for_a_minute() {
    let (pool, start) = (pool(3), Instant::now());
    assert_eq!(pick(&pool, start).cool(Some(start + 20 * SECOND), start), Some(start + 20 * SECOND));
    let before = start + 19 * SECOND;
    assert_eq!([use_one(&pool, before), use_one(&pool, before)], [Some(1), Some(2)]);
    assert_eq!(index(pool.pick(before, &[1, 2])), None);

    let after = start + 20 * SECOND;
    assert_eq!([use_one(&pool, after), use_one(&pool, after)], [Some(1), Some(2)]);
    assert_eq!(index(pool.pick(after, &[1, 2])), Some(0));

    let later = start + MINUTE;
    let used: Vec<_> = (0..3).filter_map(|_| use_one(&pool, later)).collect();
    assert_eq!(used, [1, 2, 0], "it takes its turns again");
}

#[test]
fn of_limited_keys_the_one_limited_longest_ago_is_first() {
    let (pool, start) = (pool(3), Instant::now());
    let held: Vec<_> = (0..3).map(|_| pick(&pool, start)).collect();
    for (picked, second) in held.into_iter().zip([3, 1, 2]) {
        picked.cool(Some(start + 5 * SECOND), start + second * SECOND);
    }
    let now = start + 5 * SECOND;
    assert_eq!(index(pool.pick(now, &[])), Some(1));
    assert_eq!(index(pool.pick(now, &[1])), Some(2));
}

#[test]
fn the_longer_rest_counts() {
    let (pool, start) = (pool(1), Instant::now());
    let calls: Vec<_> = (0..4).map(|_| pick(&pool, start)).collect();
    let until = |seconds| Some(start + seconds * SECOND);
    let ends = calls.into_iter().zip([30, 5, 40, 0]).map(|(call, named)| call.cool(until(named), start));
    assert_eq!(ends.collect::<Vec<_>>(), [until(30), until(30), until(40), until(40)]);
    assert_eq!(pool.next_free(start), until(40));
    assert_eq!(index(pool.pick(start + 39 * SECOND, &[])), None);
    assert_eq!(index(pool.pick(start + 40 * SECOND, &[])), Some(0));
    assert_eq!(pool.next_free(start + 40 * SECOND), None);
}

#[test]
fn a_rest_without_a_word_doubles_up_to_a_minute_and_starts_over_after_a_success() {
    let (pool, start) = (pool(1), Instant::now());
    let mut now = start;
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        // A reset that is past is no word.
        let named = (seconds % 3 == 0).then_some(now);
        let end = pick(&pool, now).cool(named, now).expect("the pool has a key");
        assert_eq!(end - now, seconds * SECOND);
        now = end;
    }
    assert_eq!(use_one(&pool, now), Some(0));
    assert_eq!(pick(&pool, now).cool(None, now), Some(now + SECOND));
}

#[test]
fn one_burst_of_refusals_counts_once() {
    let (pool, start) = (pool(1), Instant::now());
    let calls: Vec<_> = (0..10).map(|_| pick(&pool, start)).collect();
    for call in calls {
        assert_eq!(call.cool(None, start), Some(start + SECOND));
    }
    let now = start + SECOND;
    let calls: Vec<_> = (0..10).map(|_| pick(&pool, now)).collect();
    for call in calls {
        assert_eq!(call.quarantine(Refusal::Auth, now), Some(now + 10 * MINUTE));
    }
}

#[test]
fn a_success_of_a_call_that_began_before_the_limit_does_not_lift_it() {
    let (pool, start) = (pool(1), Instant::now());
    let (early, limited, refused) = (pick(&pool, start), pick(&pool, start), pick(&pool, start));
    limited.cool(Some(start + 9 * SECOND), start);
    early.succeed();
    assert_eq!(pool.next_free(start), Some(start + 9 * SECOND));
    // Quarantine is the stronger word, and does not cut the rest short either.
    refused.quarantine(Refusal::Auth, start);
    assert_eq!(pool.next_free(start), Some(start + 10 * MINUTE));
}

#[test]
fn no_rest_is_for_ever() {
    let (pool, start) = (pool(1), Instant::now());
    let end = pick(&pool, start).cool(Some(start + 9_999 * HOUR), start);
    assert_eq!(end, Some(start + HOUR));
    assert_eq!(use_one(&pool, start + HOUR), Some(0));
}

#[test]
fn a_refused_key_is_tried_again_by_exactly_one_call() {
    let (pool, start) = (pool(1), Instant::now());
    pick(&pool, start).quarantine(Refusal::Auth, start);
    assert_eq!(index(pool.pick(start + 599 * SECOND, &[])), None);
    let now = start + 10 * MINUTE;
    let probe = pick(&pool, now);
    assert_eq!(index(pool.pick(now, &[])), None);
    assert_eq!(pool.next_free(now), None, "nobody knows how long the probe takes");
    assert_eq!(pool.states(now)[0].standing.label(), "quarantined");
    probe.succeed();
    assert_eq!(pool.states(now)[0].standing, Standing::Ready);
    assert_eq!([use_one(&pool, now), use_one(&pool, now)], [Some(0), Some(0)]);
}

#[test]
fn a_probe_without_a_result_goes_to_the_next_call() {
    let (pool, start) = (pool(1), Instant::now());
    pick(&pool, start).quarantine(Refusal::Quota, start);
    let now = start + 15 * MINUTE;
    drop(pick(&pool, now));
    let probe = pick(&pool, now);
    assert_eq!(index(pool.pick(now, &[])), None);
    drop(probe);
    assert_eq!(use_one(&pool, now), Some(0));
}

#[test]
fn each_failed_probe_doubles_the_rest_up_to_an_hour_and_a_success_starts_over() {
    for (refusal, minutes) in [(Refusal::Auth, [10, 20, 40, 60, 60]), (Refusal::Quota, [15, 30, 60, 60, 60])]
    {
        let (pool, mut now) = (pool(1), Instant::now());
        for minutes in minutes {
            let end = pick(&pool, now).quarantine(refusal, now).expect("the pool has a key");
            assert_eq!(end - now, minutes * MINUTE, "{}", refusal.label());
            now = end;
        }
        assert_eq!(use_one(&pool, now), Some(0));
        let first = Some(now + minutes[0] * MINUTE);
        assert_eq!(pick(&pool, now).quarantine(refusal, now), first);
    }
}

#[test]
fn a_probe_that_is_only_limited_ends_the_quarantine() {
    let (pool, start) = (pool(1), Instant::now());
    pick(&pool, start).quarantine(Refusal::Quota, start);
    let now = start + 15 * MINUTE;
    pick(&pool, now).cool(Some(now + SECOND), now);
    let calls = [pool.pick(now + SECOND, &[]), pool.pick(now + SECOND, &[])];
    assert_eq!(calls.map(index), [Some(0), Some(0)], "no probe any more");
}

#[test]
fn a_probe_comes_before_healthy_keys_but_not_for_a_request_that_failed_already() {
    let (pool, start) = (pool(3), Instant::now());
    pick(&pool, start).quarantine(Refusal::Auth, start);
    let now = start + 10 * MINUTE;
    assert_eq!(index(pool.pick(now, &[1])), Some(2));
    assert_eq!(index(pool.pick(now, &[1, 2])), Some(0));
    let probe = pick(&pool, now);
    assert_eq!(probe.index(), 0);
    assert_eq!(use_one(&pool, now), Some(1));
}

#[test]
fn the_next_free_key_is_the_one_whose_rest_ends_first() {
    let (pool, start) = (pool(2), Instant::now());
    let (first, second) = (pick(&pool, start), pick(&pool, start));
    first.quarantine(Refusal::Auth, start);
    assert_eq!(pool.next_free(start), None);
    second.cool(Some(start + 7 * SECOND), start);
    assert_eq!(pool.next_free(start), Some(start + 7 * SECOND));
}

#[test]
fn without_keys_each_request_gets_one_call_and_nothing_is_remembered() {
    let (pool, now) = (KeyPool::<&str>::new(Vec::new()), Instant::now());
    let picked = pool.pick(now, &[]).expect("one call is possible");
    assert_eq!((picked.key(), picked.name()), (None, "no key".to_owned()));
    let tried = [picked.index()];
    assert_eq!(picked.quarantine(Refusal::Auth, now), None);
    assert!(pool.pick(now, &tried).is_none());
    let other = pool.pick(now, &[]).expect("another request is not concerned");
    assert_eq!(other.cool(None, now), None);
    assert_eq!((pool.next_free(now), pool.states(now)), (None, vec![]));
}

#[test]
fn states_say_what_is_wrong_with_which_key() {
    let (pool, start) = (pool(3), Instant::now());
    let held: Vec<_> = (0..3).map(|_| pick(&pool, start)).collect();
    let [first, second, third] = held.try_into().expect("three");
    first.succeed();
    second.cool(Some(start + SECOND), start);
    third.quarantine(Refusal::Quota, start);
    let states = pool.states(start);
    assert_eq!(states.iter().map(KeyState::name).collect::<Vec<_>>(), ["key 1", "key 2", "key 3"]);
    assert_eq!(states[0].standing, Standing::Ready);
    assert_eq!(states[1].standing, Standing::Cooling { until: start + SECOND });
    assert_eq!(states[1].last_limited, Some(start));
    let until = start + 15 * MINUTE;
    assert_eq!(states[2].standing, Standing::Quarantined { refusal: Refusal::Quota, until });
    assert_eq!(pool.states(start + SECOND)[1].standing, Standing::Ready);
}

#[test]
fn debug_shows_no_key() {
    let (pool, now) = (pool(2), Instant::now());
    let picked = pick(&pool, now);
    assert_eq!(picked.key(), Some(&"sk-canary-1"));
    assert_eq!(format!("{picked:?}"), "Picked(\"key 1\")");
    assert!(!format!("{pool:?} {:?}", pool.states(now)).contains("canary"));
}

#[derive(Clone, Copy, Debug)]
enum Report {
    Success,
    Limit(Option<u32>),
    Refusal(Refusal),
    Nothing,
}

#[derive(Clone, Debug)]
enum Step {
    Pick { tried: Vec<usize> },
    End { call: usize, report: Report },
    Wait { seconds: u32 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let report = prop_oneof![
        Just(Report::Success),
        prop::option::of(0..5_000_u32).prop_map(Report::Limit),
        prop_oneof![Just(Refusal::Auth), Just(Refusal::Quota)].prop_map(Report::Refusal),
        Just(Report::Nothing),
    ];
    let step = prop_oneof![
        prop::collection::vec(0..3_usize, 0..3).prop_map(|tried| Step::Pick { tried }),
        (0..8_usize, report).prop_map(|(call, report)| Step::End { call, report }),
        (0..1_000_u32).prop_map(|seconds| Step::Wait { seconds }),
    ];
    prop::collection::vec(step, 1..80)
}

/// A pool, its calls under way, and what is known of it from outside.
struct Model {
    pool: KeyPool<&'static str>,
    now: Instant,
    calls: Vec<Picked<&'static str>>,
    /// By key: the end of its last rest.
    rests: [Option<Instant>; 3],
    /// By key: the era of the probe under way.
    probes: [Option<u64>; 3],
}

impl Model {
    fn pick(&mut self, tried: &[usize]) {
        let states = self.pool.states(self.now);
        let is_ready = |key: &KeyState| key.standing == Standing::Ready && !tried.contains(&key.index);
        let picked = self.pool.pick(self.now, tried);
        assert!(picked.is_some() || !states.iter().any(is_ready), "a ready key is not given out");
        let Some(picked) = picked else { return };
        let index = picked.index();
        assert!(!tried.contains(&index));
        assert!(self.rests[index].is_none_or(|until| until <= self.now), "a resting key is given out");
        if matches!(states[index].standing, Standing::Quarantined { .. }) {
            assert_eq!(self.probes[index].replace(picked.era), None, "two probes at once");
        }
        self.calls.push(picked);
    }

    fn end(&mut self, call: usize, report: Report) {
        if call >= self.calls.len() {
            return;
        }
        let call = self.calls.swap_remove(call);
        let index = call.index();
        if self.probes[index] == Some(call.era) {
            self.probes[index] = None;
        }
        let end = match report {
            Report::Success => return call.succeed(),
            Report::Nothing => return drop(call),
            Report::Limit(named) => call.cool(named.map(|seconds| self.now + seconds * SECOND), self.now),
            Report::Refusal(refusal) => call.quarantine(refusal, self.now),
        };
        assert!(end.is_some_and(|end| end <= self.now + HOUR), "a rest without an end");
        assert!(end >= self.rests[index], "a rest became shorter");
        self.rests[index] = end;
    }
}

proptest! {
    /// Whatever calls report and in whatever order: no key is given out while it rests, one is
    /// given out whenever one is ready, one call at a time probes a key, and within an hour every
    /// key is given out again.
    #[test]
    fn a_pool_gives_what_is_ready_and_nothing_else(steps in steps()) {
        let (calls, rests, probes) = (Vec::new(), [None; 3], [None; 3]);
        let mut model = Model { pool: pool(3), now: Instant::now(), calls, rests, probes };
        for step in steps {
            match step {
                Step::Pick { tried } => model.pick(&tried),
                Step::End { call, report } => model.end(call, report),
                Step::Wait { seconds } => model.now += seconds * SECOND,
            }
        }
        model.calls.clear();
        for (index, others) in [[1, 2], [0, 2], [0, 1]].into_iter().enumerate() {
            let picked = model.pool.pick(model.now + HOUR, &others);
            prop_assert_eq!(picked.map(|picked| picked.index()), Some(index));
        }
    }
}

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn shaper(requests: u32, tokens: u32, now: Instant) -> Shaper {
    Shaper::new(NonZeroU32::new(requests), NonZeroU32::new(tokens), now)
}

/// How many requests of so many tokens pass at once.
fn pass(shaper: &Shaper, tokens: u32, now: Instant) -> usize {
    (0..1_000).take_while(|_| shaper.check(tokens, now).is_ok()).count()
}

#[test]
fn ten_seconds_worth_comes_at_once_and_then_one_at_a_time() {
    let start = Instant::now();
    let shaper = shaper(60, 0, start);
    assert_eq!(pass(&shaper, 9_999, start), 10);
    assert_eq!(shaper.check(0, start), Err(SECOND));
    assert_eq!(shaper.check(0, start + SECOND / 4), Err(SECOND * 3 / 4));
    assert_eq!(pass(&shaper, 0, start + SECOND), 1);
    assert_eq!(pass(&shaper, 0, start + 60 * SECOND), 10);
}

#[test]
fn tokens_are_counted_by_their_number() {
    let start = Instant::now();
    let shaper = shaper(0, 6_000, start);
    assert_eq!(pass(&shaper, 300, start), 3);
    assert_eq!(shaper.check(100, start), Ok(()));
    assert_eq!(shaper.check(500, start), Err(5 * SECOND));
    assert_eq!(shaper.check(0, start), Ok(()), "nothing costs nothing");
    assert_eq!(shaper.check(500, start + 5 * SECOND), Ok(()));
}

#[test]
fn a_small_allowance_lets_one_through() {
    let start = Instant::now();
    let shaper = shaper(2, 0, start);
    assert_eq!(pass(&shaper, 0, start), 1);
    assert_eq!(shaper.check(0, start), Err(30 * SECOND));
}

#[test]
fn a_request_larger_than_the_bucket_passes_when_it_is_full_and_is_paid_off_after() {
    let start = Instant::now();
    let shaper = shaper(0, 6_000, start);
    assert_eq!(shaper.check(100, start), Ok(()));
    assert_eq!(shaper.check(3_000, start), Err(SECOND));
    assert_eq!(shaper.check(3_000, start + SECOND), Ok(()));
    assert_eq!(shaper.check(1, start + SECOND), Err(20 * SECOND + SECOND / 100));

    let later = start + 60 * SECOND;
    assert_eq!(shaper.check(u32::MAX, later), Ok(()));
    assert_eq!(shaper.check(1_000, later), Err(60 * SECOND), "a minute and no more");
    assert_eq!(shaper.check(1_000, later + 60 * SECOND), Ok(()));
}

#[test]
fn what_one_bucket_refuses_is_not_taken_from_the_other() {
    let start = Instant::now();
    let shaper = shaper(60, 6_000, start);
    assert_eq!(shaper.check(1_000, start), Ok(()));
    for _ in 0..100 {
        assert_eq!(shaper.check(1_000, start), Err(10 * SECOND));
    }
    assert_eq!(pass(&shaper, 0, start), 9, "no request was lost");
    for _ in 0..100 {
        assert_eq!(shaper.check(10, start), Err(SECOND));
    }
    assert_eq!(shaper.check(100, start + SECOND), Ok(()), "no token was lost");
    assert_eq!(shaper.check(1_000, start + SECOND), Err(10 * SECOND), "the longer wait");
}

#[test]
fn without_limits_everything_passes() {
    let start = Instant::now();
    assert_eq!(pass(&shaper(0, 0, start), u32::MAX, start), 1_000);
}

#[test]
fn time_that_stands_before_the_start_is_the_start() {
    let start = Instant::now();
    assert_eq!(pass(&shaper(60, 0, start + SECOND), 0, start), 10);
}

proptest! {
    /// Whatever comes: a wait is true to the moment (passes then, not before), and no more than
    /// the allowance of the time gone by plus one burst and the largest request passes.
    #[test]
    fn the_allowance_is_kept_and_waits_are_true(
        requests in 1..10_000_u32,
        tokens in 1..1_000_000_u32,
        calls in prop::collection::vec((0..200_000_u32, 0..5_000_u64), 1..100),
    ) {
        let start = Instant::now();
        let (shaper, mut now) = (shaper(requests, tokens, start), start);
        let (mut passed, mut spent, mut largest) = (0_u64, 0_u64, 0_u32);
        for (size, millis) in calls {
            now += Duration::from_millis(millis);
            if let Err(wait) = shaper.check(size, now) {
                prop_assert!(wait <= 2 * 60 * SECOND);
                prop_assert!(shaper.check(size, now + wait.saturating_sub(Duration::from_nanos(1))).is_err());
                now += wait;
                prop_assert_eq!(shaper.check(size, now), Ok(()));
            }
            passed += 1;
            spent += u64::from(size.min(tokens));
            largest = largest.max(size.min(tokens));
            let elapsed = (now - start).as_secs_f64() / 60.0;
            let most = |allowance: u32, largest: u32| {
                // The time for one is rounded down to a nanosecond.
                let rate = 60e9 / (60e9 / f64::from(allowance)).floor();
                elapsed * rate + f64::from((allowance / BURST).max(1)) + f64::from(largest) + 0.001
            };
            prop_assert!(f64::from(u32::try_from(passed).expect("few")) <= most(requests, 0));
            prop_assert!(f64::from(u32::try_from(spent).expect("not so many")) <= most(tokens, largest));
        }
    }
}

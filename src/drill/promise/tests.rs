use super::super::figures::{Ending, Sample, Source};
use super::*;

const DEADLINE: Duration = Duration::from_secs(1);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn answered(due: u64, total: u64) -> Sample {
    Sample {
        due: ms(due),
        late: Duration::ZERO,
        question: due,
        ending: Ending::Answered,
        first_content: Some(ms(total)),
        total: ms(total),
        source: Source { name: "a".into(), ..Source::default() },
    }
}

fn verdict(promise: Promise, samples: Vec<Sample>, calls: u64) -> Verdict {
    let calls = vec![(ms(0), 0), (ms(3_000), calls)];
    let times = Timetable::of(Duration::from_secs(10));
    promise.judge(&Record { samples, calls }, times, DEADLINE).verdict
}

fn thousand(failed: u64) -> Vec<Sample> {
    let failed = |due| if due < failed { Ending::Refused(502) } else { Ending::Answered };
    (0..1_000).map(|due| Sample { ending: failed(due), ..answered(due, 10) }).collect()
}

#[test]
fn one_failure_of_a_thousand_is_borne_and_two_are_not() {
    let success = Promise::Success(Span::Before);
    assert_eq!(verdict(success, thousand(1), 0), Verdict::Kept);
    assert_eq!(verdict(success, thousand(2), 0), Verdict::Broken);
    assert_eq!(verdict(success, Vec::new(), 0), Verdict::Unjudged);
    let goodput = Promise::Goodput(Span::Before);
    let slow = |slow: u64| (0..100).map(|due| answered(due, if due < slow { 1_001 } else { 10 })).collect();
    assert_eq!(verdict(goodput, slow(1), 0), Verdict::Kept);
    assert_eq!(verdict(goodput, slow(2), 0), Verdict::Broken);
}

#[test]
fn calls_a_request_are_bounded() {
    let attempts = Promise::Attempts { span: Span::Before, most: 1.2 };
    assert_eq!(verdict(attempts, thousand(1_000), 1_200), Verdict::Kept);
    assert_eq!(verdict(attempts, thousand(1_000), 1_201), Verdict::Broken);
    assert_eq!(verdict(attempts, vec![answered(0, 10)], 5), Verdict::Unjudged, "of one request");
}

#[test]
fn first_content_is_judged_by_what_was_normal() {
    let promise = Promise::FirstContent(Span::Settled);
    let with = |requests: u64, before: u64, now: u64| {
        let normal = (0..requests).map(|due| answered(due, before));
        let bad = (0..requests).map(|due| answered(4_000 + due, now));
        verdict(promise, normal.chain(bad).collect(), 0)
    };
    assert_eq!(with(100, 80, 160), Verdict::Kept);
    assert_eq!(with(100, 80, 161), Verdict::Broken);
    assert_eq!(with(100, 10, 100), Verdict::Kept, "nobody waits for that");
    assert_eq!(with(99, 80, 500), Verdict::Unjudged);
}

#[test]
fn a_machine_that_is_late_says_nothing_of_times() {
    let late = |sample| Sample { late: ms(51), ..sample };
    let samples = || (0..300).map(|due| late(answered(due * 9, 500))).collect::<Vec<_>>();
    let promise = Promise::Yield { span: Span::Before, share: 0.8, of: 1_000.0 };
    assert_eq!(verdict(promise, samples(), 0), Verdict::Unjudged);
    assert_eq!(verdict(Promise::FirstContent(Span::Before), samples(), 0), Verdict::Unjudged);
    assert_eq!(verdict(Promise::Success(Span::Before), samples(), 0), Verdict::Kept);
}

#[test]
fn what_can_be_had_is_had() {
    let promise = |of| Promise::Yield { span: Span::Before, share: 0.8, of };
    let samples = || (0..300).map(|due| answered(due * 9, 10)).collect::<Vec<_>>();
    assert_eq!(verdict(promise(125.0), samples(), 0), Verdict::Kept);
    assert_eq!(verdict(promise(126.0), samples(), 0), Verdict::Broken);
}

#[test]
fn a_deadline_is_for_everybody() {
    assert_eq!(verdict(Promise::Deadline, vec![answered(0, 1_250)], 0), Verdict::Kept);
    let waits = Sample { ending: Ending::Refused(504), ..answered(0, 1_251) };
    assert_eq!(verdict(Promise::Deadline, vec![waits], 0), Verdict::Broken);
    let wrong = Sample { ending: Ending::Wrong, ..answered(0, 5) };
    assert_eq!(verdict(Promise::Right, vec![wrong], 0), Verdict::Broken);
}

#[test]
fn a_hundred_percent_means_all() {
    assert_eq!(
        (percent(1.0), percent(0.9999), percent(0.999)),
        ("100.0 %".into(), "99.9 %".into(), "99.9 %".into())
    );
    assert_eq!(
        (percent(0.01), percent(0.0), percent(0.8)),
        ("1.0 %".into(), "0.0 %".into(), "80.0 %".into())
    );
}

use proptest::prelude::*;

use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const DEADLINE: Duration = Duration::from_secs(1);

/// Ten seconds: before until 3, during until 7.
fn times() -> Timetable {
    Timetable::of(Duration::from_secs(10))
}

fn answered(due: u64, total: u64) -> Sample {
    Sample {
        due: ms(due),
        late: Duration::ZERO,
        question: due,
        ending: Ending::Answered,
        first_content: Some(ms(total / 2)),
        total: ms(total),
        source: Source { name: "a".into(), ..Source::default() },
    }
}

fn record(samples: Vec<Sample>) -> Record {
    Record { samples, calls: Vec::new() }
}

fn before(samples: Vec<Sample>) -> Figures {
    record(samples).figures(times(), Span::Before, DEADLINE)
}

#[test]
fn shares_are_of_the_requests_that_were_due_in_the_span() {
    let hit = Source { name: "memory".into(), is_hit: true, is_degraded: false };
    let small = Source { name: "small".into(), is_hit: false, is_degraded: true };
    let figures = before(vec![
        answered(0, 100),
        Sample { source: hit, total: ms(1), ..answered(10, 1) },
        Sample { source: small, ..answered(20, 200) },
        answered(30, 1_200),
        Sample { ending: Ending::Refused(503), ..answered(40, 5) },
        Sample { ending: Ending::Refused(502), ..answered(50, 5) },
        Sample { ending: Ending::Broken, ..answered(60, 5) },
        Sample { ending: Ending::Lost, ..answered(2_999, 5) },
        answered(3_000, 100),
    ]);
    assert_eq!(figures.requests, 8);
    assert_eq!((figures.success, figures.goodput), (0.5, 0.375));
    assert_eq!((figures.degraded, figures.shed), (0.125, 0.125));
    let served: Vec<_> = figures.served.iter().map(|(name, share)| (name.as_str(), *share)).collect();
    let refused = [("nobody (502)", 0.125), ("nobody (503)", 0.125)];
    let lost = [("nobody (it broke off)", 0.125), ("nobody (no word)", 0.125)];
    let answered = [[("a", 0.25), ("memory", 0.125)], refused, lost].concat();
    assert_eq!(served, [answered, vec![("small", 0.125)]].concat());
}

#[test]
fn hits_do_not_flatter_the_providers() {
    let hit = Source { name: "memory".into(), is_hit: true, is_degraded: false };
    let hits = (0..99).map(|due| Sample { source: hit.clone(), ..answered(due, 0) });
    let mut record = record(hits.chain([answered(500, 100)]).collect());
    record.calls = vec![(ms(0), 0), (ms(3_000), 2), (ms(7_000), 9)];
    let figures = record.figures(times(), Span::Before, DEADLINE);
    let total = figures.total.unwrap();
    assert_eq!((total.p50_ms, total.of), (100.0, 1));
    assert_eq!(figures.calls_per_request, Some(2.0));
    assert!((figures.answers_per_second - 1.0 / 3.0).abs() < 1e-9);
}

#[test]
fn nothing_asked_is_nothing_seen() {
    let figures = before(Vec::new());
    assert_eq!((figures.requests, figures.success, figures.calls_per_request), (0, 0.0, None));
    assert_eq!((figures.first_content, figures.served.len()), (None, 0));
}

#[test]
fn calls_belong_to_the_span_in_which_they_came() {
    let calls = vec![(ms(0), 0), (ms(3_000), 30), (ms(4_000), 60), (ms(7_000), 100), (ms(10_000), 110)];
    let record = Record { samples: (0..10).map(|n| answered(n * 1_000, 10)).collect(), calls };
    let calls = |span| record.figures(times(), span, DEADLINE).calls_per_request;
    assert_eq!((calls(Span::Before), calls(Span::During)), (Some(10.0), Some(17.5)));
    assert_eq!((calls(Span::Settled), calls(Span::After)), (Some(40.0 / 3.0), Some(10.0 / 3.0)));
}

#[test]
fn answers_per_second_count_by_their_end() {
    let samples =
        vec![answered(2_900, 200), answered(3_500, 100), answered(6_900, 200), answered(6_000, 1_500)];
    let figures = record(samples).figures(times(), Span::During, DEADLINE);
    assert!((figures.answers_per_second - 0.5).abs() < 1e-9, "of the first, and of the second");
}

#[test]
fn a_question_is_known_once_it_was_answered() {
    let same = |due, ending| Sample { question: 7, ending, ..answered(due, 100) };
    let samples = vec![
        same(2_000, Ending::Answered),
        same(2_050, Ending::Answered),
        same(3_000, Ending::Answered),
        same(3_100, Ending::Refused(502)),
        answered(3_200, 100),
    ];
    assert_eq!(record(samples).known(times(), Span::During), (2, 1));
}

#[test]
fn a_late_generator_is_not_the_callers_wait() {
    let late = Sample { late: ms(300), ..answered(0, 1_200) };
    let figures = before(vec![late.clone()]);
    assert_eq!((figures.goodput, figures.total.unwrap().p50_ms), (1.0, 1_200.0));
    let record = record(vec![late]);
    assert_eq!(record.longest_wait(), ms(900));
}

#[test]
fn one_late_request_of_a_hundred_is_borne() {
    let late = |late: u64| {
        let sample = |n| Sample { late: ms(if n < late { 51 } else { 1 }), ..answered(n, 10) };
        record((0..100).map(sample).collect())
    };
    assert!(late(1).is_punctual() && !late(2).is_punctual());
    assert!(record(Vec::new()).is_punctual());
}

proptest! {
    #[test]
    fn quantiles_are_nearest_ranks(times in prop::collection::vec(0..10_000_u64, 1..300)) {
        let quantiles = Quantiles::of(times.iter().map(|time| ms(*time))).unwrap();
        for (percent, value) in [(50, quantiles.p50_ms), (99, quantiles.p99_ms)] {
            let at_most = times.iter().filter(|time| ms(**time).as_secs_f64() * 1e3 <= value).count();
            let below = times.iter().filter(|time| ms(**time).as_secs_f64() * 1e3 < value).count();
            prop_assert!(at_most * 100 >= times.len() * percent);
            prop_assert!(below * 100 < times.len() * percent);
        }
    }

    #[test]
    fn shares_of_who_served_make_the_whole(endings in prop::collection::vec(0..3_u8, 1..50)) {
        let samples = endings.iter().zip(0..).map(|(ending, due)| match ending {
            0 => answered(due, 10),
            1 => Sample { ending: Ending::Lost, ..answered(due, 10) },
            _ => Sample { source: Source { name: "b".into(), ..Source::default() }, ..answered(due, 10) },
        });
        let figures = before(samples.collect());
        prop_assert!((figures.served.values().sum::<f64>() - 1.0).abs() < 1e-9);
        prop_assert!(figures.goodput <= figures.success);
    }
}

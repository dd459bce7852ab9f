use proptest::prelude::*;

use super::*;
use crate::metrics::Z;

fn ranking(pairs: &[(f32, bool)]) -> Ranking {
    Ranking::of(pairs.iter().map(|&(score, same)| Scored { score, same }))
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-12
}

#[test]
fn the_textbook_example() {
    // The example of scikit-learn's documentation for both functions: 0.75 and 0.83.
    let ranking = ranking(&[(0.1, false), (0.4, false), (0.35, true), (0.8, true)]);
    assert!(close(ranking.auc().unwrap(), 0.75));
    assert!(close(ranking.average_precision().unwrap(), 0.5 + 0.5 * 2.0 / 3.0));
    assert_eq!((ranking.same(), ranking.different()), (2, 2));
}

#[test]
fn equal_scores_count_half() {
    // By hand: (3, same) beats both; (2, same) ties with one and beats the other; (1, same) ties
    // with one and loses to the other: 2 + 1.5 + 0.5 of 6.
    let tied = ranking(&[(3.0, true), (2.0, true), (2.0, false), (1.0, false), (1.0, true)]);
    assert!(close(tied.auc().unwrap(), 4.0 / 6.0));
    // A tie is served whole: precision 1/1, then 2/3, then 3/5, a third of the recall each.
    assert!(close(tied.average_precision().unwrap(), (1.0 + 2.0 / 3.0 + 3.0 / 5.0) / 3.0));
}

#[test]
fn one_score_for_all_knows_nothing() {
    let blind = ranking(&[(0.5, true), (0.5, false), (0.5, false), (0.5, false)]);
    assert!(close(blind.auc().unwrap(), 0.5));
    assert!(close(blind.average_precision().unwrap(), 0.25));
    assert_eq!(blind.curve().points.len(), 2, "all or nothing");
}

#[test]
fn there_is_no_area_over_nothing() {
    assert_eq!(ranking(&[]).auc(), None);
    assert_eq!(ranking(&[]).average_precision(), None);
    assert_eq!(ranking(&[(0.5, true)]).auc(), None);
    assert_eq!(ranking(&[(0.5, true)]).average_precision(), Some(1.0));
    assert_eq!(ranking(&[(0.5, false)]).auc(), None);
    assert_eq!(ranking(&[(0.5, false)]).average_precision(), None);
}

#[test]
fn what_is_refused_ranks_last_and_is_never_served() {
    let pairs = [
        (0.9, true),
        (0.2, false),
        (f32::NAN, true),
        (-f32::NAN, false),
        (f32::NEG_INFINITY, true),
        (f32::NEG_INFINITY, false),
    ];
    let ranking = ranking(&pairs);
    let last = *ranking.curve().points.last().unwrap();
    assert_eq!(last, Point { threshold: 0.2, hits: 1, wrong: 1 });
    // The first wins three; the two refused ones lose to (0.2, different) and tie with two each.
    assert!(close(ranking.auc().unwrap(), (3.0 + 1.0 + 1.0) / 9.0));
}

#[test]
fn the_two_zeros_are_one_score() {
    assert_eq!(ranking(&[(0.0, true), (-0.0, false)]).auc(), Some(0.5));
}

#[test]
fn intervals_of_published_tables() {
    // Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I, method 3.
    for (count, of, low, high) in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ] {
        let Interval(l, h) = wilson(count, of);
        assert!((l - low).abs() < 5e-5 && (h - high).abs() < 5e-5, "{count} of {of}: {l} to {h}");
    }
}

#[test]
fn nothing_is_known_of_no_trials() {
    assert_eq!(wilson(0, 0), Interval(0.0, 1.0));
    assert_eq!(rate(0, 0), None);
}

fn pairs() -> impl Strategy<Value = Vec<(f32, bool)>> {
    // Few different scores, so that there are ties; at least one pair of each kind.
    prop::collection::vec((0_u8..20, any::<bool>()), 0..200).prop_map(|pairs| {
        let ends = [(7, true), (9, false)];
        pairs.into_iter().chain(ends).map(|(score, same)| (f32::from(score) / 20.0, same)).collect()
    })
}

proptest! {
    #[test]
    fn the_area_is_the_share_of_won_duels(pairs in pairs()) {
        let (mut won, mut duels) = (0.0, 0.0);
        for same in pairs.iter().filter(|pair| pair.1) {
            for different in pairs.iter().filter(|pair| !pair.1) {
                won += if same.0 > different.0 { 1.0 } else if same.0 < different.0 { 0.0 } else { 0.5 };
                duels += 1.0;
            }
        }
        prop_assert!(close(ranking(&pairs).auc().unwrap(), won / duels));
    }

    #[test]
    fn a_perfect_judge_has_all_and_its_opposite_nothing(same in 1_u16..60, different in 1_u16..60) {
        let side = |of: u16, low: f32, same| (0..of).map(move |i| (low + f32::from(i) / 100.0, same));
        let pairs: Vec<(f32, bool)> = side(same, 1.0, true).chain(side(different, 0.0, false)).collect();
        let perfect = ranking(&pairs);
        prop_assert_eq!(perfect.auc(), Some(1.0));
        prop_assert!(close(perfect.average_precision().unwrap(), 1.0));
        let without_wrong = |ranking: &Ranking| ranking.curve().best_within(0.0).map(|best| best.hit_rate);
        prop_assert_eq!(without_wrong(&perfect), Some(1.0));
        let reversed: Vec<(f32, bool)> = pairs.iter().map(|&(score, same)| (-score, same)).collect();
        prop_assert_eq!(ranking(&reversed).auc(), Some(0.0));
        prop_assert_eq!(without_wrong(&ranking(&reversed)), Some(0.0));
    }

    #[test]
    fn the_opposite_has_the_rest(pairs in pairs()) {
        let opposite: Vec<(f32, bool)> = pairs.iter().map(|&(score, same)| (-score, same)).collect();
        prop_assert!(close(ranking(&pairs).auc().unwrap() + ranking(&opposite).auc().unwrap(), 1.0));
    }

    #[test]
    fn scores_that_do_not_depend_on_the_truth_have_half(scores in prop::collection::vec(0.0_f32..1.0, 1..100)) {
        // Each score once for either truth: exactly what chance gives on the average.
        let pairs: Vec<(f32, bool)> = scores.iter().flat_map(|&score| [(score, true), (score, false)]).collect();
        prop_assert!(close(ranking(&pairs).auc().unwrap(), 0.5));
    }

    #[test]
    fn only_the_order_of_scores_counts(pairs in pairs()) {
        let other_scale: Vec<(f32, bool)> =
            pairs.iter().map(|&(score, same)| ((score * 3.0).exp() * 100.0 - 7.0, same)).collect();
        let (a, b) = (ranking(&pairs), ranking(&other_scale));
        prop_assert_eq!(a.auc(), b.auc());
        prop_assert_eq!(a.average_precision(), b.average_precision());
        let counts = |ranking: &Ranking| -> Vec<(u32, u32)> {
            ranking.curve().points.iter().map(|point| (point.hits, point.wrong)).collect()
        };
        prop_assert_eq!(counts(&a), counts(&b));
        for at_most in [0.0, 0.01, 0.02, 0.5] {
            let best = |ranking: &Ranking| ranking.curve().best_within(at_most).map(|best| best.hit_rate);
            prop_assert_eq!(best(&a), best(&b));
        }
    }

    #[test]
    fn the_order_of_rows_does_not_count(pairs in pairs()) {
        let mut back = pairs.clone();
        back.reverse();
        prop_assert_eq!(ranking(&pairs).auc(), ranking(&back).auc());
        prop_assert_eq!(ranking(&pairs).curve(), ranking(&back).curve());
    }

    #[test]
    fn areas_are_shares(pairs in pairs()) {
        let ranking = ranking(&pairs);
        prop_assert!((0.0..=1.0).contains(&ranking.auc().unwrap()));
        prop_assert!((0.0..=1.0 + 1e-12).contains(&ranking.average_precision().unwrap()));
    }

    #[test]
    fn an_interval_holds_its_rate(count in 0_u32..50_000, rest in 0_u32..50_000) {
        let of = count + rest + 1;
        let (Interval(low, high), rate) = (wilson(count, of), rate(count, of).unwrap());
        prop_assert!(0.0 <= low && low <= rate && rate <= high && high <= 1.0, "{low} {rate} {high}");
        let Interval(other_low, other_high) = wilson(of - count, of);
        prop_assert!((low + other_high - 1.0).abs() < 1e-9 && (high + other_low - 1.0).abs() < 1e-9);
    }

    #[test]
    fn more_trials_make_it_narrower(count in 0_u32..100, rest in 0_u32..100, times in 2_u32..50) {
        let of = count + rest + 1;
        let width = |Interval(low, high)| -> f64 { high - low };
        prop_assert!(width(wilson(count * times, of * times)) < width(wilson(count, of)));
    }

    #[test]
    fn the_bounds_solve_the_score_equation(count in 1_u32..500, rest in 1_u32..500) {
        // Wilson's bounds are where the rate is z standard errors away, with the bound's own error.
        let of = count + rest;
        let (Interval(low, high), rate) = (wilson(count, of), rate(count, of).unwrap());
        for bound in [low, high] {
            let error = (bound * (1.0 - bound) / f64::from(of)).sqrt();
            prop_assert!(((rate - bound).abs() / error - Z).abs() < 1e-6);
        }
    }
}

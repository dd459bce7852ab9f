//! What a judge earns at each number of wrong answers.
//!
//! A threshold is a number on a judge's own scale; hits against wrong ones is what all judges can
//! be compared by.

use serde::Serialize;

use super::score::{Interval, rate, wilson};

/// Hits and wrong ones by threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// From the highest threshold down.
    pub points: Vec<Point>,
    /// What hits are counted out of.
    pub hits_of: u32,
    /// What wrong ones are counted out of.
    pub wrong_of: u32,
}

/// What is served at one threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Scores from here on are served.
    pub threshold: f32,
    /// Hits: of pairs, those of the same question; in a stream, right and wrong ones.
    pub hits: u32,
    /// Wrong answers served.
    pub wrong: u32,
}

/// The most hits at so few wrong answers, with a threshold chosen in hindsight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Best {
    /// Hits.
    pub hit_rate: f64,
    /// Where the rate of hits lies, as if the threshold had been known before.
    pub hit_interval: Interval,
    /// Wrong answers.
    pub wrong_rate: f64,
    /// Scores from here on are served; `null` in JSON when nothing is.
    pub threshold: f32,
}

/// How far a point must lie from the last one to be worth keeping.
const APART: f64 = 0.004;

impl Curve {
    /// The share of hits at a point; zero of nothing.
    pub fn hit_rate(&self, point: &Point) -> f64 {
        rate(point.hits, self.hits_of).unwrap_or(0.0)
    }

    /// The share of wrong ones at a point; zero of nothing.
    pub fn wrong_rate(&self, point: &Point) -> f64 {
        rate(point.wrong, self.wrong_of).unwrap_or(0.0)
    }

    /// The most hits where wrong ones are at most the share `at_most`. None when that is nowhere,
    /// or when there is nothing to hit or to get wrong.
    pub fn best_within(&self, at_most: f64) -> Option<Best> {
        let within = |point: &&Point| rate(point.wrong, self.wrong_of).is_some_and(|wrong| wrong <= at_most);
        let fewest_wrong_last = |point: &&Point| (point.hits, u32::MAX - point.wrong);
        let point = self.points.iter().filter(within).max_by_key(fewest_wrong_last)?;
        Some(Best {
            hit_rate: rate(point.hits, self.hits_of)?,
            hit_interval: wilson(point.hits, self.hits_of),
            wrong_rate: self.wrong_rate(point),
            threshold: point.threshold,
        })
    }

    /// The same curve with no more points than a picture can show. The first and the last stay,
    /// and the closer to no wrong answers, the finer it is.
    pub fn thinned(&self) -> Self {
        let place = |point: &Point| (self.wrong_rate(point).sqrt(), self.hit_rate(point));
        let mut points: Vec<Point> = Vec::new();
        for (index, point) in self.points.iter().enumerate() {
            let apart = points.last().is_none_or(|last| {
                let ((x, y), (last_x, last_y)) = (place(point), place(last));
                (x - last_x).abs().max((y - last_y).abs()) >= APART
            });
            if apart || index + 1 == self.points.len() {
                points.push(*point);
            }
        }
        Self { points, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::score::{Ranking, Scored};
    use super::*;

    fn curve(points: &[(f32, u32, u32)], hits_of: u32, wrong_of: u32) -> Curve {
        let point = |&(threshold, hits, wrong)| Point { threshold, hits, wrong };
        Curve { points: points.iter().map(point).collect(), hits_of, wrong_of }
    }

    #[test]
    fn the_most_hits_at_few_wrong_ones() {
        let curve = curve(
            &[(f32::INFINITY, 0, 0), (0.9, 10, 0), (0.8, 20, 1), (0.75, 25, 2), (0.7, 25, 3), (0.1, 40, 100)],
            50,
            200,
        );
        let at = |at_most| curve.best_within(at_most).unwrap();
        assert_eq!((at(0.0).threshold, at(0.0).hit_rate), (0.9, 0.2));
        assert_eq!((at(0.005).threshold, at(0.005).hit_rate), (0.8, 0.4), "the limit itself is allowed");
        assert_eq!((at(0.02).threshold, at(0.02).wrong_rate), (0.75, 0.01), "no wrong ones for nothing");
        assert_eq!((at(1.0).threshold, at(1.0).hit_interval), (0.1, wilson(40, 50)));
    }

    #[test]
    fn a_curve_of_a_stream_may_go_back() {
        // A cache that serves more stores less, and may have fewer hits in the end.
        let curve = curve(&[(0.9, 30, 1), (0.8, 40, 2), (0.7, 38, 1), (0.6, 45, 9)], 100, 100);
        let threshold = |at_most| curve.best_within(at_most).map(|best| best.threshold);
        assert_eq!((threshold(0.01), threshold(0.02)), (Some(0.7), Some(0.8)));
        assert_eq!(threshold(0.0), None, "even the strictest is wrong at times");
    }

    #[test]
    fn nothing_is_best_of_nothing() {
        assert_eq!(curve(&[(0.5, 1, 0)], 1, 0).best_within(1.0), None);
        assert_eq!(curve(&[(0.5, 0, 1)], 0, 1).best_within(1.0), None);
        assert_eq!(curve(&[], 1, 1).best_within(1.0), None);
    }

    proptest! {
        #[test]
        fn of_pairs_both_rates_only_grow(pairs in prop::collection::vec((-1.0_f32..1.0, any::<bool>()), 1..300)) {
            let curve = Ranking::of(pairs.iter().map(|&(score, same)| Scored { score, same })).curve();
            for (higher, lower) in curve.points.iter().zip(&curve.points[1..]) {
                prop_assert!(higher.threshold > lower.threshold);
                prop_assert!(higher.hits <= lower.hits && higher.wrong <= lower.wrong);
                // What is counted is what the rule serves.
                let served = |same| pairs.iter().filter(|pair| pair.1 == same && pair.0 >= lower.threshold).count();
                prop_assert_eq!(lower.hits as usize, served(true));
                prop_assert_eq!(lower.wrong as usize, served(false));
            }
            let last = curve.points.last().unwrap();
            prop_assert_eq!((last.hits, last.wrong), (curve.hits_of, curve.wrong_of));
        }

        #[test]
        fn more_wrong_ones_never_cost_hits(
            pairs in prop::collection::vec((-1.0_f32..1.0, any::<bool>()), 1..300),
            few in 0.0..1.0_f64,
            more in 0.0..1.0_f64,
        ) {
            let curve = Ranking::of(pairs.iter().map(|&(score, same)| Scored { score, same })).curve();
            let (few, more) = (few.min(more), few.max(more));
            if let (Some(few), Some(more)) = (curve.best_within(few), curve.best_within(more)) {
                prop_assert!(few.hit_rate <= more.hit_rate);
            }
        }

        #[test]
        fn thinning_keeps_the_ends_and_strays_little(
            pairs in prop::collection::vec((-1.0_f32..1.0, any::<bool>()), 1..1000),
        ) {
            let curve = Ranking::of(pairs.iter().map(|&(score, same)| Scored { score, same })).curve();
            let thin = curve.thinned();
            prop_assert_eq!(thin.points.first(), curve.points.first());
            prop_assert_eq!(thin.points.last(), curve.points.last());
            prop_assert!(thin.points.len() <= 503, "{}", thin.points.len());
            for point in &curve.points {
                let nearest = thin.points.iter().map(|kept| (curve.hit_rate(kept) - curve.hit_rate(point)).abs());
                prop_assert!(nearest.fold(1.0, f64::min) <= APART);
            }
        }
    }
}

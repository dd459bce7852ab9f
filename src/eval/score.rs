//! How well scores tell the same question from another one, and how sure that is.
//!
//! Rates out of a few hundred rows look more exact than they are, so each goes with its interval.
//! Areas say whether one judge ranks better than another; what a cache earns at the few wrong
//! answers it may give is read off the curve.

use super::curve::{Curve, Point};
use super::judge::servable;

pub use crate::metrics::{Interval, wilson};

/// A pair's score beside the truth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// Higher is more alike; negative infinity, or no number, ranks below all others.
    pub score: f32,
    /// Whether one answer serves both questions.
    pub same: bool,
}

/// Pairs in order of their scores, those of equal score together.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// From the highest score down; the last may hold what is refused at any threshold.
    groups: Vec<Group>,
    same: u32,
    different: u32,
}

/// The pairs of one score.
#[derive(Clone, Copy, Debug)]
struct Group {
    score: f32,
    same: u32,
    different: u32,
}

impl Ranking {
    /// Ranks pairs.
    pub fn of(scored: impl IntoIterator<Item = Scored>) -> Self {
        let rank = |score: f32| if servable(score) { score + 0.0 } else { f32::NEG_INFINITY };
        let mut sorted: Vec<Scored> =
            scored.into_iter().map(|pair| Scored { score: rank(pair.score), ..pair }).collect();
        sorted.sort_unstable_by(|a, b| b.score.total_cmp(&a.score));
        let groups = sorted.chunk_by(|a, b| a.score.total_cmp(&b.score).is_eq());
        let groups: Vec<Group> = groups.map(Group::of).collect();
        let same = groups.iter().map(|group| group.same).sum();
        let different = groups.iter().map(|group| group.different).sum();
        Self { groups, same, different }
    }

    /// Pairs that are the same question.
    pub fn same(&self) -> u32 {
        self.same
    }

    /// Pairs that are not.
    pub fn different(&self) -> u32 {
        self.different
    }

    /// The area under the ROC curve: how often a pair of the same question scores higher than one
    /// of different questions, where equal scores count half (the statistic of Mann and Whitney,
    /// "On a test of whether one of two random variables is stochastically larger than the other",
    /// 1947, as a share). None when there are no pairs of one kind.
    pub fn auc(&self) -> Option<f64> {
        let all = f64::from(self.same) * f64::from(self.different);
        let (mut above, mut won) = (0.0, 0.0);
        for group in &self.groups {
            let same = f64::from(group.same);
            won += f64::from(group.different) * (above + same / 2.0);
            above += same;
        }
        (all > 0.0).then(|| won / all)
    }

    /// Average precision: the precision at each score, weighted by the recall gained there,
    /// without interpolation (as scikit-learn's `average_precision_score`). None without pairs of
    /// the same question.
    pub fn average_precision(&self) -> Option<f64> {
        let (mut right, mut served, mut sum) = (0_u32, 0_u32, 0.0);
        for group in &self.groups {
            right += group.same;
            served += group.same + group.different;
            sum += f64::from(group.same) * f64::from(right) / f64::from(served);
        }
        (self.same > 0).then(|| sum / f64::from(self.same))
    }

    /// Hits and wrong ones at each threshold that makes a difference, the highest first.
    pub fn curve(&self) -> Curve {
        let mut served = Point { threshold: f32::INFINITY, hits: 0, wrong: 0 };
        let mut points = vec![served];
        for group in self.groups.iter().filter(|group| servable(group.score)) {
            served = Point {
                threshold: group.score,
                hits: served.hits + group.same,
                wrong: served.wrong + group.different,
            };
            points.push(served);
        }
        Curve { points, hits_of: self.same, wrong_of: self.different }
    }
}

impl Group {
    fn of(pairs: &[Scored]) -> Self {
        let score = pairs.first().map_or(f32::NEG_INFINITY, |pair| pair.score);
        let same = pairs.iter().map(|pair| u32::from(pair.same)).sum();
        let different = pairs.iter().map(|pair| u32::from(!pair.same)).sum();
        Self { score, same, different }
    }
}

/// `count` out of `of`; none of nothing.
pub(super) fn rate(count: u32, of: u32) -> Option<f64> {
    (of > 0).then(|| f64::from(count) / f64::from(of))
}

#[cfg(test)]
mod tests;

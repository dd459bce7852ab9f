//! Measures judges on pairs of questions whose truth is known.
//!
//! Pairs show what a judge can tell apart, kind by kind; what a cache earns in traffic is the
//! stream's matter.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use serde::Serialize;

use super::curve::{Best, Curve};
use super::judge::{AT_ONCE, Contender, Judge, Judgement, Progress, Rule, Tick};
use super::report::{self, Named, Report};
use super::score::{Interval, Ranking, Scored, rate, wilson};
use super::table::{percent, share};

/// Two questions and the truth about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// The question asked.
    pub a: String,
    /// The one asked before.
    pub b: String,
    /// Whether one answer serves both.
    pub same: bool,
    /// What makes it easy or hard; may be empty.
    pub kind: String,
    /// Where it comes from; may be empty.
    pub source: String,
}

/// What one policy does on pairs. Hits are shares of the pairs that are the same question, wrong
/// ones shares of those that are not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Whose scores these are.
    pub judge: String,
    /// Pairs that are the same question.
    pub same: u32,
    /// Pairs that are not.
    pub different: u32,
    /// [`Ranking::auc`] of the judge.
    pub auc: Option<f64>,
    /// [`Ranking::average_precision`] of the judge.
    pub average_precision: Option<f64>,
    /// The judge's most hits at 1 % wrong.
    pub at_1_percent_wrong: Option<Best>,
    /// The judge's most hits at 2 % wrong.
    pub at_2_percent_wrong: Option<Best>,
    /// Hits of this policy.
    pub hit_rate: Option<f64>,
    /// With 95 % confidence.
    pub hit_interval: Interval,
    /// Wrong ones of this policy.
    pub wrong_rate: Option<f64>,
    /// With 95 % confidence.
    pub wrong_interval: Interval,
    /// What each stage refused.
    pub refused: BTreeMap<&'static str, Refused>,
}

/// Pairs that a stage refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Hits lost.
    pub same: u32,
    /// Wrong ones prevented.
    pub different: u32,
}

impl Figures {
    fn of(judge: &dyn Judge, rule: Rule, judged: &[(&Pair, Judgement)]) -> Self {
        let ranking = ranking(judged);
        let (same, different) = (ranking.same(), ranking.different());
        let (mut hits, mut wrong, mut refused) = (0, 0, BTreeMap::<_, Refused>::new());
        for (pair, judgement) in judged {
            let counted = match (rule.serves(judgement), pair.same) {
                (true, true) => &mut hits,
                (true, false) => &mut wrong,
                (false, true) => &mut refused.entry(rule.refuser(judgement)).or_default().same,
                (false, false) => &mut refused.entry(rule.refuser(judgement)).or_default().different,
            };
            *counted += 1;
        }
        let curve = ranking.curve();
        Self {
            judge: judge.name().to_owned(),
            same,
            different,
            auc: ranking.auc(),
            average_precision: ranking.average_precision(),
            at_1_percent_wrong: curve.best_within(0.01),
            at_2_percent_wrong: curve.best_within(0.02),
            hit_rate: rate(hits, same),
            hit_interval: wilson(hits, same),
            wrong_rate: rate(wrong, different),
            wrong_interval: wilson(wrong, different),
            refused,
        }
    }
}

impl report::Figures for Figures {
    const WRONG: &'static str = "of the pairs that differ";

    fn judge(&self) -> &str {
        &self.judge
    }

    fn rates(&self) -> (Option<f64>, Option<f64>) {
        (self.hit_rate, self.wrong_rate)
    }

    fn columns(&self) -> Vec<(&'static str, String)> {
        let area = |area: Option<f64>| area.map_or("-".to_owned(), |area| format!("{area:.3}"));
        let best = |best: &Option<Best>| percent(best.map(|best| best.hit_rate), 1);
        vec![
            ("same", self.same.to_string()),
            ("different", self.different.to_string()),
            ("AUC", area(self.auc)),
            ("AP", area(self.average_precision)),
            ("at <= 1 % wrong", best(&self.at_1_percent_wrong)),
            ("at <= 2 %", best(&self.at_2_percent_wrong)),
            ("hits", share(self.hit_rate, self.hit_interval, 1)),
            ("wrong", share(self.wrong_rate, self.wrong_interval, 2)),
        ]
    }
}

/// Asks each contender for each pair, and reports. The first setting of `shipped` is the report's
/// default.
pub async fn measure(
    set: &str,
    pairs: &[Pair],
    shipped: &Contender,
    others: &[Contender],
    tick: &Tick<'_>,
) -> Report<Figures> {
    let kinds = report::kinds(pairs.iter().map(|pair| pair.kind.as_str()));
    let mut by_kind: Vec<Named<Figures>> = vec![Named::default(); kinds.len()];
    let (mut policies, mut curves) = (Named::default(), Named::<Curve>::default());
    for contender in std::iter::once(shipped).chain(others) {
        let judge = contender.judge();
        let judged = judge_all(judge, pairs, tick).await;
        curves.push(judge.name(), ranking(&judged).curve());
        for (name, rule) in contender.settings() {
            policies.push(name, Figures::of(judge, *rule, &judged));
            for (kind, figures) in kinds.iter().zip(&mut by_kind) {
                let of_kind = judged.iter().filter(|(pair, _)| pair.kind == *kind).copied();
                figures.push(name, Figures::of(judge, *rule, &of_kind.collect::<Vec<_>>()));
            }
        }
    }
    let kinds = Named(kinds.into_iter().map(str::to_owned).zip(by_kind).collect());
    Report { set: set.to_owned(), rows: pairs.len(), policies, kinds, curves }
}

/// The judgement on each pair, in order.
async fn judge_all<'p>(judge: &dyn Judge, pairs: &'p [Pair], tick: &Tick<'_>) -> Vec<(&'p Pair, Judgement)> {
    let mut judged = Vec::with_capacity(pairs.len());
    for now in pairs.chunks(AT_ONCE) {
        let judgements = join_all(now.iter().map(|pair| judge.judge(&pair.a, &pair.b))).await;
        judged.extend(now.iter().zip(judgements));
        tick(Progress { step: judge.name(), done: judged.len(), of: pairs.len() });
    }
    judged
}

fn ranking(judged: &[(&Pair, Judgement)]) -> Ranking {
    Ranking::of(judged.iter().map(|(pair, judgement)| Scored { score: judgement.score, same: pair.same }))
}

#[cfg(test)]
mod tests;

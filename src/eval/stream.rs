//! Measures policies on a stream of questions, as a cache would meet them.
//!
//! The cache starts empty and the questions come in order. One that is answered from the cache is
//! not stored, so what a policy serves decides what it can serve later: a threshold's figures
//! cannot be read off another's. Every threshold therefore has a run of its own. That is exact,
//! and cheap because the vectors, the neighbours and every judgement are made once for all runs.

mod neighbours;
mod run;
mod trial;

use super::cosine::Vectors;
use super::judge::{Contender, Judgement, Rule, Tick};
use super::report::{self, Named, Report};

pub use neighbours::{Near, Neighbours};
pub use run::{Checkpoint, Figures, Run};
pub use trial::Trial;

/// Stored questions looked at for each one asked, unless told otherwise.
pub const CANDIDATES: usize = 5;

/// A question and the class of its right answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Questions of one class have one answer.
    pub class: String,
    /// The question.
    pub text: String,
    /// Where it comes from; may be empty.
    pub source: String,
}

/// A stored question and what the judge says of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Which one, and how near.
    pub near: Near,
    /// The judge's word.
    pub judgement: Judgement,
}

/// Decides what is served in a stream; may learn on the way.
pub trait Policy: Send {
    /// Which of the candidates, nearest first, is served: its index.
    fn choose(&mut self, candidates: &[Candidate]) -> Option<usize>;

    /// Told after each miss, when the upstream's answer is known: whether it is `same` as that of
    /// each candidate.
    fn learn(&mut self, candidates: &[Candidate], same: &[bool]) {
        let _ = (candidates, same);
    }

    /// A word for what kept this policy from serving a candidate.
    fn refuser(&self, judgement: &Judgement) -> &'static str {
        let _ = judgement;
        "policy"
    }
}

/// Serves the best of the candidates it accepts, the nearer of two as good.
impl Policy for Rule {
    fn choose(&mut self, candidates: &[Candidate]) -> Option<usize> {
        let accepted = candidates.iter().enumerate().filter(|(_, it)| self.serves(&it.judgement)).rev();
        let best = accepted.max_by(|(_, a), (_, b)| a.judgement.score.total_cmp(&b.judgement.score));
        best.map(|(index, _)| index)
    }

    fn refuser(&self, judgement: &Judgement) -> &'static str {
        Rule::refuser(*self, judgement)
    }
}

/// Runs each contender over the stream at each of its settings and along its curve, and reports.
/// The first setting of `shipped` is the report's default; a stream's kinds are its sources.
///
/// `vectors` must hold all of the stream's texts: they find the candidates, the same for all
/// contenders. Asks each judge for about eight times as many judgements as one run needs: some 40
/// a question. Blocks while neighbours are found.
pub async fn measure(
    set: &str,
    stream: &[Question],
    vectors: &Vectors,
    candidates: usize,
    shipped: &Contender,
    others: &[Contender],
    tick: &Tick<'_>,
) -> Report<Figures> {
    let neighbours = Neighbours::among(stream, vectors, tick);
    let kinds = report::kinds(stream.iter().map(|question| question.source.as_str()));
    let mut by_kind: Vec<Named<Figures>> = vec![Named::default(); kinds.len()];
    let (mut policies, mut curves) = (Named::default(), Named::default());
    for contender in std::iter::once(shipped).chain(others) {
        let judge = contender.judge();
        let mut trial = Trial::new(stream, &neighbours, judge, candidates);
        let curve = trial.sweep(tick).await;
        for (name, rule) in contender.settings() {
            let run = trial.run(&mut rule.clone()).await;
            policies.push(name, run.figures(judge.name(), &curve));
            for (kind, figures) in kinds.iter().zip(&mut by_kind) {
                figures.push(name, run.figures_where(judge.name(), |question| question.source == *kind));
            }
        }
        curves.push(judge.name(), curve);
    }
    let kinds = Named(kinds.into_iter().map(str::to_owned).zip(by_kind).collect());
    Report { set: set.to_owned(), rows: stream.len(), policies, kinds, curves }
}

#[cfg(test)]
mod tests;

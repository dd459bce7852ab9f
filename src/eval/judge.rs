//! What is measured: whatever can say how alike two questions are.
//!
//! One interface for the shipped verifier and for a bare cosine, so that each is measured in the
//! same way and on the same rows.

use std::sync::Arc;

use async_trait::async_trait;

/// How many judgements are asked for at once: enough to keep a few workers busy, too few to fill
/// a queue, whose refusals would count as the judge's own.
pub(super) const AT_ONCE: usize = 4;

/// Says whether two questions are the same.
#[async_trait]
pub trait Judge: Send + Sync {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// Judges the question asked beside one that was asked before. The same two texts must get
    /// the same judgement each time: it is asked for once and remembered.
    async fn judge(&self, asked: &str, stored: &str) -> Judgement;
}

/// What a judge says of two questions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// Higher is more alike, on any scale. Negative infinity, or no number: refused, whatever
    /// the threshold.
    pub score: f32,
    /// Whether the shipped default serves the stored question's answer.
    pub serves: bool,
    /// The stage that decided.
    pub stage: &'static str,
}

impl Judgement {
    /// Refused by `stage`, whatever the threshold.
    pub fn refused(stage: &'static str) -> Self {
        Self { score: f32::NEG_INFINITY, serves: false, stage }
    }
}

/// Whether a threshold can ever be low enough for this score.
pub(super) fn servable(score: f32) -> bool {
    score > f32::NEG_INFINITY
}

/// When a judge's word is enough to serve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// When it says that the shipped default serves.
    Shipped,
    /// When its score is at least this.
    AtLeast(f32),
}

impl Rule {
    /// Whether the stored answer is served.
    pub fn serves(self, judgement: &Judgement) -> bool {
        let enough = match self {
            Self::Shipped => judgement.serves,
            Self::AtLeast(threshold) => judgement.score >= threshold,
        };
        enough && servable(judgement.score)
    }

    /// The stage that refused, when this rule did not serve.
    pub(super) fn refuser(self, judgement: &Judgement) -> &'static str {
        match self {
            Self::AtLeast(_) if servable(judgement.score) => "score",
            Self::Shipped | Self::AtLeast(_) => judgement.stage,
        }
    }
}

/// A judge with the settings to measure it at.
pub struct Contender {
    judge: Arc<dyn Judge>,
    settings: Vec<(String, Rule)>,
}

impl Contender {
    /// A judge at its shipped default, under its own name.
    pub fn shipped(judge: Arc<dyn Judge>) -> Self {
        let settings = vec![(judge.name().to_owned(), Rule::Shipped)];
        Self { judge, settings }
    }

    /// A judge at thresholds, each under the judge's name and the threshold.
    pub fn at_least(judge: Arc<dyn Judge>, thresholds: &[f32]) -> Self {
        let setting = |at: &f32| (format!("{} >= {at:.2}", judge.name()), Rule::AtLeast(*at));
        let settings = thresholds.iter().map(setting).collect();
        Self { judge, settings }
    }

    /// One more setting of the same judge, so that its judgements are asked for only once.
    #[must_use]
    pub fn and(mut self, name: &str, rule: Rule) -> Self {
        self.settings.push((name.to_owned(), rule));
        self
    }

    /// The judge; it gives the curve.
    pub fn judge(&self) -> &dyn Judge {
        self.judge.as_ref()
    }

    /// The points on the curve or beside it, each with its name in reports.
    pub fn settings(&self) -> &[(String, Rule)] {
        &self.settings
    }
}

/// How far a measurement has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// What is being done.
    pub step: &'a str,
    /// Parts of it done, at most `of`.
    pub done: usize,
    /// All parts.
    pub of: usize,
}

/// Whoever wants to know how far a measurement has come.
pub type Tick<'a> = dyn Fn(Progress<'_>) + Send + Sync + 'a;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_served_at_no_threshold() {
        let lowest = Rule::AtLeast(f32::NEG_INFINITY);
        assert!(!lowest.serves(&Judgement::refused("numbers")));
        let no_number = Judgement { score: f32::NAN, serves: true, stage: "head" };
        assert!(!lowest.serves(&no_number) && !Rule::Shipped.serves(&no_number));
        assert!(lowest.serves(&Judgement { score: -1e30, serves: false, stage: "head" }));
    }

    #[test]
    fn a_threshold_passes_over_the_shipped_default() {
        let judgement = Judgement { score: 0.5, serves: false, stage: "head" };
        assert!(Rule::AtLeast(0.5).serves(&judgement), "the threshold itself is enough");
        assert!(!Rule::AtLeast(0.6).serves(&judgement));
        assert!(!Rule::Shipped.serves(&judgement));
        assert_eq!(Rule::Shipped.refuser(&judgement), "head");
        assert_eq!(Rule::AtLeast(0.6).refuser(&judgement), "score");
        assert_eq!(Rule::AtLeast(0.6).refuser(&Judgement::refused("numbers")), "numbers");
    }
}

//! Runs policies over one stream, in front of one judge.

use std::collections::{HashMap, HashSet};

use futures_util::future::join_all;

use super::neighbours::{Near, Neighbours, Stored};
use super::run::{Event, Run, Served, count};
use super::{Candidate, Policy, Question};
use crate::eval::curve::{Curve, Point};
use crate::eval::judge::{AT_ONCE, Judge, Judgement, Progress, Rule, Tick, servable};

/// Thresholds a curve is made of: half a point of hits apart.
const STEPS: usize = 200;

/// A judge in front of a stream, who remembers every judgement.
pub struct Trial<'a> {
    stream: &'a [Question],
    neighbours: &'a Neighbours,
    judge: &'a dyn Judge,
    candidates: usize,
    known: HashMap<(usize, usize), Judgement>,
}

impl<'a> Trial<'a> {
    /// A trial in which `candidates` stored questions are looked at for each one asked.
    pub fn new(
        stream: &'a [Question],
        neighbours: &'a Neighbours,
        judge: &'a dyn Judge,
        candidates: usize,
    ) -> Self {
        Self { stream, neighbours, judge, candidates, known: HashMap::new() }
    }

    /// Asks the stream from an empty cache.
    pub async fn run(&mut self, policy: &mut dyn Policy) -> Run<'a> {
        self.run_with(policy, &|_| ()).await
    }

    async fn run_with(&mut self, policy: &mut dyn Policy, each: &(dyn Fn(usize) + Send + Sync)) -> Run<'a> {
        let stream = self.stream;
        let mut stored = Stored::none_of(stream.len());
        let (mut by_text, mut classes) = (HashMap::<&str, usize>::new(), HashSet::<&str>::new());
        let mut seen = HashSet::<&str>::new();
        let mut events = Vec::with_capacity(stream.len());
        for (asked, question) in stream.iter().enumerate() {
            let repeats = !seen.insert(&question.class);
            let event = |served: Served, from: usize| Event {
                served,
                wrong: stream[from].class != question.class,
                repeats,
                missed: None,
            };
            if let Some(from) = by_text.get(question.text.as_str()) {
                events.push(event(Served::Exact, *from));
                each(asked + 1);
                continue;
            }
            let candidates = self.candidates(asked, &stored).await;
            if let Some(chosen) = policy.choose(&candidates).and_then(|index| candidates.get(index)) {
                events.push(event(Served::Semantic, chosen.near.place));
            } else {
                let same: Vec<bool> =
                    candidates.iter().map(|it| stream[it.near.place].class == question.class).collect();
                let missed = classes
                    .contains(question.class.as_str())
                    .then(|| self.why_missed(asked, policy, &candidates, &same));
                events.push(Event { served: Served::Upstream, wrong: false, repeats, missed });
                policy.learn(&candidates, &same);
                stored.add(asked);
                by_text.insert(&question.text, asked);
                classes.insert(&question.class);
            }
            each(asked + 1);
        }
        Run { stream, events }
    }

    /// The nearest stored questions, judged.
    async fn candidates(&mut self, asked: usize, stored: &Stored) -> Vec<Candidate> {
        let near = self.neighbours.nearest_stored(asked, stored, self.candidates);
        let unknown: Vec<usize> = near
            .iter()
            .map(|near| near.place)
            .filter(|place| !self.known.contains_key(&(asked, *place)))
            .collect();
        let text = |place: usize| self.stream[place].text.as_str();
        for places in unknown.chunks(AT_ONCE) {
            let judgements = places.iter().map(|place| self.judge.judge(text(asked), text(*place)));
            let judgements = join_all(judgements).await;
            self.known.extend(places.iter().map(|place| (asked, *place)).zip(judgements));
        }
        let judged = |near: Near| Some(Candidate { near, judgement: *self.known.get(&(asked, near.place))? });
        near.into_iter().filter_map(judged).collect()
    }

    /// What kept a question from an answer that was there.
    fn why_missed(
        &self,
        asked: usize,
        policy: &dyn Policy,
        candidates: &[Candidate],
        same: &[bool],
    ) -> &'static str {
        let right = candidates.iter().zip(same).filter(|(_, same)| **same).map(|(it, _)| it.judgement);
        match right.max_by(|a, b| a.score.total_cmp(&b.score)) {
            Some(judgement) => policy.refuser(&judgement),
            None => self.neighbours.why_none(asked).unwrap_or("not_near"),
        }
    }

    /// Runs at thresholds from one that serves nothing down to one that serves nearly everything.
    ///
    /// The thresholds are the scores that the best candidates reach when all is stored, so that
    /// they suit any judge's scale, and each step lets a like number of questions more pass.
    pub async fn sweep(&mut self, tick: &Tick<'_>) -> Curve {
        let (judge, of) = (self.judge, self.stream.len());
        let mut listen = Listen(Vec::new());
        let step = format!("{}: judging", judge.name());
        self.run_with(&mut listen, &|done| tick(Progress { step: &step, done, of })).await;
        let thresholds = listen.thresholds();
        let step = format!("{}: curve", judge.name());
        let mut points = Vec::with_capacity(thresholds.len());
        for threshold in &thresholds {
            let run = self.run(&mut Rule::AtLeast(*threshold)).await;
            points.push(Point { threshold: *threshold, hits: run.hits(), wrong: run.wrong() });
            tick(Progress { step: &step, done: points.len(), of: thresholds.len() });
        }
        let all = count(0..of);
        Curve { points, hits_of: all, wrong_of: all }
    }
}

/// Serves nothing, and notes the best score for each question.
struct Listen(Vec<f32>);

impl Policy for Listen {
    fn choose(&mut self, candidates: &[Candidate]) -> Option<usize> {
        let scores = candidates.iter().map(|it| it.judgement.score).filter(|score| servable(*score));
        self.0.extend(scores.max_by(f32::total_cmp));
        None
    }
}

impl Listen {
    fn thresholds(mut self) -> Vec<f32> {
        self.0.sort_unstable_by(|a, b| b.total_cmp(a));
        let steps = (1..=STEPS).filter_map(|step| self.0.get((self.0.len() * step / STEPS).checked_sub(1)?));
        let mut thresholds: Vec<f32> = std::iter::once(&f32::INFINITY).chain(steps).copied().collect();
        thresholds.dedup();
        thresholds
    }
}

//! The nearest questions asked before each one, found once for all runs over a stream.
//!
//! Which questions are stored differs from run to run, how near they are does not. So each
//! question keeps a list of its nearest earlier ones, which a run reads past those it has not
//! stored. Should that list end before enough are found, then few are stored, and all of those are
//! compared: exact, whatever the policy, and cheap.

use std::cmp::Ordering;

use super::Question;
use crate::cache::embedder::Embedding;
use crate::eval::cosine::{Vectors, cosine};
use crate::eval::judge::{Progress, Tick};

/// How many of the nearest are kept for each question.
const DEPTH: usize = 1024;

/// A stream's questions with their vectors and nearest earlier ones. About 16 kB a question; to
/// make it takes a cosine for every two questions: some seconds for 10,000.
pub struct Neighbours {
    vectors: Vec<Result<Embedding, &'static str>>,
    nearest: Vec<Vec<Near>>,
    depth: usize,
}

/// An earlier question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    /// Its place in the stream.
    pub place: usize,
    /// Cosine.
    pub similarity: f32,
}

/// Which questions a run has stored.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    is_stored: Vec<bool>,
    places: Vec<usize>,
}

impl Stored {
    /// Nothing yet, of a stream of this length.
    pub(super) fn none_of(length: usize) -> Self {
        Self { is_stored: vec![false; length], places: Vec::new() }
    }

    /// Stores the question at `place`.
    pub(super) fn add(&mut self, place: usize) {
        self.is_stored[place] = true;
        self.places.push(place);
    }
}

impl Neighbours {
    /// Compares each question with all earlier ones. Blocks.
    pub fn among(stream: &[Question], vectors: &Vectors, tick: &Tick<'_>) -> Self {
        Self::with_depth(stream, vectors, DEPTH, tick)
    }

    pub(super) fn with_depth(stream: &[Question], vectors: &Vectors, depth: usize, tick: &Tick<'_>) -> Self {
        let vectors: Vec<_> = stream.iter().map(|question| vectors.of(&question.text).cloned()).collect();
        let mut these = Self { vectors, nearest: Vec::with_capacity(stream.len()), depth };
        for asked in 0..stream.len() {
            let nearest = these.nearest_of(asked, 0..asked, depth);
            these.nearest.push(nearest);
            tick(Progress { step: "neighbours", done: asked + 1, of: stream.len() });
        }
        these
    }

    /// Why the question at `place` has no vector, if so.
    pub(super) fn why_none(&self, place: usize) -> Option<&'static str> {
        self.vectors[place].as_ref().err().copied()
    }

    /// The nearest `count` stored questions, the nearest first, the older first of two as near.
    pub(super) fn nearest_stored(&self, asked: usize, stored: &Stored, count: usize) -> Vec<Near> {
        let listed = &self.nearest[asked];
        let found: Vec<Near> =
            listed.iter().filter(|near| stored.is_stored[near.place]).take(count).copied().collect();
        if found.len() == count || listed.len() < self.depth {
            return found;
        }
        self.nearest_of(asked, stored.places.iter().copied(), count)
    }

    fn nearest_of(&self, asked: usize, among: impl Iterator<Item = usize>, count: usize) -> Vec<Near> {
        let Ok(vector) = &self.vectors[asked] else { return Vec::new() };
        let near = |place: usize| {
            let similarity = cosine(vector, self.vectors[place].as_ref().ok()?)?;
            (!similarity.is_nan()).then_some(Near { place, similarity })
        };
        let mut nearest: Vec<Near> = among.filter_map(near).collect();
        if nearest.len() > count {
            nearest.select_nth_unstable_by(count, nearest_first);
            nearest.truncate(count);
        }
        nearest.shrink_to_fit();
        nearest.sort_unstable_by(nearest_first);
        nearest
    }
}

fn nearest_first(a: &Near, b: &Near) -> Ordering {
    b.similarity.total_cmp(&a.similarity).then(a.place.cmp(&b.place))
}

//! What a measurement found, in one shape for pairs and streams.
//!
//! A table for people, a picture for comparing, JSON for scripts: all read from here.

use serde::{Serialize, Serializer};

use super::curve::{Curve, Point};

/// What was measured of one policy.
pub trait Figures: Clone + Serialize {
    /// What wrong answers are counted out of, for headings and axes.
    const WRONG: &'static str;

    /// The name of the judge whose curve this belongs to.
    fn judge(&self) -> &str;

    /// Hits and wrong ones; none of nothing.
    fn rates(&self) -> (Option<f64>, Option<f64>);

    /// Names and values of a table's columns.
    fn columns(&self) -> Vec<(&'static str, String)>;
}

/// What was measured of several policies on one set. In JSON `default` is the first policy's
/// figures, and `curve` a list of points, each with its judge.
#[derive(Clone, Debug)]
pub struct Report<F> {
    /// The set's name.
    pub set: String,
    /// Its rows.
    pub rows: usize,
    /// Every policy over the whole set; the shipped default comes first.
    pub policies: Named<F>,
    /// Every policy over the rows of each kind, the most frequent kind first.
    pub kinds: Named<Named<F>>,
    /// Hits against wrong ones for each judge.
    pub curves: Named<Curve>,
}

impl<F> Report<F> {
    /// The shipped default's name and figures.
    pub fn shipped(&self) -> Option<(&str, &F)> {
        self.policies.iter().next()
    }

    /// The policies of both, of the same set: for contenders that cannot be measured together, as
    /// those that find candidates with different encoders. This report's default stays.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.policies.0.extend(other.policies.0);
        self.curves.0.extend(other.curves.0);
        for (kind, policies) in other.kinds.0 {
            match self.kinds.0.iter_mut().find(|(own, _)| *own == kind) {
                Some((_, own)) => own.0.extend(policies.0),
                None => self.kinds.push(kind, policies),
            }
        }
        self
    }
}

#[derive(Serialize)]
struct Form<'a, F: Serialize> {
    set: &'a str,
    rows: usize,
    default: Option<&'a F>,
    policies: &'a Named<F>,
    kinds: &'a Named<Named<F>>,
    curve: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    judge: &'a str,
    threshold: f32,
    hit_rate: f64,
    wrong_rate: f64,
}

impl<F: Serialize> Serialize for Report<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let default = self.shipped().map(|(_, figures)| figures);
        let curve = self.curves.iter().flat_map(|(judge, curve)| rows(judge, curve)).collect();
        let Self { set, rows, policies, kinds, .. } = self;
        Form { set, rows: *rows, default, policies, kinds, curve }.serialize(serializer)
    }
}

fn rows<'a>(judge: &'a str, curve: &Curve) -> Vec<Row<'a>> {
    let row = |point: &Point| Row {
        judge,
        threshold: point.threshold,
        hit_rate: curve.hit_rate(point),
        wrong_rate: curve.wrong_rate(point),
    };
    curve.thinned().points.iter().map(row).collect()
}

/// Values by name, in an order that means something; a map in JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T>(pub Vec<(String, T)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Named<T> {
    /// Adds a value under a name of its own.
    pub fn push(&mut self, name: impl Into<String>, value: T) {
        self.0.push((name.into(), value));
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// All names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// The kinds that occur, the most frequent first. An empty word is no kind.
pub(super) fn kinds<'a>(of_rows: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for kind in of_rows.filter(|kind| !kind.is_empty()) {
        *counts.entry(kind).or_default() += 1;
    }
    let mut kinds: Vec<(&str, usize)> = counts.into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    kinds.into_iter().map(|(kind, _)| kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_how_often_they_occur() {
        assert_eq!(kinds(["b", "c", "", "a", "c", ""].into_iter()), ["c", "a", "b"]);
    }
}

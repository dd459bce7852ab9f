//! Reports as text.

use std::fmt;

use super::report::{Figures, Report};
use super::score::Interval;

/// Policies over the whole set, then the shipped default by kind.
impl<F: Figures> fmt::Display for Report<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} rows", self.set, self.rows)?;
        write(f, "policy", self.policies.iter())?;
        let Some((default, _)) = self.shipped() else { return Ok(()) };
        let kinds: Vec<(&str, &F)> =
            self.kinds.iter().filter_map(|(kind, policies)| Some((kind, policies.get(default)?))).collect();
        if kinds.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{default} by kind")?;
        write(f, "kind", kinds.into_iter())
    }
}

fn write<'a, F: Figures + 'a>(
    f: &mut fmt::Formatter<'_>,
    what: &'static str,
    named: impl Iterator<Item = (&'a str, &'a F)>,
) -> fmt::Result {
    let mut lines: Vec<Vec<String>> = Vec::new();
    for (name, figures) in named {
        let (headings, cells): (Vec<_>, Vec<_>) = figures.columns().into_iter().unzip();
        if lines.is_empty() {
            let headings = std::iter::once(what).chain(headings);
            lines.push(headings.map(str::to_owned).collect());
        }
        lines.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
    let says_something =
        |column: usize| lines.iter().skip(1).any(|line| line.get(column).is_some_and(|cell| cell != NONE));
    let kept: Vec<usize> = (0..lines.first().map_or(0, Vec::len)).filter(|it| says_something(*it)).collect();
    let lines: Vec<Vec<String>> = lines
        .iter()
        .map(|line| kept.iter().filter_map(|column| line.get(*column).cloned()).collect())
        .collect();
    f.write_str(&aligned(&lines))
}

/// Stands for a value that there is not; a column of these alone is left out.
const NONE: &str = "-";

/// Lines whose cells stand under each other: the first column to the left, the others to the right.
fn aligned(lines: &[Vec<String>]) -> String {
    let width = |cell: &String| cell.chars().count();
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column| lines.iter().filter_map(|line| line.get(column).map(width)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let mut text = String::new();
    for line in lines {
        for (column, (cell, widest)) in line.iter().zip(&widths).enumerate() {
            let gap = " ".repeat(widest - width(cell));
            let parts = if column == 0 { [cell.as_str(), &gap, ""] } else { ["  ", &gap, cell] };
            text.extend(parts);
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}

/// A rate in percent with this many decimals; a dash for none.
pub(super) fn percent(rate: Option<f64>, decimals: usize) -> String {
    rate.map_or(NONE.to_owned(), |rate| format!("{:.decimals$} %", rate * 100.0))
}

/// A rate in percent and where it lies.
pub(super) fn share(rate: Option<f64>, Interval(low, high): Interval, decimals: usize) -> String {
    if rate.is_none() {
        return percent(rate, decimals);
    }
    let [low, high] = [low, high].map(|bound| bound * 100.0);
    format!("{} ({low:.decimals$} to {high:.decimals$})", percent(rate, decimals))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_under_each_other() {
        let lines = [["policy", "hits"], ["a", "1.0 %"], ["编码", "100.0 %"]];
        let lines = lines.map(|line| line.map(str::to_owned).to_vec());
        assert_eq!(aligned(&lines), "policy     hits\na         1.0 %\n编码      100.0 %\n");
        assert_eq!(aligned(&[]), "");
    }

    #[test]
    fn rates_with_and_without_intervals() {
        assert_eq!(percent(Some(0.123), 1), "12.3 %");
        assert_eq!(percent(None, 1), "-");
        assert_eq!(share(Some(0.5), Interval(0.25, 0.75), 2), "50.00 % (25.00 to 75.00)");
        assert_eq!(share(None, Interval(0.0, 1.0), 2), "-");
    }
}

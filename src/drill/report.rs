//! What a drill found: a table for people, an object for programs.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::Settings;
use super::figures::{Figures, Quantiles, Record};
use super::promise::{Judged, Verdict, percent};
use super::scenario::{PROVIDERS, Plot, Scenario};
use super::terms::Terms;
use super::timetable::{Span, Timetable};

/// What one scenario showed.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Its name.
    pub scenario: &'static str,
    /// What happened, in a sentence.
    pub story: String,
    /// The service's settings, in lines.
    pub settings: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Requests a second, on an ordinary day.
    pub rate: f64,
    /// Where everything random came from.
    pub seed: u64,
    /// What callers saw.
    pub phases: Phases,
    /// What must hold, and whether it did.
    pub promises: Vec<Judged>,
    /// How late the generator was: 99 of 100 requests no more than this, in milliseconds.
    pub late_p99_ms: f64,
    /// The machine kept up with the load; if not, what depends on times is not judged.
    pub punctual: bool,
}

/// The figures of each phase.
#[derive(Clone, Debug, Serialize)]
pub struct Phases {
    /// All was well.
    pub before: Figures,
    /// The bad day.
    pub during: Figures,
    /// The bad day, once a breaker's window had passed.
    pub settled: Figures,
    /// All was well again.
    pub after: Figures,
    /// That, once a cool-down and a ramp had passed.
    pub recovered: Figures,
}

impl Report {
    pub(super) fn new(
        scenario: Scenario,
        settings: &Settings,
        terms: &Terms,
        plot: Plot,
        times: &Timetable,
        record: &Record,
    ) -> Self {
        let deadline = settings.deadline;
        let of = |span| record.figures(*times, span, deadline);
        let judge = |promise: &super::promise::Promise| promise.judge(record, *times, deadline);
        Self {
            scenario: scenario.name(),
            settings: terms.to_string(),
            seconds: settings.length.as_secs_f64(),
            rate: settings.rate,
            seed: settings.seed,
            phases: Phases {
                before: of(Span::Before),
                during: of(Span::During),
                settled: of(Span::Settled),
                after: of(Span::After),
                recovered: of(Span::Recovered),
            },
            promises: plot.promises.iter().map(judge).collect(),
            story: plot.story,
            late_p99_ms: record.lateness_ms(),
            punctual: record.is_punctual(),
        }
    }

    /// The promises that broke, a sentence each.
    pub fn broken(&self) -> impl Iterator<Item = String> {
        let broken = self.promises.iter().filter(|judged| judged.verdict == Verdict::Broken);
        broken.map(|judged| format!("{}: {} (it was {})", self.scenario, judged.promise, judged.measured))
    }
}

impl Phases {
    fn columns(&self) -> [&Figures; 5] {
        [&self.before, &self.during, &self.settled, &self.after, &self.recovered]
    }

    /// Everybody who served, those of the chain first, in its order.
    fn served(&self) -> Vec<&str> {
        let names: BTreeSet<&str> = self
            .columns()
            .into_iter()
            .flat_map(|figures| figures.served.keys().map(String::as_str))
            .collect();
        let rank = |name: &&str| {
            let place =
                PROVIDERS.iter().position(|provider| name.starts_with(&format!("{} (", provider.name)));
            (place.unwrap_or(PROVIDERS.len()), name.starts_with("nobody"))
        };
        let mut names: Vec<&str> = names.into_iter().collect();
        names.sort_by_key(rank);
        names
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.scenario, self.story)?;
        writeln!(f, "{:.0} s at {} requests/s, seed {}", self.seconds, self.rate, self.seed)?;
        writeln!(f, "{}\n", self.settings)?;
        let row = |f: &mut fmt::Formatter<'_>, name: &str, cell: &dyn Fn(&Figures) -> String| {
            let cells: Vec<String> =
                self.phases.columns().into_iter().map(|figures| format!("{:>10}", cell(figures))).collect();
            writeln!(f, "  {name:<24}{}", cells.concat())
        };
        let names: Vec<String> = Span::ALL.iter().map(|span| format!("{:>10}", span.name())).collect();
        writeln!(f, "  {:<24}{}", "", names.concat())?;
        row(f, "requests", &|figures| figures.requests.to_string())?;
        row(f, "success", &|figures| of_any(figures, figures.success))?;
        row(f, "goodput", &|figures| of_any(figures, figures.goodput))?;
        row(f, "first content p50", &|figures| millis(figures.first_content, |of| of.p50_ms))?;
        row(f, "first content p99", &|figures| millis(figures.first_content, |of| of.p99_ms))?;
        row(f, "whole answer p50", &|figures| millis(figures.total, |of| of.p50_ms))?;
        row(f, "whole answer p99", &|figures| millis(figures.total, |of| of.p99_ms))?;
        row(f, "calls a request", &|figures| {
            figures.calls_per_request.map_or("-".to_owned(), |calls| format!("{calls:.2}"))
        })?;
        row(f, "answers/s by providers", &|figures| format!("{:.0}", figures.answers_per_second))?;
        row(f, "degraded", &|figures| of_any(figures, figures.degraded))?;
        row(f, "shed (429, 503)", &|figures| of_any(figures, figures.shed))?;
        for name in self.phases.served() {
            row(f, &format!("by {name}"), &|figures| {
                of_any(figures, figures.served.get(name).copied().unwrap_or(0.0))
            })?;
        }
        writeln!(f)?;
        if !self.punctual {
            writeln!(
                f,
                "  the machine was too busy for the load: one request of 100 was sent {:.0} ms late or more, so what \
                 depends on times is not judged",
                self.late_p99_ms
            )?;
        }
        for Judged { promise, measured, verdict } in &self.promises {
            let mark = match verdict {
                Verdict::Kept => "kept  ",
                Verdict::Broken => "BROKEN",
                Verdict::Unjudged => "?     ",
            };
            let why = match verdict {
                Verdict::Unjudged if self.punctual => ", too few requests to judge",
                Verdict::Unjudged => ", not judged",
                Verdict::Kept | Verdict::Broken => "",
            };
            writeln!(f, "  {mark}  {promise}: {measured}{why}")?;
        }
        Ok(())
    }
}

fn of_any(figures: &Figures, share: f64) -> String {
    if figures.requests == 0 { "-".to_owned() } else { percent(share) }
}

fn millis(quantiles: Option<Quantiles>, of: fn(Quantiles) -> f64) -> String {
    quantiles.map_or("-".to_owned(), |quantiles| format!("{:.0} ms", of(quantiles)))
}

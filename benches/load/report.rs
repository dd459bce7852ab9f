//! The table for people and the line for programs.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::measure::Duel;

/// Where the aims of `docs/performance.md` are looked up.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) ready: Duration,
    pub(crate) entries: u64,
    pub(crate) scenarios: Vec<Row>,
    /// MiB resident, by when.
    pub(crate) rss: Vec<(&'static str, u64)>,
}

/// One scenario at each concurrency.
pub(crate) struct Row {
    name: &'static str,
    duels: [Duel; 2],
    more: Vec<(&'static str, f64)>,
}

impl Row {
    pub(crate) fn new(name: &'static str, duels: [Duel; 2]) -> Self {
        Self { name, duels, more: Vec::new() }
    }

    /// Adds a figure that only this scenario has.
    pub(crate) fn with(mut self, name: &'static str, value: f64) -> Self {
        self.more.push((name, value));
        self
    }

    fn to_json(&self) -> Value {
        let mut fields = Map::new();
        let [_, many] = &self.duels;
        fields.insert("ratio_to_echo".to_owned(), rounded(many.ratio));
        for duel in &self.duels {
            for (name, value) in [
                ("ratio_to_echo", duel.ratio),
                ("rps", duel.subject.rps),
                ("p50_ms", duel.subject.p50_ms),
                ("p99_ms", duel.subject.p99_ms),
                ("cpu_us", duel.subject.cpu_us),
                ("added_p50_ms", duel.added_p50_ms),
                ("echo_rps", duel.reference.rps),
                ("stray_share", duel.stray_share),
            ] {
                fields.insert(format!("{name}_c{}", duel.concurrency), rounded(value));
            }
        }
        for (name, value) in &self.more {
            fields.insert((*name).to_owned(), rounded(*value));
        }
        fields.into()
    }
}

impl Report {
    /// One object: a field for each scenario, and the memory.
    pub(crate) fn to_json(&self) -> Value {
        let mut fields: Map<_, _> =
            self.scenarios.iter().map(|row| (row.name.to_owned(), row.to_json())).collect();
        let rss: Map<_, _> = self.rss.iter().map(|(when, mib)| ((*when).to_owned(), json!(mib))).collect();
        fields.insert("rss_mib".to_owned(), rss.into());
        fields.insert("ready_s".to_owned(), rounded(self.ready.as_secs_f64()));
        fields.insert("entries".to_owned(), self.entries.into());
        fields.into()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<13} {:>4} {:>9} {:>9} {:>9} {:>8} {:>9} {:>9} {:>9}",
            "", "conc", "req/s", "p50 ms", "p99 ms", "cpu µs", "echo/s", "ratio", "+p50 ms"
        )?;
        for row in &self.scenarios {
            for duel in &row.duels {
                let of = &duel.subject;
                writeln!(
                    f,
                    "{:<13} {:>4} {:>9.0} {:>9.3} {:>9.3} {:>8.1} {:>9.0} {:>9.3} {:>9.3}",
                    row.name,
                    duel.concurrency,
                    of.rps,
                    of.p50_ms,
                    of.p99_ms,
                    of.cpu_us,
                    duel.reference.rps,
                    duel.ratio,
                    duel.added_p50_ms
                )?;
                if duel.stray_share > 0.0 {
                    let percent = duel.stray_share * 100.0;
                    writeln!(
                        f,
                        "{:<13} {:>4} in the worst round {percent:.1} % came from elsewhere",
                        "", ""
                    )?;
                }
            }
            for (name, value) in &row.more {
                writeln!(f, "{:<13} {name} {value:.3}", row.name)?;
            }
        }
        let rss: Vec<_> = self.rss.iter().map(|(when, mib)| format!("{when} {mib}")).collect();
        writeln!(f, "resident MiB: {}", rss.join(", "))?;
        writeln!(f, "ready after {:.2} s, with {} entries", self.ready.as_secs_f64(), self.entries)
    }
}

fn rounded(value: f64) -> Value {
    json!((value * 1e4).round() / 1e4)
}

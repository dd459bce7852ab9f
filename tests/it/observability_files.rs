//! The dashboard and the alerts in config: they ask for nothing that `/metrics` does not give. A metric
//! that is renamed would else leave an empty panel, and an alert that never rings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use refrain::clock::Clock;
use refrain::metrics::{Layer, Layers, Levels, Metrics, PriceTable};
use refrain::upstream::UpstreamError;
use regex::Regex;
use serde_json::{Value, json};
use tokio::time::{advance, sleep};

use crate::support::{START, TestApp, chat, streamed};

/// Labels that Prometheus adds to whatever it scrapes.
const OF_THE_SCRAPE: [&str; 2] = ["instance", "job"];

/// What Prometheus itself knows of a scrape.
const OF_PROMETHEUS: [&str; 1] = ["up"];

/// Families that are described but have no sample before a quarter of an hour of traffic, so their
/// labels cannot be seen here. `refrain_store_bytes` is seen apart: only a store on this disk has it.
const LATE: [&str; 2] =
    ["refrain_target_usual_first_content_seconds", "refrain_target_usual_output_tokens_per_second"];

/// All of `PromQL` that the files use, so that a misspelt metric is not taken for a function.
const PROMQL: [&str; 17] = [
    "absent",
    "and",
    "by",
    "changes",
    "histogram_quantile",
    "increase",
    "max",
    "min",
    "offset",
    "on",
    "or",
    "rate",
    "sum",
    "unless",
    "vector",
    "ignoring",
    "without",
];

#[tokio::test(start_paused = true)]
async fn the_files_ask_for_nothing_that_is_not_there() {
    let page = Page::of(&a_busy_day().await);
    let source = Source::read();
    let alerts = rules().into_iter().map(|rule| (rule.name, rule.expr));
    let queries = alerts.chain(dashboard_queries(&dashboard()));
    let check = |expr: &str| page.check(expr).and_then(|()| source.check(expr));
    let wrong: Vec<_> = queries
        .filter_map(|(place, expr)| check(&expr).err().map(|error| format!("{place}: {error} in {expr}")))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_query_is_found() {
    let page = Page::of(&a_busy_day().await);
    for wrong in [
        "rate(refrain_request_total[5m])",
        "rate(refrian_requests_total[5m])",
        "rate(refrain_request_duration_seconds[5m])",
        "refrain_requests_total_count",
        "refrain_request_duration_seconds_bucket{namespace=\"x\"}",
        "sum by (namespace) (refrain_in_flight_requests)",
        "refrain_build_info unless on (colour) refrain_store_entries",
        "label_values(refrain_build_info, namespace)",
    ] {
        assert!(page.check(wrong).is_err(), "{wrong}");
    }
    let right = "sum by (instance, le) (rate(refrain_request_duration_seconds_bucket[5m])) > 0";
    assert_eq!(page.check(right), Ok(()));
    assert!(Source::read().check("refrain_errors_total{class=~\"timeout|tiemout\"}").is_err());
}

#[test]
fn the_dashboard_can_be_imported() {
    let dashboard = dashboard();
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 39);
    let variables: Vec<_> =
        list(&dashboard["templating"]["list"]).iter().map(|variable| text(&variable["name"])).collect();
    assert_eq!(variables, ["datasource", "instance", "namespace"]);
    assert_eq!(dashboard["templating"]["list"][0]["query"], "prometheus");

    let (mut ids, mut titles, mut taken) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for panel in list(&dashboard["panels"]) {
        let title = text(&panel["title"]);
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}: its id is there twice");
        assert!(titles.insert(title), "{title} is there twice");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        assert!(x + w <= 24, "{title} is too wide");
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(cell), "{title} covers another panel");
        }
        if panel["type"] == "row" {
            continue;
        }
        assert!(!text(&panel["description"]).is_empty(), "{title} explains nothing");
        for target in list(&panel["targets"]).iter().chain([panel]) {
            assert_eq!(
                target["datasource"],
                json!({ "type": "prometheus", "uid": "${datasource}" }),
                "{title}"
            );
        }
    }
    let variable = Regex::new(r"\$\{?(\w+)").unwrap();
    for (place, expr) in dashboard_queries(&dashboard) {
        for name in variable.captures_iter(&expr).map(|found| found[1].to_owned()) {
            assert!(variables.contains(&&*name) || name.starts_with("__"), "{place}: nobody knows ${name}");
        }
    }
}

#[test]
fn each_alert_says_what_to_do() {
    let mut names = BTreeSet::new();
    let shown = Regex::new(r"\$labels\.(\w+)").unwrap();
    for Rule { name, expr, text } in rules() {
        assert!(names.insert(name.clone()), "{name} is there twice");
        for field in ["for: ", "  severity: ", "  summary: ", "  description: "] {
            assert!(text.contains(field), "{name} has no {field}");
        }
        assert!(["critical", "warning"].iter().any(|word| text.contains(&format!("severity: {word}\n"))));
        assert!(text.contains(" Do: "), "{name} does not say what to do");
        let kept = labels_of_result(&expr);
        for label in shown.captures_iter(&text).map(|found| found[1].to_owned()) {
            assert!(kept.contains(&label), "{name} shows {label}, which its expression drops: {kept:?}");
        }
    }
    assert!(names.len() > 10, "{names:?}");
}

/// A service to which everything has happened that the files ask about; gives what a scrape gives.
async fn a_busy_day() -> String {
    let watched = "[namespaces.default]\nshadow = { serve = true, sample = 1.0 }";
    let app = TestApp::with(watched).await;
    let down = || UpstreamError::Connect { provider: "fake".into(), reason: "down".into() };

    app.provider.answer("Use the form.");
    app.post(&chat("How do I reset my password?"), &[("x-refrain-ttl", "10")]).await;
    app.settle().await;
    assert_eq!(app.ask("How do I reset my password?").await.source(), "exact");
    app.embedder.similar("How can I reset my password?", "How do I reset my password?", 0.97);
    app.provider.answer("Use the form.");
    assert_eq!(app.ask("How can I reset my password?").await.source(), "semantic");
    app.settle().await;

    advance(Duration::from_secs(11)).await;
    app.provider.fail(down());
    assert_eq!(app.ask("How do I reset my password?").await.source(), "stale");
    app.provider.fail(down());
    assert_eq!(app.ask("Who painted the ceiling?").await.status, 502);

    let stream = app.provider.stream();
    let question = streamed("Where is the station?");
    let (reply, ()) = tokio::join!(app.post(&question, &[]), async {
        sleep(Duration::from_secs(1)).await;
        stream.content("Behind");
        sleep(Duration::from_secs(2)).await;
        stream.complete("Behind the church.");
    });
    assert_eq!(reply.status, 200);
    app.settle().await;
    let kept = app.ask("Where is the station?").await;
    let judged = json!({ "entry": kept.header("x-refrain-entry"), "verdict": "wrong" });
    assert_eq!(app.send(Method::POST, "/v1/feedback", &[], judged.to_string()).await.status, 200);

    app.provider.answer("");
    app.ask("What is the weather today?").await;
    app.provider.answer("Seven.");
    app.post(&chat("How many hills?"), &[("cache-control", "no-store")]).await;
    app.settle().await;

    let scraped = app.operate(Method::GET, "/metrics", &json!(null)).await;
    let mut page = String::from_utf8(scraped.body.to_vec()).unwrap();
    page.push_str(&of_a_store_on_disk());
    page
}

/// The lines about a store's size: the test's store is in memory and has none.
fn of_a_store_on_disk() -> String {
    let layers = Layers { semantic: Some(Layer { entries: 1, bytes: Some(1) }), ..Layers::default() };
    let metrics: Arc<Metrics> = Metrics::new(Clock::starting_at(START), PriceTable::default());
    let page = metrics.encode(Levels { layers, ..Levels::default() });
    page.split_inclusive('\n').filter(|line| line.contains("refrain_store_bytes")).collect()
}

/// What a scrape shows, as far as queries can ask for it.
struct Page {
    /// Families by name, with their types. Those without samples are described all the same.
    kinds: BTreeMap<String, String>,
    /// Labels by the name of the sample.
    labels: BTreeMap<String, BTreeSet<String>>,
}

impl Page {
    fn of(text: &str) -> Self {
        let label = Regex::new(r#"(\w+)="(?:[^"\\]|\\.)*""#).unwrap();
        let (mut kinds, mut labels) = (BTreeMap::new(), BTreeMap::<_, BTreeSet<_>>::new());
        for line in text.lines().filter(|line| !line.starts_with("# HELP ")) {
            if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) {
                kinds.insert(name.to_owned(), kind.to_owned());
            } else {
                let (name, rest) = line.split_at(line.find(['{', ' ']).expect("a sample has a value"));
                let seen = labels.entry(name.to_owned()).or_default();
                seen.extend(label.captures_iter(rest).map(|found| found[1].to_owned()));
            }
        }
        Self { kinds, labels }
    }

    fn is_sample(&self, name: &str) -> bool {
        let is = |family: &str, histogram| {
            self.kinds.get(family).is_some_and(|kind| (kind == "histogram") == histogram)
        };
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
        is(name, false) || base.is_some_and(|base| is(base, true))
    }

    /// Gives what is wrong with an expression.
    fn check(&self, expr: &str) -> Result<(), String> {
        let query = Query::of(expr);
        if let Some(word) = query.words.iter().find(|word| !PROMQL.contains(&&***word)) {
            return Err(format!("{word} is neither a metric nor PromQL"));
        }
        for (metric, labels) in &query.asked {
            if OF_PROMETHEUS.contains(&&**metric) {
                continue;
            }
            if !self.is_sample(metric) {
                return Err(format!("/metrics has no {metric}"));
            }
            let seen = match self.labels.get(metric) {
                Some(seen) => seen,
                None if LATE.contains(&&**metric) => continue,
                None => return Err(format!("{metric} has no sample here, so its labels are not seen")),
            };
            let is_there = |label: &String| seen.contains(label) || OF_THE_SCRAPE.contains(&&**label);
            if let Some(label) = labels.iter().find(|label| !is_there(label)) {
                return Err(format!("{metric} has no label {label}, only {seen:?}"));
            }
        }
        Ok(())
    }
}

/// What an expression asks for.
struct Query {
    /// Each metric, with the labels that are matched or grouped by.
    asked: Vec<(String, BTreeSet<String>)>,
    /// All other words outside of label lists.
    words: BTreeSet<String>,
}

impl Query {
    fn of(expr: &str) -> Self {
        let all_values = Regex::new(r"label_values\((.*), (\w+)\)").unwrap();
        let expr = &*all_values.replace(expr, "max by ($2) ($1)");
        // Outside of labels: a name, and then perhaps its matchers. Lengths of time are no names.
        let selector = Regex::new(r"\b((?:refrain|process)_\w+|up\b)(?:\{([^}]*)\})?").unwrap();
        let matcher = Regex::new(r#"(\w+)\s*(?:=~|!~|!=|=)\s*""#).unwrap();
        let groups = groups(expr);
        let asked = selector.captures_iter(expr).map(|found| {
            let at = found.get(0).unwrap().start();
            let narrowed = found.get(2).map_or("", |list| list.as_str());
            let narrowed = matcher.captures_iter(narrowed).map(|label| label[1].to_owned());
            let grouped = groups.iter().filter(|group| group.over.contains(&at));
            (found[1].to_owned(), narrowed.chain(grouped.flat_map(|group| group.labels.clone())).collect())
        });
        let bare = Regex::new(r"\{[^}]*\}|\[[^\]]*\]|\b(?:by|on|ignoring|without)\s*\([^)]*\)").unwrap();
        let rest = selector.replace_all(expr, " ");
        let rest = bare.replace_all(&rest, " ");
        let word = Regex::new(r"\b[A-Za-z_]\w*").unwrap();
        Self {
            asked: asked.collect(),
            words: word.find_iter(&rest).map(|it| it.as_str().to_owned()).collect(),
        }
    }
}

/// Labels by which something is grouped, and the part of the expression that must have them.
struct Group {
    labels: Vec<String>,
    over: std::ops::Range<usize>,
}

fn groups(expr: &str) -> Vec<Group> {
    let grouping = Regex::new(r"\b(by|on|ignoring|without)\s*\(([^)]*)\)\s*").unwrap();
    let group = |found: regex::Captures<'_>| {
        let labels = found[2].split(',').map(|label| label.trim().to_owned()).collect();
        let end = found.get(0).unwrap().end();
        let over = if &found[1] == "by" {
            assert!(expr[end..].starts_with('('), "write sum by (…) (…): {expr}");
            end..end + closing(&expr[end..])
        } else {
            0..expr.len()
        };
        Group { labels, over }
    };
    grouping.captures_iter(expr).map(group).collect()
}

/// Where the parenthesis closes that `text` begins with. No string in the files holds one.
fn closing(text: &str) -> usize {
    let mut depth = 0_usize;
    let close = text.char_indices().find(|(_, sign)| {
        depth = match sign {
            '(' => depth + 1,
            ')' => depth - 1,
            _ => depth,
        };
        depth == 0
    });
    close.expect("parentheses are closed").0
}

/// The labels that an alert's expression still has: all it groups by; without a group, all it matches.
fn labels_of_result(expr: &str) -> BTreeSet<String> {
    let grouped: BTreeSet<_> = groups(expr).into_iter().flat_map(|group| group.labels).collect();
    if grouped.is_empty() { OF_THE_SCRAPE.map(str::to_owned).into() } else { grouped }
}

/// The text of src: a label's value that an alert names is a word there, in quotes.
struct Source(String);

impl Source {
    fn read() -> Self {
        fn add(folder: &Path, all: &mut String) {
            for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() {
                    add(&entry, all);
                } else if entry.extension().is_some_and(|ending| ending == "rs") {
                    all.push_str(&std::fs::read_to_string(entry).unwrap());
                }
            }
        }
        let mut all = String::new();
        add(&in_repository("src"), &mut all);
        Self(all)
    }

    /// Gives what is wrong with an expression.
    fn check(&self, expr: &str) -> Result<(), String> {
        let matcher = Regex::new(r#"(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)""#).unwrap();
        for found in matcher.captures_iter(expr).filter(|found| !OF_THE_SCRAPE.contains(&&found[1])) {
            let mut values = found[2].split('|').filter(|value| !value.starts_with('$'));
            if let Some(value) = values.find(|value| !self.0.contains(&format!("\"{value}\""))) {
                return Err(format!("{}=\"{value}\" never happens", &found[1]));
            }
        }
        Ok(())
    }
}

/// An alert. `text` is the whole rule, folded to single spaces but for the ends of fields.
struct Rule {
    name: String,
    expr: String,
    text: String,
}

/// The alerts, read by the form that the file keeps to: a rule begins with `- alert:`, an expression
/// stands on its line or, after a `|`, on deeper ones.
fn rules() -> Vec<Rule> {
    let file = std::fs::read_to_string(in_repository("config/alerts.yml")).unwrap();
    assert!(!file.contains('\t'), "YAML knows no tabs");
    let code: Vec<_> = file.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let file = code.join("\n") + "\n";
    let rules: Vec<_> = file.split("\n      - alert: ").skip(1).map(rule).collect();
    assert_eq!(rules.len(), file.matches("alert:").count(), "a rule is indented otherwise than the rest");
    rules
}

fn rule(text: &str) -> Rule {
    let mut lines = text.lines();
    let name = lines.next().unwrap().trim().to_owned();
    let mut lines = lines.skip_while(|line| !line.starts_with("        expr: "));
    let first = lines.next().unwrap_or_else(|| panic!("{name} has no expression")).trim();
    let first = first.strip_prefix("expr: ").unwrap().trim_start_matches('|');
    let deeper = lines.take_while(|line| line.starts_with("          "));
    let expr = [first].into_iter().chain(deeper).map(str::trim).collect::<Vec<_>>().join(" ");
    let next_group = text.find("\n  - name:").unwrap_or(text.len());
    Rule {
        name,
        expr: expr.trim().to_owned(),
        text: text[..next_group].replace("\n            Do:", " Do:") + "\n",
    }
}

fn dashboard() -> Value {
    let file = std::fs::read_to_string(in_repository("config/grafana-dashboard.json")).unwrap();
    serde_json::from_str(&file).expect("the dashboard is JSON")
}

/// All queries of the dashboard, with the panel or variable they belong to.
fn dashboard_queries(dashboard: &Value) -> Vec<(String, String)> {
    let variables = list(&dashboard["templating"]["list"]).iter().skip(1);
    let variables = variables
        .map(|variable| (text(&variable["name"]).to_owned(), text(&variable["query"]["query"]).to_owned()));
    let events = list(&dashboard["annotations"]["list"]).iter();
    let events = events.map(|event| (text(&event["name"]).to_owned(), text(&event["expr"]).to_owned()));
    let panels = list(&dashboard["panels"]).iter().filter(|panel| panel["type"] != "row");
    let panels = panels.flat_map(|panel| {
        list(&panel["targets"])
            .iter()
            .map(|target| (text(&panel["title"]).to_owned(), text(&target["expr"]).to_owned()))
    });
    variables.chain(events).chain(panels).collect()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

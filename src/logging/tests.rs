use std::sync::Mutex;

use serde_json::Value;

use super::*;

/// An output that the test reads.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, batch: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no test panics while writing").write(batch)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is logged by `scene`.
fn logged(format: Format, filter: &str, scene: impl FnOnce()) -> String {
    let page = Page::default();
    let filter = super::filter(None, filter).expect("the filter is valid");
    let (dispatch, guard) = to(page.clone(), format, filter).expect("the log starts");
    tracing::dispatcher::with_default(&dispatch, scene);
    drop(guard);
    let bytes = page.0.lock().expect("no test panics while writing").clone();
    String::from_utf8(bytes).expect("lines are text")
}

fn a_request() {
    tracing::debug!("too quiet for the filter");
    tracing::info!(namespace = "faq", status = 200, "answered\u{1b}[31m");
    tracing::warn!("slow");
}

#[test]
fn json_is_one_object_a_line() {
    let log = logged(Format::Json, "info", a_request);
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert_eq!(lines[0]["level"], "INFO");
    assert_eq!(lines[0]["namespace"], "faq");
    assert_eq!(lines[0]["status"], 200);
    assert_eq!(lines[1]["message"], "slow");
}

#[test]
fn text_has_colors_only_on_a_terminal() {
    let log = logged(Format::Text { colors: false }, "info", a_request);
    assert!(log.contains("namespace=\"faq\" status=200"), "{log}");
    assert_eq!(log.lines().count(), 2, "{log}");
    assert!(!log.contains('\u{1b}'), "not even what a caller sends colors the log: {log}");
    assert!(logged(Format::Text { colors: true }, "info", a_request).contains("\u{1b}[32m"));
}

#[test]
fn the_filter_says_what_is_logged() {
    let log = logged(Format::Json, "warn,refrain=debug", || {
        tracing::info!(target: "hyper", "of a library");
        tracing::debug!(target: "refrain::gateway", "of ours");
    });
    assert!(log.contains("of ours") && !log.contains("of a library"), "{log}");
}

#[test]
fn the_variable_wins_over_the_setting_unless_it_is_empty() {
    let chosen = |variable: &str| filter(Some(variable.to_owned()), "info").map(|filter| filter.to_string());
    assert_eq!(chosen("debug").expect("valid"), "debug");
    assert_eq!(chosen(" ").expect("valid"), "info");
}

#[test]
fn a_wrong_filter_is_named_with_its_key() {
    let error = filter(None, "info,refrain=loud").expect_err("loud is no level");
    assert_eq!(
        error.to_string(),
        "log.filter: \"info,refrain=loud\" is no log filter: allowed are levels and targets like info,refrain=debug"
    );
    let error = filter(Some("=?=".to_owned()), "info").expect_err("not a filter");
    assert!(error.to_string().starts_with("RUST_LOG: "), "{error}");
}

#[test]
fn dropped_lines_are_reported_in_the_logs_own_form() {
    let page = Page::default();
    let (dispatch, guard) = to(page.clone(), Format::Json, EnvFilter::new("info")).expect("the log starts");
    tracing::dispatcher::with_default(&dispatch, || tracing::info!(text = "x".repeat(lines::CAPACITY)));
    drop(guard);
    let bytes = page.0.lock().expect("no test panics while writing").clone();
    let report: Value = serde_json::from_slice(&bytes).expect("the report is a JSON line");
    assert_eq!((&report["level"], &report["lines"]), (&"WARN".into(), &1.into()), "{report}");
}

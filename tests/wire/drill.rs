//! Every bad day, rehearsed in a second or two. Whatever the machine is busy with, what holds by
//! construction must hold: somebody healthy is left, so everybody is answered. Deadlines are long
//! here, and nothing is said of latencies.

use std::process::{Command, Output};
use std::time::Duration;

use refrain::drill::{Figures, Report, Scenario, Settings, Verdict, rehearse};
use serde_json::Value;

/// No healthy answer comes near it.
const DEADLINE: Duration = Duration::from_secs(12);

async fn rehearsed(scenario: Scenario) -> Report {
    let settings =
        Settings { length: Duration::from_secs(2), rate: 40.0, deadline: DEADLINE, ..Settings::default() };
    let report = rehearse(scenario, &settings, |_| ()).await.unwrap();
    let before = &report.phases.before;
    assert_all_answered(&report, before);
    assert!(before.served.contains_key("a (big)"), "{report}");
    report
}

#[track_caller]
fn assert_all_answered(report: &Report, figures: &Figures) {
    assert!(figures.requests > 0, "{report}");
    assert_eq!((figures.success, figures.shed), (1.0, 0.0), "{report}");
}

/// The promises that do not depend on how fast the machine is.
#[track_caller]
fn assert_kept(report: &Report, words: &[&str]) {
    for words in words {
        let of_these: Vec<_> =
            report.promises.iter().filter(|judged| judged.promise.contains(words)).collect();
        assert!(!of_these.is_empty(), "no promise says {words:?}\n{report}");
        assert!(of_these.iter().all(|judged| judged.verdict == Verdict::Kept), "{words}\n{report}");
    }
}

const ALWAYS: [&str; 3] = ["are answered", "longer than the deadline", "belongs to another question"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn capacity_bursts_of_one_provider_are_nobodys_trouble() {
    let report = rehearsed(Scenario::CapacityBurst).await;
    assert_kept(&report, &ALWAYS);
    assert!(report.phases.during.served.contains_key("b (big)"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_provider_fails_nobody() {
    let report = rehearsed(Scenario::SlowProvider).await;
    assert_kept(&report, &ALWAYS);
    let calm = |judged: &&refrain::drill::Judged| judged.promise.contains("p99");
    let p99 = report.promises.iter().find(calm).unwrap();
    assert_eq!(p99.verdict, Verdict::Unjudged, "so few requests say nothing of a p99\n{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn used_up_quotas_are_gone_around() {
    let report = rehearsed(Scenario::Quota).await;
    assert_kept(&report, &ALWAYS);
    assert!(report.phases.during.degraded < f64::EPSILON, "b has the same model\n{report}");
    let after = &report.phases.after.served;
    assert!(after.contains_key("b (big)") && !after.contains_key("a (big)"), "a key stays aside\n{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_providers_come_and_go_a_smaller_model_answers() {
    let report = rehearsed(Scenario::Flapping).await;
    assert_kept(&report, &ALWAYS);
    assert!(report.phases.during.served.contains_key("small (mini)"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_is_answered_or_refused_and_nothing_hangs() {
    let report = rehearsed(Scenario::Contention).await;
    assert_kept(&report, &ALWAYS[1..]);
    let (before, during) = (&report.phases.before, &report.phases.during);
    assert!(during.requests > 2 * before.requests, "a crowd\n{report}");
    assert!(during.success > 0.0, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_any_provider_callers_are_told_and_what_was_known_is_answered() {
    let report = rehearsed(Scenario::Outage).await;
    assert_kept(&report, &ALWAYS);
    let during = &report.phases.during;
    // One that came in the last moment may have met a provider that was there again.
    let told: f64 =
        during.served.iter().filter(|(name, _)| name.starts_with("nobody (5")).map(|(_, share)| share).sum();
    assert!(told > 0.5, "{report}");
}

/// Runs the binary; its last line of output as JSON, if it is.
fn command(arguments: &[&str]) -> (Output, Option<Value>) {
    let output = Command::new(env!("CARGO_BIN_EXE_refrain"))
        .arg("drill")
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("refrain drill does not run: {error}"));
    let last = String::from_utf8_lossy(&output.stdout).lines().last().map(str::to_owned);
    let last = last.and_then(|line| serde_json::from_str(&line).ok());
    (output, last)
}

#[tokio::test]
async fn a_kept_drill_ends_well_and_its_last_line_is_for_programs() {
    let arguments = ["--scenario", "quota", "--seconds", "1", "--rate", "30", "--deadline", "30s", "--json"];
    let (output, report) = tokio::task::spawn_blocking(move || command(&arguments)).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let report = report.expect("the last line is JSON");
    assert_eq!((&report["kept"], &report["scenarios"][0]["scenario"]), (&true.into(), &"quota".into()));
    assert_eq!(report["scenarios"][0]["phases"]["during"]["success"], 1.0);
    for words in ["deadline 30s", "window 100ms", "before    during   settled", "by b (big)", "kept"] {
        assert!(said.contains(words), "{words:?} is missing\n{said}");
    }
}

#[tokio::test]
async fn a_broken_promise_is_told_in_a_sentence_and_by_the_exit_code() {
    // Every provider takes longer than that.
    let arguments = ["--scenario", "quota", "--seconds", "1", "--rate", "30", "--deadline", "5ms", "--json"];
    let (output, report) = tokio::task::spawn_blocking(move || command(&arguments)).await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(report.expect("the last line is JSON")["kept"], false);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("promises broke") && told.contains("before: at least 99.9 %"), "{told}");
}

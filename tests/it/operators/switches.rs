//! Flipping over HTTP: how long it holds, what is remembered, and what is refused.

use std::path::PathBuf;
use std::time::Duration;

use axum::http::Method;
use refrain::switches::Switches;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::advance;

use super::{asked, clear, flip, good, is_refused_for_now, switch};
use crate::support::{START, TestApp};

#[tokio::test(start_paused = true)]
async fn a_switch_with_an_end_falls_back_by_itself() {
    let until = START.after(Duration::from_hours(2)).to_rfc3339();
    for end in [json!({ "for": "2h" }), json!({ "until": until })] {
        let app = TestApp::start().await;
        let mut body = json!({ "target": "provider:fake", "on": false, "by": "ops", "reason": "nonsense" });
        body.as_object_mut().unwrap().extend(end.as_object().unwrap().clone());
        let flipped = good(&app, Method::POST, "/admin/switches", &body).await;
        assert_eq!(flipped["until"], until, "{end}");
        advance(Duration::from_secs(7_199)).await;
        is_refused_for_now(&app.ask("one").await);
        advance(Duration::from_secs(1)).await;
        app.provider.answer("by itself");
        assert_eq!(app.ask("one").await.text(), "by itself");
        assert_eq!(switches(&app, "").await["switches"], json!([]));
    }
}

async fn switches(app: &TestApp, query: &str) -> Value {
    good(app, Method::GET, &format!("/admin/switches{query}"), &json!(null)).await
}

#[tokio::test(start_paused = true)]
async fn who_did_what_and_why_is_remembered() {
    let app = TestApp::start().await;
    let body = json!({ "target": "target:fake/a/b", "on": false, "by": "night shift", "reason": "夜里坏了" });
    let flipped = good(&app, Method::POST, "/admin/switches", &body).await;
    assert_eq!((flipped["number"].clone(), flipped["on"].clone()), (json!(1), json!(false)));
    assert_eq!(flipped["at"], START.to_rfc3339());
    advance(Duration::from_mins(1)).await;
    switch(&app, "feature:cache_only", true).await;
    let since = START.to_rfc3339();
    let listed = switches(&app, "").await;
    assert_eq!(
        listed["switches"][0],
        json!({ "target": "target:fake/a/b", "on": false, "by": "night shift", "reason": "夜里坏了",
                "since": since, "until": null })
    );
    assert_eq!(listed["switches"][1]["target"], "feature:cache_only");
    assert!(listed.get("audit").is_none());

    clear(&app, "target:fake/a/b").await;
    clear(&app, "feature%3Acache_only").await;
    let listed = switches(&app, "?audit=true").await;
    assert_eq!(listed["switches"], json!([]));
    let trail: Vec<_> = listed["audit"].as_array().unwrap().iter().map(|change| &change["on"]).collect();
    assert_eq!(trail, [&json!(false), &json!(true), &json!(null), &json!(null)]);
    assert_eq!(listed["audit"][2]["reason"], "over");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_named() {
    let app = TestApp::start().await;
    let ok = json!({ "target": "provider:fake", "on": false, "by": "ops", "reason": "nonsense" });
    for (change, words) in [
        (json!({ "target": "fake" }), &["target", "\"fake\"", "provider:NAME"][..]),
        (json!({ "target": "feature:speed" }), &["feature:speed", "write_back"]),
        (json!({ "target": "target:fake" }), &["target:PROVIDER/MODEL"]),
        (json!({ "target": 7 }), &["string"]),
        (json!({ "on": "off" }), &["boolean"]),
        (json!({ "on": null }), &["boolean"]),
        (json!({ "by": "" }), &["by must have"]),
        (json!({ "by": "x".repeat(101) }), &["by must have", "100"]),
        (json!({ "reason": "a\nb" }), &["reason must have"]),
        (json!({ "reason": " " }), &["reason must have"]),
        (json!({ "until": "tomorrow" }), &["until", "tomorrow", "2026-12-01T03:00:00Z"]),
        (json!({ "until": "2020-01-01T00:00:00Z" }), &["until must lie in the future"]),
        (json!({ "for": "0s" }), &["until must lie in the future"]),
        (json!({ "for": "soon" }), &["expected a duration"]),
        (json!({ "for": "2h", "until": "2030-01-01T00:00:00Z" }), &["until and for", "only one"]),
        (json!({ "untill": "2030-01-01T00:00:00Z" }), &["untill", "until"]),
    ] {
        let mut body = ok.clone();
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let refused = flip(&app, &body).await;
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert_eq!(refused.status, 400, "{change}: {message}");
        for word in words {
            assert!(message.contains(word), "{change} -> {message}: lacks {word:?}");
        }
    }
    for (method, path, word) in [
        (Method::GET, "/admin/switches?audti=true", "audti"),
        (Method::GET, "/admin/switches?audit=yes", "true"),
        (Method::GET, "/stats?sicne=1h", "sicne"),
        (Method::DELETE, "/admin/switches/provider:fake", "by"),
        (Method::DELETE, "/admin/switches/provider:fake?by=ops", "reason"),
        (Method::DELETE, "/admin/switches/provider:fake?by=&reason=x", "by must have"),
        (Method::DELETE, "/admin/switches/fake?by=ops&reason=x", "provider:NAME"),
    ] {
        let refused = app.operate(method, path, &json!(null)).await;
        assert_eq!(refused.status, 400, "{path}");
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(word), "{path} -> {message}");
    }
    assert_eq!(switches(&app, "?audit=true").await, json!({ "switches": [], "config": [], "audit": [] }));
    app.provider.answer("nothing was switched");
    app.ask("one").await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_not_there_is_refused_with_those_that_are() {
    let app = TestApp::with("[namespaces.hr]").await;
    let body = |target: &str| json!({ "target": target, "on": false, "by": "ops", "reason": "nonsense" });
    for (target, there) in [
        ("provider:fkae", "fake, openai, rules"),
        ("target:fkae/big", "fake, openai, rules"),
        ("namespace:h", "default, hr"),
        ("model:n", "default, m"),
        ("model:*", "default, m"),
    ] {
        let refused = flip(&app, &body(target)).await;
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert_eq!(refused.status, 404, "{target}: {message}");
        assert!(message.contains(there), "{target} -> {message}");
    }
    let path = "/admin/switches/provider:fkae?by=ops&reason=x";
    assert_eq!(app.operate(Method::DELETE, path, &json!(null)).await.status, 404);
    // It is configured, and left out for want of a key.
    assert_eq!(flip(&app, &body("provider:openai")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_only_callers_know_is_noted() {
    let any = "[models.\"*\"]\ntargets = [{ provider = \"fake\" }]";
    let app = TestApp::with(any).await;
    for (target, noted) in
        [("model:n", true), ("model:m", false), ("target:fake/n", true), ("target:fake/big", false)]
    {
        let body = json!({ "target": target, "on": false, "by": "ops", "reason": "nonsense" });
        let flipped = good(&app, Method::POST, "/admin/switches", &body).await;
        assert_eq!(flipped.get("note").is_some(), noted, "{target}: {flipped}");
    }
}

/// A folder for the file of switches.
struct Disk(TempDir);

impl Disk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("switches.jsonl")
    }

    async fn start(&self) -> TestApp {
        TestApp::switched(Switches::open(&self.file()).unwrap(), "").await
    }
}

#[tokio::test(start_paused = true)]
async fn a_switch_survives_a_restart() {
    let disk = Disk::new();
    let app = disk.start().await;
    let body = json!({ "target": "provider:fake", "on": false, "by": "ops", "reason": "nonsense" });
    let flipped = good(&app, Method::POST, "/admin/switches", &body).await;
    assert_eq!(flipped["kept"], "on_disk");
    drop(app);
    let app = disk.start().await;
    is_refused_for_now(&app.ask("one").await);
    clear(&app, "provider:fake").await;
    drop(app);
    let app = disk.start().await;
    app.provider.answer("as configured");
    app.ask("one").await;
}

#[tokio::test(start_paused = true)]
async fn a_switch_of_what_left_the_config_can_be_cleared() {
    let disk = Disk::new();
    let before = TestApp::switched(Switches::open(&disk.file()).unwrap(), "[namespaces.hr]").await;
    switch(&before, "namespace:hr", false).await;
    let after = disk.start().await;
    assert_eq!(switches(&after, "").await["switches"][0]["target"], "namespace:hr");
    clear(&after, "namespace:hr").await;
    assert_eq!(switches(&after, "").await["switches"], json!([]));
    let path = "/admin/switches/namespace:hr?by=ops&reason=again";
    let gone = after.operate(Method::DELETE, path, &json!(null)).await;
    assert_eq!(gone.status, 404, "nobody knows it any more");
}

#[tokio::test(start_paused = true)]
async fn without_a_disk_a_switch_is_in_force_and_says_so() {
    let disk = Disk::new();
    let app = disk.start().await;
    std::fs::create_dir(disk.file()).unwrap();
    let body = json!({ "target": "provider:fake", "on": false, "by": "ops", "reason": "nonsense" });
    let flipped = good(&app, Method::POST, "/admin/switches", &body).await;
    assert_eq!(flipped["kept"], "in_memory");
    assert!(!flipped["error"].as_str().unwrap().is_empty());
    is_refused_for_now(&app.ask("one").await);
    std::fs::remove_dir(disk.file()).unwrap();
    // The next one that can be written brings it along.
    switch(&app, "feature:stale", false).await;
    let restarted = disk.start().await;
    is_refused_for_now(&restarted.ask("one").await);
    assert_eq!(asked(&restarted), [""; 0]);
}

/// A pipe in the place of the new file: opening it takes until somebody reads.
#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn a_disk_that_hangs_does_not_hold_the_operator() {
    let disk = Disk::new();
    let app = disk.start().await;
    let pipe = disk.file().with_extension("new");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let body = json!({ "target": "provider:fake", "on": false, "by": "ops", "reason": "nonsense" });
    let (flipped, ()) = tokio::join!(good(&app, Method::POST, "/admin/switches", &body), async {
        for _ in 0..3 {
            advance(Duration::from_secs(5)).await;
        }
    });
    assert_eq!(
        (flipped["kept"].clone(), flipped["error"].clone()),
        (json!("in_memory"), json!("the disk has not answered for 5 s"))
    );
    is_refused_for_now(&app.ask("one").await);
    // Lets the thread go, which holds up the end of the test otherwise.
    std::fs::read(&pipe).unwrap();
}

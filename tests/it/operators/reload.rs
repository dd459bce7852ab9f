//! What a changed file changes, and what it does not.

use std::path::PathBuf;

use axum::http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::good;
use crate::support::{TestApp, chat, with_provider};

/// A service, and the file that it reads.
struct Configured {
    app: TestApp,
    file: PathBuf,
    _folder: TempDir,
}

impl Configured {
    async fn with(overlay: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("refrain.toml");
        Self { app: TestApp::reading(&file, overlay).await, file, _folder: folder }
    }

    fn write(&self, overlay: &str) {
        std::fs::write(&self.file, with_provider(overlay)).unwrap();
    }

    async fn reload(&self, overlay: &str) -> Value {
        self.write(overlay);
        good(&self.app, Method::POST, "/admin/reload", &json!({})).await
    }
}

#[tokio::test]
async fn namespaces_change_for_the_requests_to_come() {
    let it = Configured::with("[namespaces.hr]\nsemantic = false").await;
    let to_it = [("x-refrain-namespace", "it")];
    assert_eq!(it.app.post(&chat("a?"), &to_it).await.status, 400, "there is no such namespace");
    let reloaded = it
        .reload("[namespaces.it]\nttl = \"1m\"\n[namespaces.default]\nmax_ttl = \"2h\"\nttl = \"1h\"")
        .await;
    let expected = json!([
        "namespaces.default.max_ttl",
        "namespaces.default.ttl",
        "namespaces.hr.semantic",
        "namespaces.it.ttl"
    ]);
    assert_eq!(reloaded, json!({ "in_force": expected, "after_restart": [] }));
    it.app.provider.answer("yes");
    assert_eq!(it.app.post(&chat("a?"), &to_it).await.status, 200);
    let again = it.app.post(&chat("a?"), &to_it).await;
    let status = again.header("cache-status");
    let ttl = status.strip_prefix("refrain; hit; ttl=").and_then(|rest| rest.split(';').next());
    let ttl: u64 = ttl.and_then(|ttl| ttl.parse().ok()).unwrap_or_else(|| panic!("no hit: {status}"));
    assert!((1..=60).contains(&ttl), "of one minute: {ttl}");
    assert_eq!(it.app.post(&chat("a?"), &[("x-refrain-namespace", "hr")]).await.status, 400, "gone");
    let switch = json!({ "target": "namespace:it", "on": false, "by": "ops", "reason": "known now" });
    good(&it.app, Method::POST, "/admin/switches", &switch).await;
}

#[tokio::test]
async fn an_invalid_file_changes_nothing_and_says_why() {
    let it = Configured::with("[namespaces.hr]\nttl = \"1h\"").await;
    for (overlay, words) in [
        ("[namespaces.it]\nttl = \"soon\"", &["namespaces.it.ttl", "soon"][..]),
        ("[namespaces.it]\nttl = \"1h\"\n[switches]\noff = [\"provider:nobody\"]", &["nobody", "there are"]),
        ("[namespaces.it]\nttl = \"1h\"\n[switches]\noff = [\"everything\"]", &["everything"]),
        ("[namespaces.it]\nttl = \"1h\"\n[server]\nlistne = 1", &["listne"]),
        ("[namespaces.it]\nquestion = { pattern = \"Q: (.+)\" }", &["namespaces.it.question", "question"]),
        ("[namespaces.it]\nquestion = { part = \"first\" }", &["namespaces.it.question", "last"]),
        ("not toml", &["toml"]),
    ] {
        it.write(overlay);
        let reply = it.app.operate(Method::POST, "/admin/reload", &json!({})).await;
        assert_eq!(reply.status, 400, "{overlay}");
        let message = reply.json()["error"]["message"].as_str().unwrap_or_default().to_lowercase();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        assert_eq!(it.app.post(&chat("a?"), &[("x-refrain-namespace", "it")]).await.status, 400);
    }
    std::fs::remove_file(&it.file).unwrap();
    assert_eq!(it.app.operate(Method::POST, "/admin/reload", &json!({})).await.status, 400);
    assert_eq!(it.reload("[namespaces.hr]\nttl = \"1h\"").await["in_force"], json!([]));
}

#[tokio::test]
async fn what_waits_for_a_restart_is_named_each_time() {
    let it = Configured::with("").await;
    let overlay =
        "[server]\nmax_connections = 7\n[namespaces.default]\nttl = \"1h\"\nstale_if_error = \"9d\"";
    let waiting = json!(["namespaces.default.stale_if_error", "server.max_connections"]);
    let first = it.reload(overlay).await;
    assert_eq!(first, json!({ "in_force": ["namespaces.default.ttl"], "after_restart": waiting }));
    assert_eq!(it.reload(overlay).await, json!({ "in_force": [], "after_restart": waiting }));
    assert_eq!(it.reload("").await["after_restart"], json!([]), "as at the start");
}

#[tokio::test]
async fn the_file_switches_and_an_operator_has_the_last_word() {
    const OFF: &str = "[switches]\noff = [\"provider:fake\"]";
    let it = Configured::with(OFF).await;
    assert_eq!(it.app.ask("a?").await.status, 503, "switched off from the start");
    let listed = good(&it.app, Method::GET, "/admin/switches", &json!(null)).await;
    assert_eq!(listed["config"], json!([{ "target": "provider:fake", "on": false }]));
    super::switch(&it.app, "provider:fake", true).await;
    it.app.provider.answer("yes");
    assert_eq!(it.app.ask("a?").await.status, 200, "the operator's word counts for more");
    super::clear(&it.app, "provider:fake").await;
    assert_eq!(it.app.ask("b?").await.status, 503);
    assert_eq!(it.reload("").await["in_force"], json!(["switches.off"]));
    it.app.provider.answer("yes");
    assert_eq!(it.app.ask("b?").await.status, 200);
    it.reload(OFF).await;
    assert_eq!(it.app.ask("c?").await.status, 503);
}

#[tokio::test]
async fn a_key_is_good_until_the_file_says_otherwise() {
    let keys = |names: &[&str]| {
        let digest = |name: &str| hex::encode(<sha2::Sha256 as sha2::Digest>::digest(name));
        let key = |name: &&str| format!("[auth.keys.{name}]\nsha256 = \"{}\"", digest(name));
        let keys = names.iter().map(key).collect::<Vec<_>>().join("\n");
        format!("[auth]\nmode = \"keys\"\n{keys}")
    };
    let it = Configured::with(&keys(&["alice"])).await;
    let ask = async |key: &str| {
        it.app.post(&chat("a?"), &[("authorization", &format!("Bearer {key}"))]).await.status.as_u16()
    };
    it.app.provider.answer("yes");
    assert_eq!((ask("alice").await, ask("bob").await), (200, 401));
    it.reload(&keys(&["bob"])).await;
    it.app.provider.answer("yes");
    assert_eq!((ask("alice").await, ask("bob").await), (401, 200));
    let open = it.reload("").await;
    assert_eq!(open["after_restart"], json!(["auth.keys.bob.sha256", "auth.mode"]), "who may call at all");
    assert_eq!((ask("alice").await, ask("bob").await), (401, 200));
}

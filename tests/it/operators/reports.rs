//! What operators see, and who may.

use std::collections::BTreeSet;

use axum::http::Method;
use refrain::upstream::UpstreamError;
use serde_json::{Value, json};

use super::{TWO_TARGETS, good};
use crate::support::{TestApp, streamed};

#[tokio::test(start_paused = true)]
async fn the_providers_as_they_stand() {
    let app = TestApp::with(TWO_TARGETS).await;
    let path = "/stats/providers";
    let report = good(&app, Method::GET, path, &json!(null)).await;
    assert_eq!(report["targets"], json!([]));
    assert_eq!(report["providers"][0]["provider"], "fake");
    app.provider.fail(UpstreamError::Connect { provider: "fake".into(), reason: "down".into() });
    app.provider.answer("from the second");
    app.ask("one").await;
    let open = app.provider.stream();
    open.content("still on its way");
    let body = streamed("two");
    let (streaming, report) = tokio::join!(app.post(&body, &[]), async {
        let report = while_streaming(&app).await;
        open.complete("done");
        report
    });
    assert_eq!(streaming.status, 200);
    assert_eq!(report["providers"][0]["in_flight"], 1);
    let [big, small] = [0, 1].map(|place| report["targets"][place].clone());
    assert_eq!((big["model"].clone(), small["model"].clone()), (json!("big"), json!("small")));
    assert_eq!(big["breaker"]["state"], "closed");
    assert_eq!(big["since_start"]["errors"], json!({ "connect": 1 }));
    assert_eq!(small["since_start"]["answers"], 1);
    assert_eq!(small["in_flight"], 1, "the one in trouble comes after its neighbour");
}

async fn while_streaming(app: &TestApp) -> Value {
    loop {
        let report = good(app, Method::GET, "/stats/providers", &json!(null)).await;
        if report["providers"][0]["in_flight"] == 1 {
            return report;
        }
        tokio::task::yield_now().await;
    }
}

/// The text format 0.0.4: a family is described once, its samples follow it, no sample is there
/// twice; unlike in the format of `OpenMetrics` there is no mark at its end.
#[tokio::test(start_paused = true)]
async fn the_page_for_prometheus_holds_the_targets_too() {
    let app = TestApp::with(TWO_TARGETS).await;
    app.provider.fail(UpstreamError::Connect { provider: "fake".into(), reason: "down".into() });
    app.provider.answer("a");
    app.ask("one").await;
    app.provider.answer("b");
    app.post(&streamed("two"), &[]).await;
    let scraped = app.operate(Method::GET, "/metrics", &json!(null)).await;
    assert_eq!(scraped.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let page = std::str::from_utf8(&scraped.body).unwrap();
    assert!(page.ends_with('\n') && !page.contains("\n\n") && !page.contains("EOF"));

    let (mut described, mut series) = (BTreeSet::new(), BTreeSet::new());
    let mut family = ("", "");
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, _) = help.split_once(' ').unwrap();
            assert!(described.insert(name), "{name} is described twice");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            family = kind.split_once(' ').unwrap();
            assert!(described.contains(family.0), "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(series.insert(sample), "{sample} is there twice");
            let name = sample.split_once('{').map_or(sample, |(name, _)| name);
            let suffixes: &[&str] =
                if family.1 == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(
                suffixes.iter().any(|suffix| name == format!("{}{suffix}", family.0)),
                "{line} in {family:?}"
            );
        }
    }
    for sample in [
        r#"refrain_target_attempts_total{provider="fake",model="big"}"#,
        r#"refrain_target_errors_total{provider="fake",model="big",class="connect"}"#,
        r#"refrain_target_first_content_seconds{provider="fake",model="small",quantile="0.99"}"#,
        r#"refrain_requests_total{namespace="default",source="miss"}"#,
    ] {
        assert!(series.contains(sample), "no {sample} in\n{page}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_operators_see_and_steer() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "canary").unwrap();
    let app = TestApp::with(&format!("[admin]\ntoken = \"file:{}\"", file.display())).await;
    let flip = json!({ "target": "provider:fake", "on": false, "by": "ops", "reason": "nonsense" });
    let breaker = json!({ "provider": "fake", "model": "big", "control": "isolated" });
    let nothing = json!(null);
    let clear = "/admin/switches/provider:fake?by=ops&reason=over";
    for (method, path, body, status) in [
        (Method::GET, "/stats/providers", &nothing, 200),
        (Method::GET, "/metrics", &nothing, 200),
        (Method::GET, "/admin/switches?audit=true", &nothing, 200),
        (Method::POST, "/admin/switches", &flip, 200),
        (Method::DELETE, clear, &nothing, 200),
        (Method::POST, "/admin/breakers", &breaker, 404),
    ] {
        for headers in [&[("host", "localhost")][..], &[("host", "localhost"), ("authorization", "Bearer x")]]
        {
            let refused = app.operate_with(method.clone(), path, headers, body).await;
            assert_eq!(refused.status, 401, "{method} {path}");
        }
        let token = [("host", "localhost"), ("authorization", "Bearer canary")];
        let reply = app.operate_with(method.clone(), path, &token, body).await;
        assert_eq!(reply.status, status, "{method} {path}");
    }
    app.provider.answer("nothing came through");
    app.ask("one").await;

    let open = TestApp::start().await;
    for foreign in [("host", "evil.example"), ("origin", "https://evil.example")] {
        let headers = [("host", "localhost"), foreign];
        let headers = if foreign.0 == "host" { &headers[1..] } else { &headers[..] };
        let refused = open.operate_with(Method::POST, "/admin/switches", headers, &flip).await;
        assert_eq!(refused.status, 403, "{foreign:?}");
    }
    assert_eq!(open.operate(Method::PUT, "/admin/switches", &nothing).await.status, 405);
    assert_eq!(open.operate(Method::GET, "/admin/switches/provider:fake", &nothing).await.status, 405);
}

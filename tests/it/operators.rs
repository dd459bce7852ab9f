//! The operator at night: what is seen, what is switched, and what callers notice of it.

mod breakers;
mod reload;
mod reports;
mod switched;
mod switches;

use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{Reply, TestApp};

/// Model `m` is served by two targets of the one scripted provider.
const TWO_TARGETS: &str = "[models.m]
targets = [{ provider = \"fake\", model = \"big\" }, { provider = \"fake\", model = \"small\" }]
";

/// Gives an answer of the admin API that must be good.
async fn good(app: &TestApp, method: Method, path: &str, body: &Value) -> Value {
    let reply = app.operate(method, path, body).await;
    assert_eq!(reply.status, 200, "{path} {body}: {:?}", reply.body);
    reply.json()
}

async fn flip(app: &TestApp, body: &Value) -> Reply {
    app.operate(Method::POST, "/admin/switches", body).await
}

async fn switch(app: &TestApp, target: &str, on: bool) {
    let body = json!({ "target": target, "on": on, "by": "ops", "reason": "a test" });
    good(app, Method::POST, "/admin/switches", &body).await;
}

async fn clear(app: &TestApp, target: &str) {
    let path = format!("/admin/switches/{target}?by=ops&reason=over");
    good(app, Method::DELETE, &path, &json!(null)).await;
}

/// The models that the provider was asked for, in order.
fn asked(app: &TestApp) -> Vec<String> {
    app.provider.calls().into_iter().map(|call| call.model).collect()
}

/// Nothing may be asked now; the caller learns when to come again.
fn is_refused_for_now(reply: &Reply) {
    assert_eq!((reply.status.as_u16(), reply.header("retry-after")), (503, "30"), "{:?}", reply.body);
    assert_eq!(reply.json()["error"]["code"], "unavailable");
}

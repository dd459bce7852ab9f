//! In which order targets are asked, and what callers may wish of it.

use std::sync::Arc;
use std::time::Duration;

use refrain::upstream::{Upstream, UpstreamError};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{ask, request, seconds, served, upstream, whole_request};
use crate::support::weather::{Fate, Weather, answer, overloaded, says};
use crate::support::{TestApp, chat, streamed};

fn well(name: &str) -> Arc<Weather> {
    Arc::new(Weather::new(name, |_| answer(10)))
}

/// The targets in the order in which they are asked for this request.
async fn order(upstream: &Upstream, providers: &[&Arc<Weather>], body: &Value) -> String {
    let before: Vec<_> = providers.iter().map(|provider| provider.calls().len()).collect();
    let _ = ask(upstream, &request(body), Duration::from_mins(1)).await;
    let calls = providers.iter().zip(before);
    let calls = calls.flat_map(|(provider, before)| provider.calls().into_iter().skip(before));
    let mut calls: Vec<_> = calls.collect();
    calls.sort_by_key(|call| call.order);
    calls.into_iter().map(|call| call.model).collect::<Vec<_>>().join(" ")
}

/// Providers x, y and z in one tier and w behind. All fail without being held against it, so that
/// one request tells the whole order.
fn four(settings: &str) -> (Arc<Upstream>, [Arc<Weather>; 4]) {
    let names = ["w", "x", "y", "z"];
    let providers = names.map(|name| Arc::new(Weather::new(name, |_| says(404, "").now())));
    let route = format!(
        r#"{settings}
        [models.m]
        targets = [
            {{ provider = "w", model = "w", tier = 2 }}, {{ provider = "x", model = "x" }},
            {{ provider = "y", model = "y", parameters = ["temperature"] }}, {{ provider = "z", model = "z" }},
        ]
        [models.n]
        targets = [{{ provider = "z", model = "n-z" }}, {{ provider = "y", model = "n-y" }}]"#
    );
    let upstream = {
        let [w, x, y, z] = &providers;
        upstream(&route, &[w, x, y, z])
    };
    (upstream, providers)
}

fn wishing(provider: Value) -> Value {
    let mut body = chat("q");
    body["provider"] = provider;
    body
}

#[tokio::test(start_paused = true)]
async fn callers_wishes_are_heard() {
    for (wish, expected) in [
        (json!({}), "x y z w"),
        (json!({ "order": ["z", "y"] }), "z y x w"),
        (json!({ "order": ["w", "z"] }), "z x y w"),
        (json!({ "order": ["z", "y"], "allow_fallbacks": false }), "z y"),
        (json!({ "allow_fallbacks": false }), "x"),
        (json!({ "only": ["y", "w"] }), "y w"),
        (json!({ "ignore": ["x", "w"] }), "y z"),
        (json!({ "only": ["x", "y"], "ignore": ["x"] }), "y"),
        (json!({ "order": ["nobody"] }), "x y z w"),
    ] {
        let (upstream, [w, x, y, z]) = four("");
        assert_eq!(order(&upstream, &[&w, &x, &y, &z], &wishing(wish.clone())).await, expected, "{wish}");
        for call in [&w, &x, &y, &z].iter().flat_map(|provider| provider.calls()) {
            let body: Value = serde_json::from_slice(&call.body).unwrap();
            assert_eq!(
                body.as_object().unwrap().len(),
                2,
                "{wish}: it is not the provider's to read: {body}"
            );
            assert_eq!(body["model"], call.model);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn parameters_can_be_required() {
    for (field, value, expected) in [
        ("temperature", json!(0.5), "x y z w"),
        ("tools", json!([]), "x z w"),
        ("user", json!("me"), "x y z w"),
        ("seed", json!(null), "x y z w"),
    ] {
        let (upstream, [w, x, y, z]) = four("");
        let mut body = wishing(json!({ "require_parameters": true }));
        body[field] = value;
        assert_eq!(order(&upstream, &[&w, &x, &y, &z], &body).await, expected, "{field}");
    }
}

#[tokio::test(start_paused = true)]
async fn further_models_come_after_the_first_one_and_nobody_twice() {
    for (models, expected) in [
        (json!(["n"]), "x y z w n-z n-y"),
        (json!(["m", "n"]), "x y z w n-z n-y"),
        (json!(["unknown", "n", "n"]), "x y z w n-z n-y"),
    ] {
        let (upstream, [w, x, y, z]) = four("");
        let mut body = chat("q");
        body["models"] = models.clone();
        assert_eq!(order(&upstream, &[&w, &x, &y, &z], &body).await, expected, "{models}");
    }
    let n =
        Arc::new(Weather::new("z", |now| if now.model == "m" { says(404, "").now() } else { answer(10) }));
    let upstream = upstream("[models.n]\ntargets = [{ provider = \"z\" }]", &[&n]);
    let mut body = chat("q");
    body["models"] = json!(["n"]);
    let completion = ask(&upstream, &request(&body), seconds(60)).await.unwrap();
    assert_eq!((&*completion.served.model, completion.served.is_fallback), ("n", true));
}

#[tokio::test(start_paused = true)]
async fn nobody_left_is_told_by_the_funnel() {
    let (upstream, _) = four("");
    for (wish, emptied_by, left) in [
        (json!({ "only": ["nobody"] }), "provider.only", vec![4, 4, 4, 4, 0, 0, 0, 0]),
        (json!({ "ignore": ["w", "x", "y", "z"] }), "provider.ignore", vec![4, 4, 4, 4, 4, 0, 0, 0]),
        (
            json!({ "order": ["x"], "ignore": ["x"], "allow_fallbacks": false }),
            "provider.order without allow_fallbacks",
            vec![4, 4, 4, 4, 4, 3, 0, 0],
        ),
    ] {
        let error = ask(&upstream, &request(&wishing(wish.clone())), seconds(60)).await.err().unwrap();
        let UpstreamError::NoTarget(funnel) = error else { panic!("{wish}: {error}") };
        assert_eq!(funnel.emptied_by, emptied_by, "{wish}");
        assert_eq!(funnel.steps.iter().map(|step| step.left).collect::<Vec<_>>(), left, "{wish}");
        assert_eq!(funnel.available_providers, ["w", "x", "y", "z"]);
    }
}

#[tokio::test(start_paused = true)]
async fn over_http_the_funnel_is_a_404() {
    let app = TestApp::start().await;
    let refused = app.post(&wishing(json!({ "only": ["azure"] })), &[]).await;
    assert_eq!(refused.status, 404);
    let error = &refused.json()["error"];
    assert_eq!((&error["code"], &error["param"]), (&json!("no_provider"), &json!("provider")));
    assert!(error["message"].as_str().unwrap().contains("provider.only"), "{error}");
    assert_eq!(error["metadata"]["requested_providers"], json!(["azure"]));
    assert_eq!(error["metadata"]["available_providers"], json!(["fake"]));
    assert_eq!(error["metadata"]["emptied_by"], "provider.only");
    let steps = error["metadata"]["steps"].as_array().unwrap();
    assert_eq!(steps[4], json!({ "filter": "provider.only", "left": 0 }));
    let refused = app.post(&wishing(json!({ "data_collection": "deny" })), &[]).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["error"]["param"]),
        (400, &json!("provider.data_collection"))
    );
}

#[tokio::test(start_paused = true)]
async fn over_http_the_reply_says_who_served() {
    let app = TestApp::start().await;
    app.provider.answer("a");
    let mut body = wishing(json!({ "only": ["fake"], "sort": "latency" }));
    body["models"] = json!(["m"]);
    let reply = app.post(&body, &[]).await;
    assert_eq!((reply.header("x-refrain-provider"), reply.header("x-refrain-model")), ("fake", "big"));
    assert_eq!(reply.header("x-refrain-attempts"), "1");
    let seen: Value = serde_json::from_slice(&app.provider.calls()[0].body).unwrap();
    assert!(seen.get("provider").is_none() && seen.get("models").is_none(), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn one_in_trouble_goes_behind_its_neighbours_for_half_a_minute() {
    let a = Arc::new(Weather::new("a", |now| if now.nth == 0 { overloaded().now() } else { answer(10) }));
    let (b, c) = (well("b"), well("c"));
    let route =
        "[models.m]\ntargets = [{ provider = \"a\" }, { provider = \"b\" }, { provider = \"c\", tier = 2 }]";
    let upstream = upstream(route, &[&a, &b, &c]);
    assert_eq!(served(&upstream, &whole_request()).await, "b");
    assert_eq!(a.calls().len(), 1);
    sleep(seconds(29)).await;
    assert_eq!(served(&upstream, &whole_request()).await, "b");
    assert_eq!(a.calls().len(), 1, "it is behind");
    sleep(seconds(2)).await;
    assert_eq!(served(&upstream, &whole_request()).await, "a");
    assert!(c.calls().is_empty(), "another model is behind both");
}

#[tokio::test(start_paused = true)]
async fn what_is_paid_for_anyhow_is_filled_first() {
    let (a, b) =
        (Arc::new(Weather::new("a", |_| answer(5_000))), Arc::new(Weather::new("b", |_| answer(5_000))));
    let settings = r#"
        [providers.b]
        kind = "openai"
        url = "http://127.0.0.1:9"
        max_in_flight = 3
        [models.m]
        targets = [{ provider = "a" }, { provider = "b", reserved = true }]"#;
    let upstream = upstream(settings, &[&a, &b]);
    let request = whole_request();
    let asking = (0..5).map(|_| served(&upstream, &request));
    let served = futures_util::future::join_all(asking).await;
    assert_eq!(served, ["b", "b", "b", "a", "a"], "the spill goes to the other, at once");
}

#[tokio::test(start_paused = true)]
async fn weights_are_kept_in_proportion() {
    let (a, b, c) = (well("a"), well("b"), well("c"));
    let route = r#"[models.m]
        order = "weight"
        targets = [{ provider = "a", weight = 6 }, { provider = "b", weight = 3 }, { provider = "c" }]"#;
    let upstream = upstream(route, &[&a, &b, &c]);
    let request = whole_request();
    for _ in 0..2_000 {
        served(&upstream, &request).await;
    }
    for (provider, share) in [(a, 1_200), (b, 600), (c, 200)] {
        let (calls, name) = (provider.calls().len(), provider.named());
        // Five standard deviations are about a hundred.
        assert!(calls.abs_diff(share) < 110, "{name} has {calls}, its share is {share}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_cheapest_is_first_by_order_or_wish() {
    let prices = r#"
        [prices.dear]
        input = 3.0
        output = 9.0
        [prices.cheap]
        input = 1.0
        output = 2.0
        [models.m]
        ORDER
        targets = [
            { provider = "a", model = "dear" }, { provider = "c" }, { provider = "b", model = "cheap" },
        ]"#;
    for (order, wish, expected) in
        [("", json!({}), "a"), ("order = \"price\"", json!({}), "b"), ("", json!({ "sort": "price" }), "b")]
    {
        let (a, b, c) = (well("a"), well("b"), well("c"));
        let upstream = upstream(&prices.replace("ORDER", order), &[&a, &b, &c]);
        assert_eq!(served(&upstream, &request(&wishing(wish))).await, expected, "{order}");
    }
}

/// Whoever was not measured yet is measured first; then the fastest serves.
#[tokio::test(start_paused = true)]
async fn the_fastest_is_first_by_order_or_wish() {
    for (order, wish) in [
        ("order = \"latency\"", json!({})),
        ("", json!({ "sort": "latency" })),
        ("", json!({ "sort": "throughput" })),
    ] {
        let provider = |name, ms| {
            let time = Duration::from_millis(ms);
            Arc::new(Weather::new(name, move |_| Fate::Answer { first: time, rest: time }))
        };
        let (a, b, c) = (provider("a", 800), provider("b", 80), provider("c", 800));
        let route = format!(
            "[models.m]\n{order}\ntargets = [{{ provider = \"a\" }}, {{ provider = \"b\" }}, {{ provider = \"c\" }}]"
        );
        let upstream = upstream(&route, &[&a, &b, &c]);
        let mut body = streamed("q");
        body["provider"] = wish.clone();
        let request = request(&body);
        for _ in 0..200 {
            served(&upstream, &request).await;
        }
        let calls = [&a, &b, &c].map(|provider| provider.calls().len());
        assert!(calls[1] >= 150, "{order} {wish}: {calls:?}");
        assert!(calls[0] > 0 && calls[2] > 0, "{order} {wish}: everybody is measured: {calls:?}");
    }
}

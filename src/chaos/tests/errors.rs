//! Errors, under their own status or under one that says all is well.

use super::*;

#[tokio::test]
async fn a_status_comes_with_the_dialects_body() {
    let response = whole("status:529").await;
    assert_eq!(response.status(), 529);
    assert_eq!(response.json()["error"]["code"], "server_is_overloaded");
    let response = answer("status:529", ANTHROPIC, true).await;
    assert_eq!((response.status(), response.is_complete()), (529, true));
    assert_eq!(response.json()["error"]["type"], "overloaded_error");
    assert_eq!(whole("status:429:code=slow_down").await.json()["error"]["code"], "slow_down");
}

#[tokio::test]
async fn retry_hints_come_as_scripted_however_wrong() {
    for value in ["2", "0", "-1", "1.5", "1e9", "NaN", "soon", "Wed, 21 Oct 2015 07:28:00 GMT"] {
        let response = whole(&format!("status:429:retry-after=\"{value}\":retry-after-ms=50")).await;
        assert_eq!(response.header("retry-after").as_deref(), Some(value));
        assert_eq!(response.header("retry-after-ms").as_deref(), Some("50"));
    }
    assert_eq!(whole("status:429").await.header("retry-after"), None);
    assert!(whole("status:429:retry-after=date+30s").await.header("retry-after").unwrap().ends_with(" GMT"));
    let rules = "status:400:x-should-retry=true:anthropic-ratelimit-requests-reset=rfc3339-1h";
    let response = answer(rules, ANTHROPIC, false).await;
    assert_eq!(response.header("x-should-retry").as_deref(), Some("true"));
    assert!(response.header("anthropic-ratelimit-requests-reset").unwrap().ends_with('Z'));
    let response = whole("header:x-ratelimit-reset-requests=6m0s:ok").await;
    assert_eq!(
        (response.status(), response.header("x-ratelimit-reset-requests").as_deref()),
        (200, Some("6m0s"))
    );
}

#[tokio::test]
async fn a_cdn_speaks_no_json() {
    let response = whole("status:502:body=html").await;
    assert_eq!((response.status(), response.header("content-type").as_deref()), (502, Some("text/html")));
    assert!(response.text().starts_with("<html>"));
    let response = whole("status:200:body=text").await;
    assert_eq!((response.status(), response.header("content-type").as_deref()), (200, Some("text/plain")));
    assert_eq!(whole("status:500:body=empty").await.raw(), b"");
    assert!(whole("error:anthropic-too-large").await.text().contains("cloudflare"));
}

#[tokio::test]
async fn every_providers_error_comes_as_the_table_has_it() {
    let chaos = playing("ok").await;
    let mut client = Client::connect(&chaos).await;
    for error in ProviderError::all() {
        chaos.set_mode(Mode::Error(error));
        client.ask(OPENAI, &question(true)).await;
        let response = client.response().await;
        assert_eq!(response.status(), error.status());
        assert_eq!(response.text(), error.body());
        assert!(error.headers().iter().all(|(name, _)| response.header(name).is_some()), "{error:?}");

        chaos.set_mode(Mode::ErrorIn200(Some(error)));
        client.ask(ANTHROPIC, &question(false)).await;
        let response = client.response().await;
        assert_eq!((response.status(), response.text()), (200, error.body().to_owned()));
    }
}

#[tokio::test]
async fn an_error_in_200_is_an_overload_unless_told_otherwise() {
    assert_eq!(stream("error-in-200").await.json()["error"]["code"], "server_is_overloaded");
    let response = answer("error-in-200", ANTHROPIC, false).await;
    assert_eq!((response.status(), &response.json()["error"]["type"]), (200, &json!("overloaded_error")));
}

#[tokio::test]
async fn an_error_may_be_an_event() {
    let response = stream("sse-error:first").await;
    assert_eq!((response.status(), response.is_complete()), (200, true));
    let data = response.data();
    assert!(data.len() == 1 && data[0].contains("server_is_overloaded"), "{data:?}");

    let data = stream("sse-error:after=2:error=openai-quota:done").await.data();
    assert_eq!(data.len(), 5, "{data:?}");
    assert!(data[2].contains("sw") && data[3].contains("insufficient_quota"));
    assert_eq!(data[4], "[DONE]");

    let text = answer("sse-error:first", ANTHROPIC, true).await.text();
    assert!(text.starts_with("event: error\ndata: {\"type\":\"error\""), "{text}");
    assert!(answer("sse-error:after=1", ANTHROPIC, true).await.text().starts_with("event: message_start"));
    assert_eq!(whole("sse-error:first").await.json()["error"]["code"], "server_is_overloaded");
}

#[tokio::test]
async fn keys_and_models_have_errors_of_their_own() {
    let chaos = playing("key:test-b:status:401; model:big-1:error:openai-model-not-found").await;
    for (key, model, status) in [
        ("test-a", "small-1", 200),
        ("test-b1", "small-1", 401),
        ("test-a", "big-1", 404),
        ("test-b1", "big-1", 401),
    ] {
        for header in [format!("authorization: Bearer {key}\r\n"), format!("x-api-key: {key}\r\n")] {
            let mut client = Client::connect(&chaos).await;
            let body = json!({ "model": model, "messages": [] }).to_string();
            client.send(client::post(OPENAI, &header, &body)).await;
            assert_eq!(client.response().await.status(), status, "{key} {model}");
        }
    }
}

#[tokio::test]
async fn a_redirect_leads_where_no_caller_should_go() {
    let response = whole("redirect").await;
    assert_eq!(response.status(), 302);
    assert!(response.header("location").unwrap().starts_with("http://169.254.169.254/"));
    assert_eq!(
        whole("redirect:http://10.0.0.1/x").await.header("location").as_deref(),
        Some("http://10.0.0.1/x")
    );
}

#[tokio::test]
async fn what_is_no_request_is_answered_with_400() {
    let chaos = playing("ok").await;
    let mut client = Client::connect(&chaos).await;
    client.send(client::post(OPENAI, "", "{\"model\":")).await;
    assert_eq!(client.response().await.status(), 400);
    client.send("nonsense\r\n\r\n").await;
    let response = client.rest().await;
    assert_eq!(response.status(), 400);
    assert_eq!(chaos.attempts().len(), 1);
}

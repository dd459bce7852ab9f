use std::fmt::Write;
use std::sync::Arc;

use http_body_util::BodyExt;

use super::*;
use crate::clock::Timestamp;

/// Status, the headers that matter, and the body.
async fn shown(error: impl Into<ApiError>) -> String {
    let response = error.into().into_response();
    let mut text = response.status().as_str().to_owned();
    for name in ["content-type", "retry-after", "x-should-retry", "www-authenticate"] {
        if let Some(value) = response.headers().get(name) {
            write!(text, "\n{name}: {}", value.to_str().unwrap()).unwrap();
        }
    }
    let body = response.into_body().collect().await.unwrap().to_bytes();
    text + "\n" + std::str::from_utf8(&body).unwrap()
}

fn provider() -> Arc<str> {
    "canary-provider".into()
}

fn status(status: u16, body: &'static str, retry_after: Option<&str>) -> UpstreamError {
    let mut headers = axum::http::HeaderMap::new();
    if let Some(value) = retry_after.and_then(|value| HeaderValue::from_str(value).ok()) {
        headers.insert(RETRY_AFTER, value);
    }
    let fault = upstream::classify(&upstream::Refusal {
        status,
        headers: &headers,
        body: body.as_bytes(),
        now: Timestamp(784_111_757_000),
    });
    UpstreamError::Status { provider: provider(), status, body: body.into(), fault }
}

#[tokio::test]
async fn a_bad_request_names_the_field() {
    insta::assert_snapshot!(
        shown(ApiError::bad_request("messages must not be empty", Some("messages"))).await,
        @r#"
    400
    content-type: application/json
    {"error":{"message":"messages must not be empty","type":"invalid_request_error","param":"messages","code":null}}
    "#
    );
}

#[tokio::test]
async fn the_callers_faults() {
    let answers = [
        shown(AuthError::Unknown).await,
        shown(GuardError::Host).await,
        shown(ApiError::model_not_found("gpt-9\"")).await,
        shown(ApiError::request_timeout()).await,
        shown(ApiError::payload_too_large(10)).await,
    ];
    insta::assert_snapshot!(answers.join("\n\n"), @r#"
    401
    content-type: application/json
    www-authenticate: Bearer
    {"error":{"message":"the API key is not valid","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}

    403
    content-type: application/json
    {"error":{"message":"without a token or key only requests to localhost, 127.0.0.1 or [::1] are served here","type":"permission_error","param":null,"code":"forbidden"}}

    404
    content-type: application/json
    {"error":{"message":"The model `gpt-9\"` does not exist or you do not have access to it.","type":"invalid_request_error","param":"model","code":"model_not_found"}}

    408
    content-type: application/json
    {"error":{"message":"the request's body did not arrive in time","type":"invalid_request_error","param":null,"code":"request_timeout"}}

    413
    content-type: application/json
    {"error":{"message":"the request's body is larger than 10 bytes","type":"invalid_request_error","param":null,"code":"request_too_large"}}
    "#);
}

#[tokio::test]
async fn the_services_faults_say_whether_to_try_again() {
    let answers = [
        shown(ApiError::rate_limited(Some(Duration::from_millis(1500)))).await,
        shown(ApiError::internal()).await,
        shown(ApiError::bad_gateway()).await,
        shown(ApiError::unavailable(Duration::ZERO)).await,
        shown(ApiError::deadline()).await,
        shown(ApiError::only_if_cached()).await,
    ];
    insta::assert_snapshot!(answers.join("\n\n"), @r#"
    429
    content-type: application/json
    retry-after: 2
    {"error":{"message":"the rate limit is reached, please try again later","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}

    500
    content-type: application/json
    x-should-retry: false
    {"error":{"message":"the service failed, its log says why","type":"server_error","param":null,"code":"internal_error"}}

    502
    content-type: application/json
    x-should-retry: false
    {"error":{"message":"no provider could answer the request","type":"server_error","param":null,"code":"upstream_failed"}}

    503
    content-type: application/json
    retry-after: 1
    {"error":{"message":"the service cannot take the request now, please try again later","type":"server_error","param":null,"code":"unavailable"}}

    504
    content-type: application/json
    x-should-retry: false
    {"error":{"message":"no provider answered in time","type":"server_error","param":null,"code":"deadline_exceeded"}}

    504
    content-type: application/json
    x-should-retry: false
    {"error":{"message":"the answer is not in the cache, and the request wanted only that","type":"invalid_request_error","param":null,"code":"only_if_cached"}}
    "#);
}

#[tokio::test]
async fn a_providers_word_on_the_request_passes_through() {
    let body = r#"{"error":{"message":"max_tokens is too large","code":"x"}}"#;
    for code in [400, 404, 409, 413, 415, 422, 451] {
        let answer = shown(status(code, body, None)).await;
        assert_eq!(answer, format!("{code}\ncontent-type: application/json\n{body}"));
    }
    let answer = shown(status(400, "<html>canary</html>", None)).await;
    assert!(answer.starts_with("400") && answer.contains("provider_refused"), "{answer}");
}

#[tokio::test]
async fn what_is_no_word_on_the_request_is_a_bad_gateway() {
    for error in [
        status(404, "<html>canary</html>", None),
        status(405, "{}", None),
        status(500, r#"{"error":"canary"}"#, None),
        status(200, r#"{"error":"canary"}"#, None),
        status(302, "canary", None),
        status(99, "canary", None),
        UpstreamError::Connect { provider: provider(), reason: "canary".into() },
        UpstreamError::Broken { provider: provider(), reason: "canary".into() },
        UpstreamError::TooLarge { provider: provider(), limit: 1 },
    ] {
        let answer = shown(error.clone()).await;
        assert!(answer.starts_with("502") && answer.contains("upstream_failed"), "{error:?}: {answer}");
        assert!(!answer.contains("canary"), "{answer}");
    }
}

#[tokio::test]
async fn a_full_provider_says_when_to_come_again() {
    for (error, seconds) in [
        (status(503, "canary", Some("9")), "9"),
        (status(529, r#"{"error":{"type":"overloaded_error"}}"#, None), "5"),
    ] {
        let answer = shown(error).await;
        assert!(answer.starts_with("503") && !answer.contains("canary"), "{answer}");
        assert!(answer.contains(&format!("retry-after: {seconds}\n")), "{answer}");
    }
}

#[tokio::test]
async fn a_refused_service_credential_is_the_operators_fault() {
    for code in [401, 402, 403] {
        let answer = shown(status(code, r#"{"error":"key sk-canary is wrong"}"#, None)).await;
        assert!(answer.starts_with("502") && answer.contains("provider_credential"), "{answer}");
        assert!(!answer.contains("canary"), "{answer}");
    }
}

#[tokio::test]
async fn a_refused_callers_credential_is_the_callers() {
    let error = status(401, r#"{"error":"wrong key"}"#, None);
    insta::assert_snapshot!(shown(ApiError::from_upstream(error, Credential::Caller)).await, @r#"
    401
    content-type: application/json
    www-authenticate: Bearer
    {"error":"wrong key"}
    "#);
}

#[tokio::test]
async fn a_rate_limit_passes_with_its_wait_and_without_the_organization() {
    for (sent, passed) in [
        (Some("20"), Some("20")),
        (Some("Sun, 06 Nov 1994 08:49:37 GMT"), Some("20")),
        (Some("soon"), None),
        (Some("-1"), None),
        (Some(""), None),
        (None, None),
    ] {
        let answer = shown(status(429, r#"{"error":"org-canary"}"#, sent)).await;
        assert!(answer.starts_with("429") && !answer.contains("canary"), "{answer}");
        assert_eq!(answer.lines().find_map(|line| line.strip_prefix("retry-after: ")), passed, "{sent:?}");
    }
}

#[tokio::test]
async fn timers_are_the_deadlines() {
    for error in [
        UpstreamError::TimedOut { provider: provider(), timer: "canary" },
        status(408, "canary", None),
        status(504, "canary", None),
    ] {
        let answer = shown(error).await;
        assert!(answer.starts_with("504") && !answer.contains("canary"), "{answer}");
    }
}

#[test]
fn labels_are_the_codes() {
    assert_eq!(ApiError::bad_request("x", None).label(), "bad_request");
    assert_eq!(ApiError::from(status(400, "{}", None)).label(), "provider_refused");
    assert_eq!(ApiError::deadline().label(), "deadline_exceeded");
}

//! Answers for requests that no handler answers, in the same form as all errors.

use std::any::Any;

use axum::http::{Method, Uri};
use axum::response::{IntoResponse, Response};
use tracing::error;

use super::error::{ApiError, dialect_of};

/// For `Router::fallback`: no route has this path.
pub async fn not_found(method: Method, uri: Uri) -> ApiError {
    ApiError::not_found(format!("Invalid URL ({method} {})", uri.path())).in_dialect(dialect_of(&uri))
}

/// For `Router::method_not_allowed_fallback`: the path is right, the method is not.
pub async fn method_not_allowed(method: Method, uri: Uri) -> ApiError {
    ApiError::method_not_allowed(format!("Not allowed method ({method} {})", uri.path()))
        .in_dialect(dialect_of(&uri))
}

/// For `CatchPanicLayer::custom`: a handler panicked. What it said is not logged here, since it
/// may hold what the caller wrote; the panic hook has the place.
pub fn panicked(_said: Box<dyn Any + Send>) -> Response {
    error!("a handler panicked");
    ApiError::internal().into_response()
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use axum::routing::post;
    use http_body_util::BodyExt;
    use tower::ServiceExt;
    use tower_http::catch_panic::CatchPanicLayer;

    use super::*;

    fn broken() -> &'static str {
        panic!("canary: the caller's text")
    }

    async fn answer(method: &str, path: &str) -> (StatusCode, Option<String>, String) {
        let app = Router::new()
            .route("/v1/chat", post(|| async { "fine" }))
            .route("/panic", post(|| async { broken() }))
            .fallback(not_found)
            .method_not_allowed_fallback(method_not_allowed)
            .layer(CatchPanicLayer::custom(panicked));
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let response = app.oneshot(request).await.unwrap();
        let status = response.status();
        let allow = response.headers().get("allow").map(|allow| allow.to_str().unwrap().to_owned());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, allow, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn an_unknown_path_is_404() {
        let (status, _, body) = answer("GET", "/v2/chat?key=canary").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        insta::assert_snapshot!(body, @r#"{"error":{"message":"Invalid URL (GET /v2/chat)","type":"invalid_request_error","param":null,"code":"not_found"}}"#);
    }

    #[tokio::test]
    async fn an_unknown_method_is_405_and_names_the_known_ones() {
        let (status, allow, body) = answer("GET", "/v1/chat").await;
        assert_eq!((status, allow.as_deref()), (StatusCode::METHOD_NOT_ALLOWED, Some("POST")));
        insta::assert_snapshot!(body, @r#"{"error":{"message":"Not allowed method (GET /v1/chat)","type":"invalid_request_error","param":null,"code":"method_not_allowed"}}"#);
    }

    #[tokio::test]
    async fn a_panic_is_a_500_that_says_nothing() {
        let (status, _, body) = answer("POST", "/panic").await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!body.contains("canary") && body.contains("internal_error"), "{body}");
    }
}

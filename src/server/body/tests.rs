use std::convert::Infallible;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::post;
use futures_util::stream::{self, StreamExt};
use tower::ServiceExt;

use super::*;

const LIMITS: BodyLimits = BodyLimits { max: 10, timeout: Duration::from_secs(30) };

async fn send(request: axum::http::request::Builder, body: Body) -> (StatusCode, String) {
    let app = Router::new()
        .route("/", post(|WholeBody(body): WholeBody| async move { body }))
        .layer(from_fn_with_state(LIMITS, limit));
    let response = app.oneshot(request.method("POST").body(body).unwrap()).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// A chunk each time the pause has passed.
fn trickle(chunk: &'static str, pause: Duration) -> Body {
    let chunks = stream::repeat(chunk).then(move |chunk| async move {
        tokio::time::sleep(pause).await;
        Ok::<_, Infallible>(chunk)
    });
    Body::from_stream(chunks)
}

#[tokio::test]
async fn a_body_at_the_limit_passes_whole() {
    let chunks = ["01234", "56789"].map(Ok::<_, Infallible>);
    for body in [Body::from("0123456789"), Body::from_stream(stream::iter(chunks))] {
        assert_eq!(send(Request::builder(), body).await, (StatusCode::OK, "0123456789".to_owned()));
    }
    assert_eq!(send(Request::builder(), Body::empty()).await, (StatusCode::OK, String::new()));
}

#[tokio::test]
async fn a_larger_body_is_refused_with_or_without_a_length() {
    let declared = Request::builder().header(CONTENT_LENGTH, 11);
    let chunks = ["012345", "678901"].map(Ok::<_, Infallible>);
    for (request, body) in [
        (declared, Body::from("0123456789a")),
        (Request::builder(), Body::from_stream(stream::iter(chunks))),
        // hyper lets no such lie through; the limit does not rest on that.
        (Request::builder().header(CONTENT_LENGTH, 3), Body::from("0123456789a")),
    ] {
        let (status, body) = send(request, body).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(body.contains("larger than 10 bytes"), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_or_trickles_is_cut_at_its_time() {
    for body in [trickle("x", Duration::from_hours(1)), trickle("x", Duration::from_secs(7))] {
        let start = Instant::now();
        let (status, body) = send(Request::builder(), body).await;
        assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
        assert!(body.contains("\"request_timeout\""), "{body}");
        assert_eq!(start.elapsed().as_secs(), 30);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_reads_late_still_gets_what_came_in_time() {
    let app = Router::new()
        .route(
            "/",
            post(|request: Request| async move {
                tokio::time::sleep(2 * LIMITS.timeout).await;
                WholeBody::from_request(request, &()).await.map(|WholeBody(body)| body)
            }),
        )
        .layer(from_fn_with_state(LIMITS, limit));
    let request = Request::builder().method("POST").body(Body::from("all here")).unwrap();
    assert_eq!(app.oneshot(request).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_compressed_body_is_refused_unread() {
    for encoding in ["gzip", "zstd", "identity, gzip", ""] {
        let request = Request::builder().header(CONTENT_ENCODING, encoding);
        let (status, body) = send(request, Body::from("x")).await;
        assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{encoding}: {body}");
    }
    let plain = Request::builder().header(CONTENT_ENCODING, "Identity");
    assert_eq!(send(plain, Body::from("x")).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_a_bad_request_without_the_cause() {
    let pieces = stream::iter([Ok("x"), Err(std::io::Error::other("canary"))]);
    let (status, body) = send(Request::builder(), Body::from_stream(pieces)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(!body.contains("canary") && body.contains("broke off"), "{body}");
}

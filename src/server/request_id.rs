//! One id for a request, in its answer and in every line the log has on it.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use uuid::{Builder, Uuid};

use super::error::dialect_of;
use crate::dialect::Dialect;

/// The header that carries it, both ways.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Where Anthropic's SDKs look for it.
const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// The layer that gives every request an id: the caller's own when it is fit for a log, else a
/// new UUID. The answer carries it back.
pub async fn assign(mut request: Request, next: Next) -> Response {
    let mut sent = request.headers().get_all(X_REQUEST_ID).iter();
    let id = match (sent.next(), sent.next()) {
        (Some(id), None) if is_sane(id) => id.clone(),
        _ => fresh(),
    };
    request.headers_mut().insert(X_REQUEST_ID, id.clone());
    let is_anthropics = dialect_of(request.uri()) == Dialect::Anthropic;
    let mut response = next.run(request).await;
    if is_anthropics {
        response.headers_mut().insert(REQUEST_ID, id.clone());
    }
    response.headers_mut().insert(X_REQUEST_ID, id);
    response
}

fn fresh() -> HeaderValue {
    HeaderValue::try_from(unique().to_string()).expect("a UUID is visible ASCII")
}

/// A random UUID from the thread's own generator. `Uuid::new_v4` asks the kernel each time, which
/// is a system call or two for every hit.
pub(super) fn unique() -> Uuid {
    Builder::from_random_bytes(rand::random()).into_uuid()
}

/// Short, and without anything that a log or a shell could take for more than a word.
fn is_sane(id: &HeaderValue) -> bool {
    (1..=128).contains(&id.len())
        && id.as_bytes().iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+=@".contains(byte))
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::http::HeaderMap;
    use axum::routing::get;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    /// What the handler saw and what the answer carries.
    async fn ids(sent: &[&[u8]]) -> (String, String) {
        let app = Router::new()
            .route(
                "/",
                get(|headers: HeaderMap| async move {
                    headers[X_REQUEST_ID].clone().to_str().unwrap().to_owned()
                }),
            )
            .layer(axum::middleware::from_fn(assign));
        let mut request = Request::new(Body::empty());
        for id in sent {
            request.headers_mut().append(X_REQUEST_ID, HeaderValue::from_bytes(id).unwrap());
        }
        let response = app.oneshot(request).await.unwrap();
        let answered = response.headers()[X_REQUEST_ID].to_str().unwrap().to_owned();
        let seen = response.into_body().collect().await.unwrap().to_bytes();
        (String::from_utf8(seen.to_vec()).unwrap(), answered)
    }

    #[tokio::test]
    async fn a_sane_id_is_taken_over() {
        let id = "req_01:AZ-9.z/+=@";
        assert_eq!(ids(&[id.as_bytes()]).await, (id.to_owned(), id.to_owned()));
    }

    #[tokio::test]
    async fn anything_else_gets_a_new_one() {
        let long = [b'a'; 129];
        let bad: [&[&[u8]]; 7] =
            [&[], &[b""], &[b"two words"], &[b"\"quoted\""], &[b"\xff\xfe"], &[&long], &[b"a", b"b"]];
        for sent in bad {
            let (seen, answered) = ids(sent).await;
            assert_eq!(seen, answered);
            assert!(Uuid::parse_str(&answered).is_ok(), "{sent:?} became {answered}");
        }
    }
}

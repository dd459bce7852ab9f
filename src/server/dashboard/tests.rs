use std::collections::BTreeSet;

use axum::Router;
use axum::body::Body;
use axum::http::header::LOCATION;
use axum::http::{HeaderName, Method, Request};
use axum::routing::get;
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::*;

async fn ask(method: Method, path: &str, known: Option<&str>) -> (StatusCode, HeaderMap, Vec<u8>) {
    let app = Router::new()
        .route("/dashboard", get(page))
        .route("/dashboard/", get(moved))
        .route("/dashboard/{*file}", get(file));
    let mut request = Request::builder().method(method).uri(path);
    if let Some(tag) = known {
        request = request.header(IF_NONE_MATCH, tag);
    }
    let request = request.body(Body::empty()).expect("the request is sound");
    let (parts, body) = app.oneshot(request).await.expect("a router does not fail").into_parts();
    let body = body.collect().await.expect("the body is in memory").to_bytes();
    (parts.status, parts.headers, body.to_vec())
}

fn text(file: &File) -> &'static str {
    std::str::from_utf8(file.bytes).expect("the files are text")
}

/// All files, the page first.
fn all() -> impl Iterator<Item = &'static File> {
    std::iter::once(&PAGE).chain(FILES)
}

fn ours() -> impl Iterator<Item = &'static File> {
    all().filter(|file| !file.name.starts_with("vendor/"))
}

/// What stands in `text` between `before` and the next quotation mark.
fn quoted<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split('"').next())
}

#[test]
fn every_file_that_is_linked_is_served_and_every_other_has_no_place_here() {
    let linked = ["href=\"", "src=\""].into_iter().flat_map(|before| quoted(text(&PAGE), before));
    let linked = linked.filter_map(|link| match link.strip_prefix('#') {
        Some(_) => None,
        None => Some(link.strip_prefix("dashboard/").expect("links lead to files of the dashboard")),
    });
    let imported = FILES.iter().flat_map(|file| quoted(text(file), " from \"./"));
    let wanted: BTreeSet<_> = linked.chain(imported).chain(["vendor/uplot.LICENSE"]).collect();
    assert_eq!(FILES.iter().map(|file| file.name).collect::<BTreeSet<_>>(), wanted);
}

#[test]
fn nothing_is_asked_of_anybody_else() {
    for file in ours() {
        // The name of a language is no address.
        let text = text(file).replace("http://www.w3.org/2000/svg", "");
        for address in ["http://", "https://", "ws://", "wss://", "\"//", "url(", "@import"] {
            assert!(!text.contains(address), "{} holds {address}", file.name);
        }
    }
    // The library names its home in a comment, and that is all.
    for file in all().filter(|file| file.name.ends_with("uplot.iife.min.js")) {
        let (_, code) = text(file).split_once("*/").expect("it begins with a comment");
        assert!(!code.contains("://"), "{}", file.name);
    }
}

#[test]
fn nothing_is_inline_and_no_text_becomes_markup() {
    let page = text(&PAGE);
    for inline in ["<style", " style=", "javascript:", "<script>", "<base", "<iframe"] {
        assert!(!page.contains(inline), "the page holds {inline}");
    }
    let handler = |word: &str| word.starts_with("on") && word.contains("=\"");
    assert!(!page.split_whitespace().any(handler), "the page has a handler");
    assert!(page.split("<script").skip(1).all(|script| script.contains("src=\"dashboard/")));
    for file in ours() {
        let words =
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"];
        for word in words {
            assert!(!text(file).contains(word), "{} holds {word}", file.name);
        }
    }
}

#[test]
fn it_stays_small() {
    let bytes: usize = all().map(|file| file.bytes.len()).sum();
    assert!(bytes < 150 << 10, "{bytes} bytes");
}

#[tokio::test]
async fn files_come_with_their_kind_and_their_policy() {
    for file in all() {
        let path = match file.name {
            "index.html" => "/dashboard".to_owned(),
            name => format!("/dashboard/{name}"),
        };
        let (status, headers, body) = ask(Method::GET, &path, None).await;
        assert_eq!((status, body.as_slice()), (StatusCode::OK, file.bytes), "{path}");
        let expected: [(HeaderName, &str); 5] = [
            (CONTENT_TYPE, file.kind),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            (CACHE_CONTROL, "no-cache"),
        ];
        for (name, value) in expected {
            assert_eq!(headers[&name], value, "{path}");
        }
        let (status, _, body) = ask(Method::HEAD, &path, None).await;
        assert_eq!((status, body.len()), (StatusCode::OK, 0), "{path}");
    }
}

#[tokio::test]
async fn what_the_browser_has_is_not_sent_again() {
    let (_, headers, _) = ask(Method::GET, "/dashboard/app.js", None).await;
    let tag = headers[ETAG].to_str().expect("a tag is text");
    for known in [tag.to_owned(), format!("W/{tag}"), format!("\"older\", {tag}")] {
        let (status, headers, body) = ask(Method::GET, "/dashboard/app.js", Some(&known)).await;
        assert_eq!((status, body.len()), (StatusCode::NOT_MODIFIED, 0), "{known}");
        assert_eq!(headers[ETAG], tag);
    }
    let (status, ..) = ask(Method::GET, "/dashboard/app.js", Some("\"older\"")).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn nothing_else_is_there() {
    // As a file of its own the page would look for the others in the wrong place.
    for path in ["/dashboard/index.html", "/dashboard/nothing.js", "/dashboard/../Cargo.toml"] {
        assert_eq!(ask(Method::GET, path, None).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    let (status, headers, _) = ask(Method::GET, "/dashboard/", None).await;
    assert_eq!(
        (status, headers[LOCATION].to_str().ok()),
        (StatusCode::PERMANENT_REDIRECT, Some("../dashboard"))
    );
    assert_eq!(ask(Method::POST, "/dashboard", None).await.0, StatusCode::METHOD_NOT_ALLOWED);
}

//! The operators' page: static files that are part of the binary.
//!
//! Open without the token, for the browser that opens the page has none to send yet. Nothing in the
//! files is secret: whatever the page shows it asks of the guarded routes, with the token that its
//! user types in.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use sha2::{Digest, Sha256};

use super::error::ApiError;

/// Only what comes from here, and nothing inline: text that gets into the page by a mistake of ours
/// runs nothing and reaches nobody.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

struct File {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! files {
    ($($name:literal: $kind:expr,)*) => {
        &[$(File { name: $name, kind: $kind, bytes: include_bytes!(concat!("dashboard/", $name)) },)*]
    };
}

/// The page. Its links are relative to `/dashboard`, so that a proxy may put a prefix before it.
static PAGE: File = File {
    name: "index.html",
    kind: "text/html; charset=utf-8",
    bytes: include_bytes!("dashboard/index.html"),
};

/// What the page links to.
static FILES: &[File] = files! {
    "api.js": SCRIPT,
    "app.js": SCRIPT,
    "charts.js": SCRIPT,
    "dialog.js": SCRIPT,
    "dom.js": SCRIPT,
    "explain.js": SCRIPT,
    "format.js": SCRIPT,
    "history.js": SCRIPT,
    "icon.svg": "image/svg+xml",
    "latency.js": SCRIPT,
    "login.js": SCRIPT,
    "namespaces.js": SCRIPT,
    "overview.js": SCRIPT,
    "providers.js": SCRIPT,
    "style.css": STYLE,
    "switches.js": SCRIPT,
    "traffic.js": SCRIPT,
    "vendor/uplot.LICENSE": "text/plain; charset=utf-8",
    "vendor/uplot.iife.min.js": SCRIPT,
    "vendor/uplot.min.css": STYLE,
};

/// One tag for all files: they belong together, and change with the binary alone.
static TAG: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for file in FILES.iter().chain([&PAGE]) {
        hash.update(file.bytes);
    }
    format!("\"{}\"", hex::encode(&hash.finalize()[..16]))
});

/// `GET /dashboard`
pub(super) async fn page(headers: HeaderMap) -> Response {
    answer(&PAGE, &headers)
}

/// `GET /dashboard/`: there the page's links would lead nowhere.
pub(super) async fn moved() -> Redirect {
    Redirect::permanent("../dashboard")
}

/// `GET /dashboard/{file}`
pub(super) async fn file(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, ApiError> {
    let file = FILES.iter().find(|file| file.name == name);
    file.map(|file| answer(file, &headers))
        .ok_or_else(|| ApiError::not_found(format!("the dashboard has no file {name:?}")))
}

fn answer(file: &File, asked: &HeaderMap) -> Response {
    let headers = [
        (CONTENT_TYPE, file.kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        // Kept, and asked for every time: another binary may have other files.
        (CACHE_CONTROL, "no-cache"),
        (ETAG, TAG.as_str()),
    ];
    if is_known(asked) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, file.bytes).into_response()
}

/// Whether the browser has this version (RFC 9110, section 13.1.2).
fn is_known(asked: &HeaderMap) -> bool {
    let sent = asked.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    sent.flat_map(|tags| tags.split(',')).any(|tag| tag.trim().trim_start_matches("W/") == *TAG)
}

#[cfg(test)]
mod tests;

//! The credential among the headers, wherever the caller's SDK puts it.

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};

use super::AuthError;

/// No key is longer; tokens of identity providers reach a few kilobytes.
pub(super) const LONGEST: usize = 8 << 10;

/// The one credential that was sent; the same one sent twice is one.
pub(super) fn of(headers: &HeaderMap) -> Result<&str, AuthError> {
    let bearer = headers.get_all(AUTHORIZATION).iter().map(|value| bearer(value));
    let plain = ["x-api-key", "api-key"].into_iter().flat_map(|name| headers.get_all(name)).map(text);
    let mut found = None;
    for credential in bearer.chain(plain) {
        let credential = credential?;
        match found {
            None => found = Some(credential),
            Some(other) if other == credential => {}
            Some(_) => return Err(AuthError::Conflicting),
        }
    }
    found.ok_or(AuthError::Missing)
}

/// The token of a Bearer header.
pub(super) fn bearer(value: &HeaderValue) -> Result<&str, AuthError> {
    const SCHEME: &str = "bearer";
    let value = text(value)?;
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return Err(AuthError::NotBearer);
    }
    match token.trim_start() {
        "" => Err(AuthError::Empty),
        token => Ok(token),
    }
}

fn text(value: &HeaderValue) -> Result<&str, AuthError> {
    if value.len() > LONGEST {
        return Err(AuthError::TooLong);
    }
    match value.to_str().map_err(|_| AuthError::NotText)?.trim() {
        "" => Err(AuthError::Empty),
        text => Ok(text),
    }
}

//! Who may read stats and evict.
//!
//! With a token: whoever has it. Without one the listener is loopback, and every program of
//! this machine may ask, which is what loopback means. But a browser is such a program too, and
//! runs code of any page: a page can send requests to 127.0.0.1 (cross-site requests), and can
//! make its own name resolve to 127.0.0.1 so that the browser even lets it read the answers (DNS
//! rebinding). The first shows in `Origin` and `Sec-Fetch-Site`, the second in `Host`, and a
//! page can forge none of the three.

use std::net::IpAddr;

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use thiserror::Error;

use super::{AuthError, credential};
use crate::config;

/// The check in front of the admin API. Keeps only the token's hash.
#[derive(Clone)]
pub struct AdminAuth(Option<[u8; 32]>);

impl std::fmt::Debug for AdminAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "AdminAuth(token)" } else { "AdminAuth(loopback)" })
    }
}

/// Why the admin API cannot be guarded.
#[derive(Debug, Error)]
pub enum AdminAuthError {
    /// The reference leads nowhere. An empty token must not open the door.
    #[error("admin.token = \"{0}\": there is no token there")]
    NoToken(config::SecretRef),
    /// The reference cannot be read.
    #[error("admin.token = \"{reference}\" cannot be read: {reason}")]
    Unreadable {
        /// Where the token should be.
        reference: config::SecretRef,
        /// Why it cannot be read.
        reason: std::io::Error,
    },
    /// Neither token nor loopback.
    #[error("admin.listen = \"{0}\" can be reached from outside: set admin.token, or listen on 127.0.0.1")]
    Exposed(std::net::SocketAddr),
}

/// Why an operator is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum GuardError {
    /// The token is not right.
    #[error(transparent)]
    Token(#[from] AuthError),
    /// Without a token: not addressed to this machine by one of its own names.
    #[error("without a token or key only requests to localhost, 127.0.0.1 or [::1] are served here")]
    Host,
    /// Without a token: sent by some other page in a browser.
    #[error("without a token or key no requests from other web pages are served here")]
    Origin,
}

impl AdminAuth {
    /// As the configuration says; reads the token.
    pub fn try_new(config: &config::Admin) -> Result<Self, AdminAuthError> {
        let Some(reference) = &config.token else {
            let loopback = config.listen.ip().is_loopback();
            return if loopback { Ok(Self(None)) } else { Err(AdminAuthError::Exposed(config.listen)) };
        };
        match reference.resolve() {
            Ok(Some(token)) => Ok(Self(Some(Sha256::digest(token.expose()).into()))),
            Ok(None) => Err(AdminAuthError::NoToken(reference.clone())),
            Err(reason) => Err(AdminAuthError::Unreadable { reference: reference.clone(), reason }),
        }
    }

    /// Lets the request in, or says why not.
    pub fn check(&self, request: &Parts) -> Result<(), GuardError> {
        match &self.0 {
            Some(token) => Ok(check_token(&request.headers, token)?),
            None => check_local(&request.headers, &request.uri),
        }
    }
}

fn check_token(headers: &HeaderMap, token: &[u8; 32]) -> Result<(), AuthError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let sent = credential::bearer(values.next().ok_or(AuthError::Missing)?)?;
    if values.next().is_some() {
        return Err(AuthError::Conflicting);
    }
    // Hashes have one length, so not even the token's length shows in the time taken.
    let sent: [u8; 32] = Sha256::digest(sent).into();
    if bool::from(sent.ct_eq(token)) { Ok(()) } else { Err(AuthError::Unknown) }
}

/// Lets only this machine's own programs and pages through.
pub(super) fn check_local(headers: &HeaderMap, uri: &Uri) -> Result<(), GuardError> {
    let host = host(headers, uri).ok_or(GuardError::Host)?;
    if !is_loopback(host.host()) {
        return Err(GuardError::Host);
    }
    let foreign = headers.get_all(ORIGIN).iter().any(|origin| {
        // A page of another port of this machine is another page.
        origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://")) != Some(host.as_str())
    });
    let cross_site = headers
        .get_all("sec-fetch-site")
        .iter()
        .any(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"));
    if foreign || cross_site { Err(GuardError::Origin) } else { Ok(()) }
}

/// Whom the request is addressed to: HTTP/2 and proxies' requests say it in the URI, and then a
/// `Host` header has to say the same.
fn host(headers: &HeaderMap, uri: &Uri) -> Option<Authority> {
    let mut named = headers.get_all(HOST).iter().map(|value| Authority::try_from(value.as_bytes()).ok());
    let first = match uri.authority() {
        Some(authority) => authority.clone(),
        None => named.next()??,
    };
    named.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

fn is_loopback(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

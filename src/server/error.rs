//! The only place that turns errors into HTTP.
//!
//! Detail goes to the log, where the error is handled; the client gets a status, a fixed text
//! and a code to act on. Nothing that a provider or a module of ours says of itself reaches the
//! client, with one exception: what a provider has to say about the request is the client's.

mod body;

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;

use super::auth::{AuthError, GuardError};
use crate::dialect::Dialect;
use crate::dialect::openai::request::BadRequest;
use crate::upstream::fault::{self as upstream, Class};
use crate::upstream::{Funnel, UpstreamError};

/// Tells OpenAI's and Anthropic's SDKs whether to try again; without it they try twice more
/// after any 408, 409, 429 or 5xx.
const X_SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// An error as the client sees it: in OpenAI's form, unless it was made for another dialect.
#[derive(Debug)]
pub struct ApiError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    status: StatusCode,
    body: Content,
    retry_after: Option<HeaderValue>,
    /// Trying again would only repeat it.
    terminal: bool,
    dialect: Dialect,
}

#[derive(Debug)]
enum Content {
    Ours(Fault),
    /// A provider's own JSON.
    Provider(Bytes),
}

/// OpenAI's error object.
#[derive(Debug, Serialize)]
struct Fault {
    message: Cow<'static, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    param: Option<String>,
    code: Option<&'static str>,
    /// What else a program may want to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<serde_json::Value>,
}

/// When to come again while a provider is full and does not say.
const FULL: Duration = Duration::from_secs(5);
/// The same while an operator has switched something off.
const SWITCHED_OFF: Duration = Duration::from_secs(30);

const REQUEST: &str = "invalid_request_error";
const PERMISSION: &str = "permission_error";
const RATE: &str = "rate_limit_error";
const SERVER: &str = "server_error";

/// Whose credential the provider saw, which decides whose fault its refusal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// The service's own (`auth.mode` open or keys).
    Service,
    /// The caller's (`auth.mode` forward).
    Caller,
}

impl ApiError {
    fn new(
        status: StatusCode,
        kind: &'static str,
        code: impl Into<Option<&'static str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        let fault = Fault { message: message.into(), kind, param: None, code: code.into(), metadata: None };
        Self(Box::new(Inner {
            status,
            body: Content::Ours(fault),
            retry_after: None,
            terminal: false,
            dialect: Dialect::OpenAi,
        }))
    }

    /// The same for a client who speaks this dialect.
    #[must_use]
    pub fn in_dialect(mut self, dialect: Dialect) -> Self {
        self.0.dialect = dialect;
        self
    }

    fn terminal(mut self) -> Self {
        self.0.terminal = true;
        self
    }

    fn with_param(mut self, name: Option<&str>) -> Self {
        if let Content::Ours(fault) = &mut self.0.body {
            fault.param = name.map(str::to_owned);
        }
        self
    }

    fn retry_after(mut self, value: Option<HeaderValue>) -> Self {
        self.0.retry_after = value;
        self
    }

    /// 400: the request cannot be understood; `param` names the field.
    pub fn bad_request(message: impl Into<Cow<'static, str>>, param: Option<&str>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, REQUEST, None, message).with_param(param)
    }

    /// 401: the caller is not known.
    pub fn unauthorized(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, REQUEST, "invalid_api_key", message)
    }

    /// 403: the caller may not do this.
    pub fn forbidden(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, PERMISSION, "forbidden", message)
    }

    /// 404: there is no such thing.
    pub fn not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, REQUEST, "not_found", message)
    }

    /// 404 in the words that SDKs know for a model that nobody serves.
    pub fn model_not_found(model: &str) -> Self {
        let message = format!("The model `{model}` does not exist or you do not have access to it.");
        Self::new(StatusCode::NOT_FOUND, REQUEST, "model_not_found", message).with_param(Some("model"))
    }

    /// 404: the request's own wishes leave no provider. The body says which filter left none.
    pub fn no_target(funnel: &Funnel) -> Self {
        let message =
            format!("no provider is left by this request's wishes: {} left none", funnel.emptied_by);
        let mut error =
            Self::new(StatusCode::NOT_FOUND, REQUEST, "no_provider", message).with_param(Some("provider"));
        if let Content::Ours(fault) = &mut error.0.body {
            fault.metadata = serde_json::to_value(funnel).ok();
        }
        error
    }

    /// 405: the path is right, the method is not.
    pub fn method_not_allowed(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, REQUEST, "method_not_allowed", message)
    }

    /// 408: the body did not arrive in time. SDKs send it again, which is right.
    pub fn request_timeout() -> Self {
        let message = "the request's body did not arrive in time";
        Self::new(StatusCode::REQUEST_TIMEOUT, REQUEST, "request_timeout", message)
    }

    /// 413: the body is larger than `limit` bytes.
    pub fn payload_too_large(limit: u64) -> Self {
        let message = format!("the request's body is larger than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, REQUEST, "request_too_large", message)
    }

    /// 415: the body comes in a form that is not read here.
    pub fn unsupported_media_type(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, REQUEST, "unsupported_media_type", message)
    }

    /// 429: every provider's rate limit is reached.
    pub fn rate_limited(retry_after: Option<Duration>) -> Self {
        let message = "the rate limit is reached, please try again later";
        Self::new(StatusCode::TOO_MANY_REQUESTS, RATE, "rate_limit_exceeded", message)
            .retry_after(retry_after.map(seconds))
    }

    /// 500 with a fixed text: a fault of ours.
    pub fn internal() -> Self {
        let message = "the service failed, its log says why";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, SERVER, "internal_error", message).terminal()
    }

    /// 502: every provider failed.
    pub fn bad_gateway() -> Self {
        let message = "no provider could answer the request";
        Self::new(StatusCode::BAD_GATEWAY, SERVER, "upstream_failed", message).terminal()
    }

    /// 502: the service's own credential is refused, and every one of them.
    fn provider_credential() -> Self {
        let message = "the provider refused the service's own credential, its operator has to act";
        Self::new(StatusCode::BAD_GATEWAY, SERVER, "provider_credential", message).terminal()
    }

    /// 503: nothing is asked of the providers now; it may work again after `retry_after`.
    pub fn unavailable(retry_after: Duration) -> Self {
        let message = "the service cannot take the request now, please try again later";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, SERVER, "unavailable", message)
            .retry_after(Some(seconds(retry_after)))
    }

    /// 504: no answer inside the deadline.
    pub fn deadline() -> Self {
        let message = "no provider answered in time";
        Self::new(StatusCode::GATEWAY_TIMEOUT, SERVER, "deadline_exceeded", message).terminal()
    }

    /// 504, as RFC 9111 asks: the caller wanted `only-if-cached`, and it is not.
    pub fn only_if_cached() -> Self {
        let message = "the answer is not in the cache, and the request wanted only that";
        Self::new(StatusCode::GATEWAY_TIMEOUT, REQUEST, "only_if_cached", message).terminal()
    }

    /// What a failed call means for the caller, given whose credential the provider saw.
    ///
    /// A provider that refuses the service's own credential (401, 402, 403) has not refused the
    /// caller: a 401 would send the caller looking for a fault in a key that is right, so it is
    /// the operator's 502. In forward mode it is the caller's key, and the provider's word on
    /// it passes through.
    pub fn from_upstream(error: UpstreamError, credential: Credential) -> Self {
        match error {
            UpstreamError::UnknownModel { model } => Self::model_not_found(&model),
            UpstreamError::NoTarget(funnel) => Self::no_target(&funnel),
            UpstreamError::Inexpressible { what, .. } => {
                let message = format!("no provider of this model can be asked that: {what}");
                Self::new(StatusCode::BAD_REQUEST, REQUEST, "unsupported", message)
                    .with_param(Some(&what.field))
            }
            UpstreamError::SwitchedOff { .. } => Self::unavailable(SWITCHED_OFF),
            UpstreamError::Overloaded { shed, .. } => Self::unavailable(shed.retry_after()),
            UpstreamError::Throttled { class: Class::RateLimit, retry_after, .. } => {
                Self::rate_limited(Some(retry_after))
            }
            UpstreamError::Throttled { .. } => Self::provider_credential(),
            UpstreamError::TimedOut { .. } | UpstreamError::DeadlineExceeded => Self::deadline(),
            UpstreamError::Status { status, body, fault, .. } => {
                Self::from_status(status, body, fault, credential)
            }
            UpstreamError::Connect { .. } | UpstreamError::Broken { .. } | UpstreamError::TooLarge { .. } => {
                Self::bad_gateway()
            }
        }
    }

    fn from_status(status: u16, body: Bytes, word: upstream::Fault, credential: Credential) -> Self {
        match (word.class, status) {
            (Class::RateLimit, _) => Self::rate_limited(word.wait),
            (Class::Capacity, _) => Self::unavailable(word.wait.unwrap_or(FULL)),
            (Class::Timeout, _) => Self::deadline(),
            (Class::Auth | Class::Quota, 400..=499) if credential == Credential::Caller => {
                Self::provider(status, body)
            }
            (Class::Auth | Class::Quota, _) => Self::provider_credential(),
            // One that is not JSON is no word on the request: the provider's URL is wrong.
            (_, 404) if !is_json_object(&body) => Self::bad_gateway(),
            (_, 400 | 404 | 409 | 413 | 415 | 422 | 451) => Self::provider(status, body),
            // Said inside a success, or under a status that means something else.
            (Class::InvalidRequest | Class::ContextLength | Class::ContentFilter, 200 | 403)
                if is_json_object(&body) =>
            {
                Self::provider(400, body)
            }
            _ => Self::bad_gateway(),
        }
    }

    /// A provider's refusal under its own status, with its own body when that is JSON.
    fn provider(status: u16, body: Bytes) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
        let mut error = Self::new(status, REQUEST, "provider_refused", "the provider refused the request");
        if is_json_object(&body) {
            error.0.body = Content::Provider(body);
        }
        error
    }

    /// The status that the client sees.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// A word for metrics and logs: the code that the client sees.
    pub fn label(&self) -> &'static str {
        match &self.0.body {
            Content::Ours(Fault { code: Some(code), .. }) => code,
            Content::Ours(_) => "bad_request",
            Content::Provider(_) => "provider_refused",
        }
    }
}

/// The dialect of those who come by this path.
pub(super) fn dialect_of(uri: &Uri) -> Dialect {
    if uri.path().starts_with("/v1/messages") { Dialect::Anthropic } else { Dialect::OpenAi }
}

/// Whole seconds, rounded up: coming back too early helps nobody.
fn seconds(wait: Duration) -> HeaderValue {
    let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
    HeaderValue::from(seconds.max(1))
}

fn is_json_object(body: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(body).is_ok()
}

impl From<UpstreamError> for ApiError {
    fn from(error: UpstreamError) -> Self {
        Self::from_upstream(error, Credential::Service)
    }
}

impl From<BadRequest> for ApiError {
    fn from(error: BadRequest) -> Self {
        Self::bad_request(error.message, error.param.as_deref())
    }
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        Self::unauthorized(error.to_string())
    }
}

impl From<GuardError> for ApiError {
    fn from(error: GuardError) -> Self {
        match error {
            GuardError::Token(error) => error.into(),
            GuardError::Host | GuardError::Origin => Self::forbidden(error.to_string()),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = Body::from(self.body());
        let Inner { status, retry_after, terminal, .. } = *self.0;
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(value) = retry_after {
            headers.insert(RETRY_AFTER, value);
        }
        if terminal {
            headers.insert(X_SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests;

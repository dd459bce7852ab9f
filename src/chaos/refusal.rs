//! Errors on the wire, in the caller's dialect or in a provider's own.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::answer::{Event, Kind};
use super::asked::Dialect;
use super::draft::Draft;
use super::mode::{Page, Status};
use super::provider_error::ProviderError;
use crate::clock::Timestamp;

/// An error status, with the body that the dialect's provider sends with it.
pub(super) fn status(error: &Status, dialect: Dialect, now: Timestamp) -> Draft {
    let title = format!("{} as scripted", error.status);
    let mut draft = match error.page {
        Some(Page::Html) => {
            let page =
                format!("<html><head><title>{title}</title></head><body><h1>{title}</h1></body></html>");
            Draft::whole(error.status, "text/html", page)
        }
        Some(Page::Text) => Draft::whole(error.status, "text/plain", title),
        Some(Page::Empty) => Draft::whole(error.status, "application/json", ""),
        None => Draft::whole(error.status, "application/json", body(error, dialect, &title)),
    };
    for (name, value) in &error.headers {
        draft.header(name, relative(value, now));
    }
    draft
}

/// A provider's error under its own status, or under another.
pub(super) fn provider_error(error: ProviderError, status: u16, now: Timestamp) -> Draft {
    let mut draft = Draft::whole(status, error.content_type(), error.body());
    for (name, value) in error.headers() {
        draft.header(name, relative(value, now));
    }
    draft
}

/// A provider's error as an event of a stream.
pub(super) fn event(error: ProviderError, dialect: Dialect) -> Event {
    let name = (dialect == Dialect::Anthropic).then_some("error");
    Event { kind: Kind::Start, name, data: error.body().to_owned() }
}

/// What a provider of this dialect says when it has no capacity left.
pub(super) fn overload(dialect: Dialect) -> ProviderError {
    let name = match dialect {
        Dialect::OpenAi => "openai-overloaded",
        Dialect::Anthropic => "anthropic-overloaded",
    };
    ProviderError::named(name).expect("the table has both, as a test makes sure")
}

fn body(error: &Status, dialect: Dialect, title: &str) -> String {
    let message = error.message.as_deref().unwrap_or(title);
    match dialect {
        Dialect::OpenAi => {
            let (kind, code) = openai(error.status);
            let kind = error.kind.as_deref().unwrap_or(kind);
            let code = error.code.as_deref().or(code);
            json!({ "error": { "message": message, "type": kind, "param": null, "code": code } }).to_string()
        }
        Dialect::Anthropic => {
            let kind = error.kind.as_deref().unwrap_or_else(|| anthropic(error.status));
            let mut inner = json!({ "type": kind, "message": message });
            if let Some(code) = &error.code {
                inner["details"] = json!({ "error_code": code });
            }
            json!({ "type": "error", "error": inner, "request_id": "req_1" }).to_string()
        }
    }
}

/// Type and code that OpenAI sends with a status.
fn openai(status: u16) -> (&'static str, Option<&'static str>) {
    match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        403 => ("request_forbidden", Some("unsupported_country_region_territory")),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("requests", Some("rate_limit_exceeded")),
        503 | 529 => ("service_unavailable_error", Some("server_is_overloaded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    }
}

/// The type that Anthropic sends with a status.
fn anthropic(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

/// Resolves a header value that is relative to now, such as `date+30s`; any other stays as it is.
pub(super) fn relative(value: &str, now: Timestamp) -> String {
    type Write = fn(Timestamp) -> String;
    let forms: [(&str, Write); 4] = [
        ("date", http_date),
        ("rfc3339", |time| humantime::format_rfc3339_seconds(system_time(time)).to_string()),
        ("unix-ms", |time| time.0.to_string()),
        ("unix", |time| time.as_secs().to_string()),
    ];
    let resolved = forms.iter().find_map(|(form, write)| {
        let offset = value.strip_prefix(form)?;
        let by = |offset: &str| humantime::parse_duration(offset).ok();
        let time = match offset.split_at_checked(1)? {
            ("+", offset) => now.after(by(offset)?),
            ("-", offset) => now.before(by(offset)?),
            _ => return None,
        };
        (time < LAST).then(|| write(time))
    });
    resolved.unwrap_or_else(|| value.to_owned())
}

/// The beginning of the year 9999, the last that dates can be written in.
const LAST: Timestamp = Timestamp(253_370_764_800_000);

/// As in the headers `date` and `retry-after`.
pub(super) fn http_date(time: Timestamp) -> String {
    httpdate::fmt_http_date(system_time(time.min(LAST)))
}

fn system_time(time: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(time.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_values_may_be_relative_to_now() {
        let now = Timestamp(1_700_000_000_000);
        for (value, written) in [
            ("date+30s", "Tue, 14 Nov 2023 22:13:50 GMT"),
            ("date-1h", "Tue, 14 Nov 2023 21:13:20 GMT"),
            ("rfc3339-30s", "2023-11-14T22:12:50Z"),
            ("unix+30s", "1700000030"),
            ("unix-ms+30s", "1700000030000"),
            ("date", "date"),
            ("date+soon", "date+soon"),
            ("date+9000years", "date+9000years"),
            ("NaN", "NaN"),
            ("-1", "-1"),
        ] {
            assert_eq!(relative(value, now), written);
        }
    }

    #[test]
    fn both_dialects_have_their_overload() {
        assert_eq!(overload(Dialect::OpenAi).status(), 503);
        assert_eq!(overload(Dialect::Anthropic).status(), 529);
    }

    #[test]
    fn a_status_has_the_body_of_its_dialect_unless_told_otherwise() {
        let mut error = Status::of(429);
        let rate_limit: serde_json::Value = serde_json::from_str(
            r#"{"error":{"code":"rate_limit_exceeded","message":"m","param":null,"type":"requests"}}"#,
        )
        .expect("the test's JSON is valid");
        let answered: serde_json::Value =
            serde_json::from_str(&body(&error, Dialect::OpenAi, "m")).expect("the body is JSON");
        assert_eq!(answered, rate_limit);
        assert!(body(&error, Dialect::Anthropic, "m").contains(r#""type":"rate_limit_error""#));
        error.code = Some("slow_down".to_owned());
        assert!(body(&error, Dialect::OpenAi, "m").contains(r#""code":"slow_down""#));
        assert!(body(&error, Dialect::Anthropic, "m").contains(r#""details":{"error_code":"slow_down"}"#));
    }
}

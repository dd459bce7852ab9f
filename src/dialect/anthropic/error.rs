//! Errors in Anthropic's words.

use bytes::Bytes;
use serde::Serialize;
use serde_json::json;

use super::reply::frame;

/// Anthropic's word for an error of this HTTP status.
///
/// 503 and Anthropic's own 529 share a word, for both say that too much is asked for. The status
/// is not changed into 529: SDKs try again after either, and proxies on the way know only 503.
pub fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

/// The body of an error response.
pub fn body(status: u16, message: &str, request_id: Option<&str>) -> Bytes {
    write(kind(status), message, request_id)
}

/// The body of an error response that says more: `error_code` is what SDKs act on.
pub fn detailed(status: u16, message: &str, error_code: &str) -> Bytes {
    let error = json!({ "type": kind(status), "message": message, "details": { "error_code": error_code } });
    json!({ "type": "error", "error": error }).to_string().into()
}

/// The event that ends a stream which broke after its first byte, framed. No `message_stop` may
/// follow: a client must not take the part for the whole.
pub fn event(status: u16, message: &str, request_id: Option<&str>) -> Bytes {
    frame(&body(status, message, request_id))
}

/// The data of an error event, by Anthropic's word for it.
pub(in crate::dialect) fn write(kind: &str, message: &str, request_id: Option<&str>) -> Bytes {
    #[derive(Serialize)]
    struct Body<'a> {
        r#type: &'static str,
        error: Error<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<&'a str>,
    }
    #[derive(Serialize)]
    struct Error<'a> {
        r#type: &'a str,
        message: &'a str,
    }
    let body = Body { r#type: "error", error: Error { r#type: kind, message }, request_id };
    serde_json::to_vec(&body).expect("texts alone always serialise into memory").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_word() {
        for (status, word) in [
            (400, "invalid_request_error"),
            (401, "authentication_error"),
            (402, "billing_error"),
            (403, "permission_error"),
            (404, "not_found_error"),
            (405, "invalid_request_error"),
            (408, "timeout_error"),
            (413, "request_too_large"),
            (415, "invalid_request_error"),
            (429, "rate_limit_error"),
            (500, "api_error"),
            (502, "api_error"),
            (503, "overloaded_error"),
            (504, "timeout_error"),
            (529, "overloaded_error"),
        ] {
            assert_eq!(kind(status), word, "{status}");
        }
    }

    #[test]
    fn the_wire_form() {
        assert_eq!(
            body(404, "model: claude-opus-9", Some("req_1")),
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-opus-9"},"request_id":"req_1"}"#
        );
        assert_eq!(
            event(503, "Over\n\"loaded\"", None),
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Over\\n\\\"loaded\\\"\"}}\n\n"
        );
    }
}

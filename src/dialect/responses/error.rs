//! Errors in the words of OpenAI's responses.

use bytes::Bytes;
use serde_json::{Value, json};

use super::reply::frame;

/// The body of an error response: the same as for chat completions. `kind` is OpenAI's `type`.
pub fn body(message: &str, kind: &str, param: Option<&str>, code: Option<&str>) -> Bytes {
    let error = json!({ "message": message, "type": kind, "param": param, "code": code });
    json!({ "error": error }).to_string().into()
}

/// The event that ends a stream which broke after its first byte, framed. No event may follow it: a
/// client must not take the part for the whole.
///
/// `sequence` is the number of events before it. It names no response, so it can follow whichever
/// provider's events came before; `response.failed` would have to repeat that provider's id.
pub fn event(message: &str, code: Option<&str>, sequence: u64) -> Bytes {
    frame(&write(message, &code.into(), sequence))
}

/// The data of an error event.
pub(in crate::dialect) fn write(message: &str, code: &Value, sequence: u64) -> Bytes {
    let event = json!({
        "type": "error", "code": code, "message": message, "param": null, "sequence_number": sequence,
    });
    event.to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_form() {
        assert_eq!(
            body("no \"x\"", "invalid_request_error", Some("input"), None),
            r#"{"error":{"message":"no \"x\"","type":"invalid_request_error","param":"input","code":null}}"#
        );
        assert_eq!(
            event("it\nbroke", Some("server_error"), 7),
            concat!(
                "event: error\n",
                r#"data: {"type":"error","code":"server_error","message":"it\nbroke","param":null,"sequence_number":7}"#,
                "\n\n"
            )
        );
    }
}

//! An error in the words of the caller's dialect: as a body, and as the event that ends a stream.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::{ApiError, Content, Fault, SERVER};
use crate::dialect::openai::reply::{error_event, frame};
use crate::dialect::{Dialect, anthropic, responses};

impl ApiError {
    /// The body of the response.
    pub(super) fn body(&self) -> Bytes {
        #[derive(Serialize)]
        struct Envelope<'a> {
            error: &'a Fault,
        }

        match (self.0.dialect, &self.0.body) {
            (Dialect::OpenAi | Dialect::Responses, Content::Ours(error)) => {
                serde_json::to_vec(&Envelope { error }).expect("texts alone always serialize").into()
            }
            (Dialect::OpenAi | Dialect::Responses, Content::Provider(body)) => openais(body),
            // Its SDK then sends the whole conversation.
            (Dialect::Anthropic, Content::Ours(fault)) if fault.param.as_deref() == Some("thread") => {
                anthropic::error::detailed(
                    self.status().as_u16(),
                    &fault.message,
                    "thread_unsupported_request",
                )
            }
            (Dialect::Anthropic, Content::Ours(fault)) => {
                anthropic::error::body(self.status().as_u16(), &fault.message, None)
            }
            (Dialect::Anthropic, Content::Provider(body)) => self.anthropics(body),
        }
    }

    /// The event that tells a client why its stream ends here, after so many others. Nothing may
    /// follow it.
    pub fn to_event(&self, dialect: Dialect, sent: u64) -> Bytes {
        match (dialect, &self.0.body) {
            (Dialect::OpenAi, Content::Ours(fault)) => error_event(&fault.message, fault.kind, fault.code),
            (Dialect::OpenAi, Content::Provider(body)) if !body.contains(&b'\n') => frame(&openais(body)),
            (Dialect::OpenAi, Content::Provider(_)) => {
                error_event("the provider broke off", SERVER, Some("provider_refused"))
            }
            (Dialect::Responses, Content::Ours(fault)) => {
                responses::error::event(&fault.message, fault.code, sent)
            }
            (Dialect::Responses, Content::Provider(body)) => {
                let told = serde_json::from_slice::<Value>(body).ok();
                let message = told.as_ref().and_then(message).unwrap_or("the provider broke off");
                responses::error::event(message, Some("provider_refused"), sent)
            }
            (Dialect::Anthropic, Content::Ours(fault)) => {
                anthropic::error::event(self.status().as_u16(), &fault.message, None)
            }
            (Dialect::Anthropic, Content::Provider(body)) => anthropic::reply::frame(&self.anthropics(body)),
        }
    }

    /// A provider's own body, as Anthropic's clients read it.
    fn anthropics(&self, body: &Bytes) -> Bytes {
        match serde_json::from_slice::<Value>(body) {
            Ok(told) if told["type"] == "error" && told["error"].is_object() => body.clone(),
            told => {
                let message =
                    told.as_ref().ok().and_then(message).unwrap_or("the provider refused the request");
                anthropic::error::body(self.status().as_u16(), message, None)
            }
        }
    }
}

/// A provider's own body, as OpenAI's clients read it.
fn openais(body: &Bytes) -> Bytes {
    match serde_json::from_slice::<Value>(body) {
        Ok(told) if told["type"] == "error" && told["error"].is_object() => {
            let (kind, message) = (&told["error"]["type"], &told["error"]["message"]);
            let error = json!({ "message": message, "type": kind, "param": null, "code": kind });
            json!({ "error": error }).to_string().into()
        }
        _ => body.clone(),
    }
}

/// What a provider says to people, in whichever form.
fn message(told: &Value) -> Option<&str> {
    let error = &told["error"];
    error["message"].as_str().or(error.as_str()).or(told["message"].as_str())
}

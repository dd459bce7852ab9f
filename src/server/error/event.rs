//! An error that ends a stream.

use bytes::Bytes;

use super::{ApiError, Content, SERVER};
use crate::dialect::openai::reply::{error_event, frame};

impl ApiError {
    /// The event that tells a client why its stream ends here. Nothing may follow it.
    pub fn to_event(&self) -> Bytes {
        match &self.0.body {
            Content::Ours(fault) => error_event(&fault.message, fault.kind, fault.code),
            Content::Provider(body) if !body.contains(&b'\n') => frame(body),
            Content::Provider(_) => error_event("the provider broke off", SERVER, Some("provider_refused")),
        }
    }
}

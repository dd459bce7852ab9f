//! From one dialect to another, for a caller and a provider who do not speak the same.
//!
//! The rule: what cannot be said is refused by name, never left out, since a caller must not get
//! the answer to another question. Each module lists the few exceptions, and why they are none.

pub mod reply;
pub mod request;
pub mod responses;
pub mod stream;
mod translator;

use thiserror::Error;

pub use reply::CrossFault;
pub use translator::Translator;

/// What one dialect says and the other has no words for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} {reason}")]
pub struct Inexpressible {
    /// The field, such as `messages[2].content[0]`.
    pub field: String,
    /// What is wrong with it, to follow the field's name in a sentence.
    pub reason: String,
}

impl Inexpressible {
    /// This field, and what is wrong with it.
    pub fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }
}

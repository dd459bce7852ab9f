//! Which providers can take a request.

use super::cross::Inexpressible;

/// Where a request may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Anywhere: text, images and files, plain settings.
    Plain,
    /// Anywhere, since tools can be said in every dialect. Only what ends in plain text is kept of such.
    Tools,
    /// Only to one that speaks its own dialect, and untouched, for this has no counterpart: thinking,
    /// documents, built-in tools, a history that the provider keeps, thoughts that only their maker
    /// can read, the beginning of an answer, and whatever nobody here has heard of.
    Own(Inexpressible),
}

impl Passage {
    /// Of a request with these tools, and the first thing in it that has no counterpart.
    pub(super) fn of(own: Option<Inexpressible>, tools: bool) -> Self {
        match own {
            Some(reason) => Self::Own(reason),
            None if tools => Self::Tools,
            None => Self::Plain,
        }
    }

    /// Nothing in it speaks against answering from memory, or asking in another dialect.
    pub fn is_plain(&self) -> bool {
        *self == Self::Plain
    }
}

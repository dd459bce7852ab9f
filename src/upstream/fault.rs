//! What went wrong with an attempt, and what to do about it.
//!
//! A status says too little. A 429 may be a key that is too fast, an account without money or a
//! provider that is full, and each calls for something else: rotate the key, put it aside, or
//! leave it alone and go elsewhere. A retry that cannot help is worse than none: it adds load
//! where there is too much of it already. So every failure gets one of a few [`Class`]es, and a
//! class has one [`Reaction`]: the table in [`Class::reaction`].
//!
//! [`classify`] reads what a provider said, wherever it said it: with an error status, inside a
//! 200, or as the first event of a stream. Failures that are no words of a provider (a refused
//! connection, a timer) are made with [`Fault::of`].

mod body;
mod fingerprint;
mod phrases;
mod refusal;
pub mod wait;
mod words;

use std::time::Duration;

pub use body::{holds_error, message};
pub use fingerprint::Fingerprint;
pub use refusal::{Refusal, classify};

/// The kinds of failure that differ in what helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The provider or the model is full, for everybody: another key does not help.
    Capacity,
    /// This key is too fast: it has a time of recovery, others may be free now.
    RateLimit,
    /// The money, or an allowance of a day or longer, is used up.
    Quota,
    /// The key is not accepted, or not for this.
    Auth,
    /// The request is wrong, and would be everywhere.
    InvalidRequest,
    /// This target has no such model, deployment or ability, or not here: another may.
    NotServed,
    /// The question is longer than the model can read.
    ContextLength,
    /// A filter of the provider refused the content.
    ContentFilter,
    /// No answer in time, by our timers or the provider's.
    Timeout,
    /// No connection, or one that broke before the provider can have begun.
    Connect,
    /// The provider failed, or what it sent is no answer.
    ServerError,
}

/// What may help after a failure, from what is tried first to what is tried last. The caller
/// takes the first that is allowed here and that its deadline, its budget and its targets allow.
#[expect(clippy::struct_excessive_bools, reason = "the columns of a table")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reaction {
    /// The same target again, from the retry budget, after [`Fault::wait`] or a backoff.
    pub retry_here: bool,
    /// The retry here is made at once, only once, and on a fresh connection.
    pub at_once: bool,
    /// The same target with another key.
    pub next_key: bool,
    /// The same model at another provider.
    pub next_provider: bool,
    /// Another model. After [`Class::ContextLength`] only one that reads more.
    pub next_model: bool,
    /// The key rests until [`Fault::wait`] is over.
    pub cool_key: bool,
    /// The key is put aside, and tried again after a long while.
    pub quarantine_key: bool,
    /// The target's breaker counts it as a failure. What a caller, a key or a filter caused does
    /// not count: it says nothing about the target's health.
    pub counts_for_breaker: bool,
    /// The limit of concurrent calls goes down: there were too many.
    pub lowers_limit: bool,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 11] = [
        Self::Capacity,
        Self::RateLimit,
        Self::Quota,
        Self::Auth,
        Self::InvalidRequest,
        Self::NotServed,
        Self::ContextLength,
        Self::ContentFilter,
        Self::Timeout,
        Self::Connect,
        Self::ServerError,
    ];

    /// What helps against failures of this class: the fields of [`Reaction`], in their order.
    #[rustfmt::skip]
    #[expect(clippy::match_same_arms, reason = "a row for each class")]
    pub const fn reaction(self) -> Reaction {
        const YES: bool = true;
        const ___: bool = false;
        match self {
            //                           retry      next            key        breaker  limit
            //                           here once  key  prov model cool aside counts   falls
            Self::Capacity       => row([YES, ___,  ___, YES, YES,  ___, ___,  YES,     YES]),
            Self::RateLimit      => row([___, ___,  YES, YES, YES,  YES, ___,  ___,     ___]),
            Self::Quota          => row([___, ___,  YES, YES, YES,  ___, YES,  ___,     ___]),
            Self::Auth           => row([___, ___,  YES, YES, YES,  ___, YES,  ___,     ___]),
            Self::InvalidRequest => row([___, ___,  ___, ___, ___,  ___, ___,  ___,     ___]),
            Self::NotServed      => row([___, ___,  ___, YES, YES,  ___, ___,  ___,     ___]),
            Self::ContextLength  => row([___, ___,  ___, ___, YES,  ___, ___,  ___,     ___]),
            Self::ContentFilter  => row([___, ___,  ___, ___, ___,  ___, ___,  ___,     ___]),
            Self::Timeout        => row([___, ___,  ___, YES, YES,  ___, ___,  YES,     YES]),
            Self::Connect        => row([YES, YES,  ___, YES, YES,  ___, ___,  YES,     ___]),
            Self::ServerError    => row([YES, ___,  ___, YES, YES,  ___, ___,  YES,     ___]),
        }
    }

    /// A word for metrics and logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::RateLimit => "rate_limit",
            Self::Quota => "quota",
            Self::Auth => "auth",
            Self::InvalidRequest => "invalid_request",
            Self::NotServed => "not_served",
            Self::ContextLength => "context_length",
            Self::ContentFilter => "content_filter",
            Self::Timeout => "timeout",
            Self::Connect => "connect",
            Self::ServerError => "server_error",
        }
    }
}

/// A row of the table, in the order of the fields.
const fn row(row: [bool; 9]) -> Reaction {
    let [
        retry_here,
        at_once,
        next_key,
        next_provider,
        next_model,
        cool_key,
        quarantine_key,
        counts_for_breaker,
        lowers_limit,
    ] = row;
    Reaction {
        retry_here,
        at_once,
        next_key,
        next_provider,
        next_model,
        cool_key,
        quarantine_key,
        counts_for_breaker,
        lowers_limit,
    }
}

impl Reaction {
    /// Whether nothing helps: the caller gets the provider's answer at once.
    pub const fn fails_at_once(self) -> bool {
        !(self.retry_here || self.next_key || self.next_provider || self.next_model)
    }
}

/// A failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What kind of failure it is.
    pub class: Class,
    /// How long the provider asks to wait, at most [`wait::MAX`]. Zero is an answer: now. `None`
    /// when it does not say.
    pub wait: Option<Duration>,
    /// Whether a retry may help, in the provider's own words (`x-should-retry`).
    pub may_retry: Option<bool>,
    /// The hash of words that are not in the tables, for the log; the class is then the default
    /// of the status.
    pub unknown: Option<Fingerprint>,
}

impl Fault {
    /// A fault that is plain without words of a provider.
    pub const fn of(class: Class) -> Self {
        Self { class, wait: None, may_retry: None, unknown: None }
    }

    /// The fault of an answer that is complete and says nothing: no choices, or no content.
    pub const fn empty_answer() -> Self {
        Self::of(Class::ServerError)
    }

    /// Whether the tables know what the provider said.
    pub const fn recognised(&self) -> bool {
        self.unknown.is_none()
    }

    /// What to do: the reaction of the class, and the provider's word on retries on top. Its no
    /// always counts. Its yes means that the same request may succeed later, which is no reason
    /// to stay with a key that is the trouble.
    pub const fn reaction(&self) -> Reaction {
        let mut reaction = self.class.reaction();
        match self.may_retry {
            Some(false) => {
                reaction.retry_here = false;
                reaction.at_once = false;
            }
            Some(true) if !reaction.next_key => reaction.retry_here = true,
            Some(true) | None => {}
        }
        reaction
    }
}

#[cfg(test)]
mod tests;

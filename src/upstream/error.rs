//! Why there is no answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use thiserror::Error;

use super::fault::{Class, Fault, Refusal, classify};
use super::limit::Shed;
use super::plan::Funnel;
use crate::clock::Timestamp;
use crate::dialect::cross::Inexpressible;

/// Why there is no answer, or why it broke off.
#[derive(Clone, Debug, Error)]
pub enum UpstreamError {
    /// No configured model has this name, or its provider is not there.
    #[error("no provider serves the model {model:?}")]
    UnknownModel {
        /// The name asked for.
        model: String,
    },
    /// The caller's wishes leave nobody to ask.
    #[error("the request's wishes leave no provider: {} left none", .0.emptied_by)]
    NoTarget(Arc<Funnel>),
    /// The request says what a provider of another dialect has no words for.
    #[error("the request cannot be put to {provider}: {what}")]
    Inexpressible {
        /// The provider's name.
        provider: Arc<str>,
        /// What it has no words for.
        what: Inexpressible,
    },
    /// An operator switched off all that could answer.
    #[error("everyone who serves the model {model:?} is switched off")]
    SwitchedOff {
        /// The name asked for.
        model: String,
    },
    /// As many calls as may be are under way, and as many requests wait as may.
    #[error("{provider} has no slot free: {shed}")]
    Overloaded {
        /// The provider's name.
        provider: Arc<str>,
        /// What became of the wait for one.
        shed: Shed,
    },
    /// Every key rests or is put aside, or the rate that is allowed is used up.
    #[error("{provider} cannot be asked before {retry_after:?} have passed ({})", .class.label())]
    Throttled {
        /// The provider's name.
        provider: Arc<str>,
        /// Why: `rate_limit`, or what it has against the keys, `auth` or `quota`.
        class: Class,
        /// How long until it can be asked.
        retry_after: Duration,
    },
    /// The caller's deadline passed.
    #[error("no answer came before the deadline")]
    DeadlineExceeded,
    /// No connection, or one that broke before a byte of an answer came.
    #[error("{provider} cannot be reached: {reason}")]
    Connect {
        /// The provider's name.
        provider: Arc<str>,
        /// Why, for the log only.
        reason: Arc<str>,
    },
    /// A timer ran out.
    #[error("{provider} did not answer in time ({timer})")]
    TimedOut {
        /// The provider's name.
        provider: Arc<str>,
        /// Which timer: `connect`, `first_content`, `stall` or `total`.
        timer: &'static str,
    },
    /// The provider refused or failed, with a status of its own (or an error inside a 200).
    #[error("{provider} answered {status} ({})", .fault.class.label())]
    Status {
        /// The provider's name.
        provider: Arc<str>,
        /// Its status; 200 for an error inside a success.
        status: u16,
        /// Its body, for the caller when the fault is the caller's.
        body: Bytes,
        /// What it means.
        fault: Fault,
    },
    /// The answer is not what the protocol says, or ended before its terminal event.
    #[error("{provider} sent a broken answer: {reason}")]
    Broken {
        /// The provider's name.
        provider: Arc<str>,
        /// What is wrong with it.
        reason: Arc<str>,
    },
    /// The answer is larger than `upstream.max_reply`.
    #[error("{provider} sent more than {limit} bytes")]
    TooLarge {
        /// The provider's name.
        provider: Arc<str>,
        /// The limit.
        limit: u64,
    },
}

impl UpstreamError {
    /// An error that came in place of an answer, under a status or in a stream that began well.
    pub fn inside_success(provider: &Arc<str>, body: Bytes) -> Self {
        // Whatever wait it names is in the body, and no date.
        let (headers, now) = (HeaderMap::new(), Timestamp::default());
        let fault = classify(&Refusal { status: 200, headers: &headers, body: &body, now });
        Self::Status { provider: provider.clone(), status: 200, body, fault }
    }

    /// The provider it comes from; `none` where it is nobody's.
    pub fn provider(&self) -> &str {
        match self {
            Self::UnknownModel { .. }
            | Self::NoTarget(_)
            | Self::SwitchedOff { .. }
            | Self::DeadlineExceeded => "none",
            Self::Inexpressible { provider, .. }
            | Self::Overloaded { provider, .. }
            | Self::Throttled { provider, .. }
            | Self::Connect { provider, .. }
            | Self::TimedOut { provider, .. }
            | Self::Status { provider, .. }
            | Self::Broken { provider, .. }
            | Self::TooLarge { provider, .. } => provider,
        }
    }

    /// A word for metrics and logs.
    pub fn label(&self) -> &'static str {
        match self {
            Self::UnknownModel { .. } => "unknown_model",
            Self::NoTarget(_) => "no_target",
            Self::Inexpressible { .. } => "inexpressible",
            Self::SwitchedOff { .. } => "switched_off",
            Self::Overloaded { shed, .. } => shed.label(),
            Self::Throttled { class: Class::RateLimit, .. } => "throttled",
            Self::DeadlineExceeded => "deadline",
            Self::Connect { .. }
            | Self::TimedOut { .. }
            | Self::Status { .. }
            | Self::Throttled { .. }
            | Self::Broken { .. }
            | Self::TooLarge { .. } => self.fault().class.label(),
        }
    }

    /// Whether the time was over that the request had: another with more time may fare better.
    pub fn is_out_of_time(&self) -> bool {
        matches!(self, Self::DeadlineExceeded | Self::TimedOut { timer: "total", .. })
    }

    /// What kind of failure it is, and so what may help.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Status { fault, .. } => *fault,
            Self::Connect { .. } => Fault::of(Class::Connect),
            Self::TimedOut { .. } | Self::DeadlineExceeded => Fault::of(Class::Timeout),
            Self::UnknownModel { .. } | Self::NoTarget(_) | Self::Inexpressible { .. } => {
                Fault::of(Class::NotServed)
            }
            Self::Overloaded { shed, .. } => {
                Fault { wait: Some(shed.retry_after()), ..Fault::of(Class::Capacity) }
            }
            Self::Throttled { class, retry_after, .. } => {
                Fault { wait: Some(*retry_after), ..Fault::of(*class) }
            }
            Self::SwitchedOff { .. } => Fault::of(Class::Capacity),
            Self::Broken { .. } | Self::TooLarge { .. } => Fault::of(Class::ServerError),
        }
    }
}

//! What is asked of the providers, and within which limits.

use tokio::time::Instant;

use super::UpstreamError;
use super::limit::Priority;
use super::preferences::Preferences;
use crate::chat::json::Json;
use crate::chat::{Api, ChatRequest};
use crate::config::Secret;
use crate::dialect::anthropic::request::{OWN_MCP_SERVERS, OWN_TOOLS};

/// One request.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// What is asked.
    pub request: &'a ChatRequest,
    /// The caller's own key, to be used in place of a configured one.
    pub credential: Option<&'a Secret>,
    /// Who asks, for limits per tenant.
    pub tenant: &'a str,
    /// Who shall answer, as far as the caller says.
    pub preferences: &'a Preferences,
    /// Before whom it comes when requests wait.
    pub priority: Priority,
    /// When the whole answer must be there.
    pub deadline: Instant,
    /// A late first call may be raced by a second one, if the model's config says so.
    pub may_hedge: bool,
    /// Is told of every call that failed.
    pub on_failure: &'a (dyn Fn(&UpstreamError) + Send + Sync),
}

/// Where a request's scope holds tools, in either dialect.
const TOOLS: [&str; 4] = ["tools", "functions", OWN_TOOLS, OWN_MCP_SERVERS];

/// No wishes at all.
static NO_WISHES: Preferences = Preferences::none();

impl<'a> Ask<'a> {
    /// A request of nobody in particular and without wishes, to be answered before `deadline`.
    pub fn new(request: &'a ChatRequest, deadline: Instant) -> Self {
        Self {
            request,
            credential: None,
            tenant: "anonymous",
            preferences: &NO_WISHES,
            priority: Priority::Interactive,
            deadline,
            may_hedge: true,
            on_failure: &|_| {},
        }
    }
}

impl Ask<'_> {
    /// Whether the answer may act on the world through tools, so that asking twice could do it twice.
    pub(super) fn may_act(&self) -> bool {
        let Json::Object(fields) = &self.request.scope else { return false };
        fields.iter().any(|(name, value)| TOOLS.contains(&name.as_str()) && *value != Json::Null)
    }

    /// Whether it asks for an answer, and not only for a count of its tokens or for vectors.
    pub(super) fn is_for_an_answer(&self) -> bool {
        !matches!(self.request.api, Api::CountTokens | Api::Embeddings)
    }

    /// About how many tokens it takes: four bytes each, as English has on average.
    pub(super) fn tokens(&self) -> u32 {
        if self.request.api == Api::CountTokens {
            return 0;
        }
        u32::try_from(self.request.body.len() / 4).unwrap_or(u32::MAX)
    }
}

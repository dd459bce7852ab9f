//! Reads a messages request.
//!
//! Only what the key and the streaming need is checked; the rest is the provider's to judge. The
//! body goes to a provider of the same dialect as it came, byte for byte. The scope is written in
//! OpenAI's words (its module says how), so that a question meets its answer whichever dialect either
//! was in.
//!
//! A body for `/v1/messages/count_tokens` reads as one for `/v1/messages` does: only the path says
//! that it asks for no answer, so whoever has the path passes it through.

mod scope;

use bytes::Bytes;

use crate::chat::json::Json;
use crate::chat::{Api, ChatRequest};
use crate::dialect::cross::Inexpressible;
use crate::dialect::openai::request::{
    boolean, check_messages, fields, find, missing, model, model_span, wrong,
};

pub use crate::dialect::Passage;
pub use crate::dialect::openai::request::BadRequest;

/// Where a scope holds tools that only Anthropic has.
pub const OWN_TOOLS: &str = "\0anthropic tools";
/// The same for servers of tools.
pub const OWN_MCP_SERVERS: &str = "\0anthropic mcp_servers";

/// Fields of a request about what Anthropic keeps between requests.
const STATEFUL: [&str; 2] = ["container", "thread"];

/// The versions of the API that clients name.
const VERSIONS: [&str; 2] = ["2023-06-01", "2026-10-21"];

/// A request, and what it asks of who serves it.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The request. Its `include_usage` is always true: Anthropic's streams tell it unasked.
    pub request: ChatRequest,
    /// Where it may go.
    pub passage: Passage,
}

impl Reading {
    /// The request under these betas, as the `anthropic-beta` headers name them, several in one with
    /// commas between: what they change is not known here, so they are part of the scope, and only
    /// Anthropic's dialect has them. Their order does not matter.
    #[must_use]
    pub fn with_betas<'a>(mut self, betas: impl IntoIterator<Item = &'a str>) -> Self {
        let mut betas: Vec<_> = betas
            .into_iter()
            .flat_map(|header| header.split(','))
            .map(str::trim)
            .filter(|beta| !beta.is_empty())
            .collect();
        betas.sort_unstable();
        betas.dedup();
        if let Some(beta) = betas.first()
            && let Json::Object(fields) = &mut self.request.scope
        {
            if let Passage::Plain | Passage::Tools = self.passage {
                let reason = format!("names {beta}, which has no counterpart in the other dialect");
                self.passage = Passage::Own(Inexpressible { field: "anthropic-beta".to_owned(), reason });
            }
            let betas = betas.iter().map(|beta| Json::String((*beta).to_owned())).collect();
            fields.push((scope::marked("anthropic-beta"), Json::Array(betas)));
            fields.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        }
        self
    }
}

impl Reading {
    /// The request with these headers of Anthropic's besides: whose it is, say. What they change is not
    /// known here.
    #[must_use]
    pub fn with_headers<'a>(mut self, headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        if let Json::Object(fields) = &mut self.request.scope {
            fields.extend(
                headers
                    .into_iter()
                    .map(|(name, value)| (scope::marked(name), Json::String(value.to_owned()))),
            );
            fields.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        }
        self
    }

    /// The request under this version of the API, as the `anthropic-version` header names it. The
    /// known ones differ in what they allow and not in what is answered, as long as the request says
    /// nothing that only Anthropic's dialect has; any other may mean another answer.
    #[must_use]
    pub fn under_version(mut self, version: Option<&str>) -> Self {
        let is_own = matches!(self.passage, Passage::Own(_));
        let tells = |version: &&str| is_own || !VERSIONS.contains(version);
        if let Some(version) = version.map(str::trim).filter(tells)
            && let Json::Object(fields) = &mut self.request.scope
        {
            fields.push((scope::marked("anthropic-version"), Json::String(version.to_owned())));
            fields.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        }
        self
    }
}

/// Reads `body`, nested at most `depth` deep.
pub fn parse(body: Bytes, depth: usize) -> Result<ChatRequest, BadRequest> {
    Ok(read(body, depth)?.request)
}

/// Reads `body` as [`parse`] does, and says where it may go.
pub fn read(body: Bytes, depth: usize) -> Result<Reading, BadRequest> {
    let fields = fields(&body, depth)?;
    let model = model(&fields)?;
    let stream = boolean(find(&fields, "stream"), "stream")?;
    if let Some(system) = find(&fields, "system") {
        check_content(system, &|| "system".to_owned())?;
    }
    check_messages(find(&fields, "messages"), |content, at| {
        check_content(content.ok_or_else(|| missing(at()))?, at)
    })?;
    let model_span = model_span(&body);
    let is_stateful =
        STATEFUL.iter().any(|name| find(&fields, name).is_some_and(|value| *value != Json::Null));
    let (scope, question, passage) = scope::split(fields);
    let request = ChatRequest {
        api: Api::Messages,
        body,
        model_span,
        model,
        scope,
        question,
        is_stateful,
        stream,
        include_usage: true,
        ..ChatRequest::default()
    };
    Ok(Reading { request, passage })
}

fn check_content(content: &Json, at: &dyn Fn() -> String) -> Result<(), BadRequest> {
    let blocks = match content {
        Json::Null | Json::String(_) => return Ok(()),
        Json::Array(blocks) => blocks,
        other => return Err(wrong(&at(), "a string or an array of blocks", other)),
    };
    for (index, block) in blocks.iter().enumerate() {
        let at = || format!("{}[{index}]", at());
        if !matches!(block, Json::Object(_)) {
            return Err(wrong(&at(), "an object", block));
        }
        let is_text = block.get("type").and_then(Json::as_str) == Some("text");
        if is_text && block.get("text").and_then(Json::as_str).is_none() {
            let param = format!("{}.text", at());
            return Err(BadRequest::at(
                param,
                format!("{} is a text block: its text must be a string", at()),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

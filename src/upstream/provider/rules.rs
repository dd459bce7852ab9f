//! Answers from a file of questions and answers, without any LLM.
//!
//! Stands in for one on a machine that has no key yet, and later as the last resort. The match
//! is simple and always the same: first an entry whose question or alias has the same words in
//! the same order, then the one that shares the most telling words with what was asked, if that
//! is more than half of those in either. Otherwise it says that it does not know.

mod words;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use figment::Figment;
use figment::providers::{Format, Toml};
use futures_util::stream;
use serde::Deserialize;
use uuid::Uuid;

use super::Provider;
use super::pieces::{self, Reader};
use crate::chat::{Api, ChatReply, ChatRequest, Extra, Finish, Question, Usage, about_tokens};
use crate::clock::Clock;
use crate::config::Secret;
use crate::dialect::Dialect;
use crate::dialect::cross::Inexpressible;
use crate::dialect::openai::reply::Stamp;
use crate::upstream::{Body, UpstreamError, Whole};
use words::Words;

/// The questions and answers that are built in.
pub const DEFAULT_FAQ: &str = include_str!("../../../config/faq.toml");

/// What is said when nothing matches.
const NO_ANSWER: &str = "I have no answer to that in my FAQ. No LLM is connected: I only know the questions in \
                         config/faq.toml, for example \"What is Refrain?\".";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Faq {
    faq: Vec<FaqEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FaqEntry {
    question: String,
    #[serde(default)]
    aliases: Vec<String>,
    answer: String,
}

/// A provider that answers from a file.
pub struct Rules {
    name: Arc<str>,
    entries: Vec<Entry>,
    clock: Clock,
}

struct Entry {
    phrases: Vec<Words>,
    answer: String,
}

impl Rules {
    /// Reads `file`, or the built-in questions. Fails with what is wrong with the file.
    pub fn try_new(name: &str, file: Option<&Path>, clock: Clock) -> Result<Self, String> {
        let text = match file {
            None => DEFAULT_FAQ.to_owned(),
            Some(path) => {
                std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?
            }
        };
        let place = file.map_or("config/faq.toml".into(), Path::to_string_lossy);
        let faq: Faq =
            Figment::from(Toml::string(&text)).extract().map_err(|error| format!("{place}: {error}"))?;
        let entries = faq.faq.iter().map(Entry::new).collect::<Vec<_>>();
        if entries.is_empty() {
            return Err(format!("{place}: no [[faq]] in it"));
        }
        Ok(Self { name: name.into(), entries, clock })
    }

    fn answer(&self, question: &str) -> &str {
        let asked = Words::of(question);
        let same = self.entries.iter().find(|entry| entry.phrases.contains(&asked));
        let entry = same.or_else(|| {
            // The first of several equals, so that the order of the file decides.
            let mut best: Option<(&Entry, f64)> = None;
            for entry in &self.entries {
                let overlap = entry.overlap(&asked);
                if overlap > 0.5 && best.is_none_or(|(_, highest)| overlap > highest) {
                    best = Some((entry, overlap));
                }
            }
            best.map(|(entry, _)| entry)
        });
        entry.map_or(NO_ANSWER, |entry| &entry.answer)
    }

    fn reply(&self, request: &ChatRequest, model: &str) -> ChatReply {
        let question = request.question.as_ref().map(Question::text).unwrap_or_default();
        let text = self.answer(&question).to_owned();
        let usage =
            Usage { prompt_tokens: about_tokens(&question) + 7, completion_tokens: about_tokens(&text) };
        ChatReply {
            model: model.to_owned(),
            text,
            finish: Finish::Stop,
            usage: Some(usage),
            extra: Extra::default(),
        }
    }
}

impl Entry {
    fn new(entry: &FaqEntry) -> Self {
        let phrases = std::iter::once(&entry.question).chain(&entry.aliases).map(|text| Words::of(text));
        Self { phrases: phrases.collect(), answer: entry.answer.trim().to_owned() }
    }

    fn overlap(&self, asked: &Words) -> f64 {
        self.phrases.iter().map(|phrase| phrase.overlap(asked)).fold(0.0, f64::max)
    }
}

#[async_trait]
impl Provider for Rules {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn takes(&self, request: &ChatRequest) -> Result<(), Inexpressible> {
        let only = match request.api {
            Api::Chat | Api::Messages => return Ok(()),
            Api::Embeddings => "asks for embeddings, and rules give none",
            Api::CountTokens => "asks for a count of tokens, and rules count none",
            Api::Responses => "says what rules have no answer to",
        };
        Err(Inexpressible::new("the request", only))
    }

    async fn complete(
        &self,
        request: &ChatRequest,
        model: &str,
        _credential: Option<&Secret>,
    ) -> Result<Body, UpstreamError> {
        let reply = self.reply(request, model);
        let dialect = Dialect::from(request.api);
        let id = dialect.id(Uuid::new_v4());
        let stamp = Stamp { id: &id, created: self.clock.now().as_secs(), cached: false };
        if !request.stream {
            let bytes = dialect.render_whole(&reply, &stamp);
            return Ok(Body::Whole(Whole::new(bytes, Some(reply))));
        }
        // Usage always: the gateway keeps it from callers who did not ask for it.
        let events = stream::iter(dialect.render_events(reply, &stamp, true).map(Ok));
        Ok(Body::Stream(pieces::pieces(Reader::new(self.name.clone(), dialect, None), events)))
    }
}

#[cfg(test)]
mod tests;

//! One call past all policies: whether a target answers, asked before callers find out.
//!
//! On most days nobody sees that the second key has no money left, or that the model to fall back
//! to is gone: the policies go around it. So each target can be asked with each key, without a
//! breaker, limit, retry or fallback in between.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::endpoint::Endpoint;
use super::fault::{self, Class};
use super::timers::Timers;
use super::{Upstream, UpstreamError};
use crate::chat::ChatRequest;
use crate::config::Secret;

/// Tokens that the answer may have. One would do, but some models refuse to begin with fewer.
const TOKENS: u32 = 16;

/// Of a provider's own words this much is shown, in bytes.
const MAX_SAID: usize = 300;

/// A target, and what there is to find out about it.
pub enum Trial {
    /// It can be called.
    Call(Probe),
    /// Callers name the model (the `"*"` route), so there is none to ask for.
    AnyModel,
    /// This model answers from a file that was read at the start.
    File(Arc<str>),
}

/// A call to one target with one key, made as often as [`Probe::call`] is.
pub struct Probe {
    endpoint: Arc<Endpoint>,
    model: Arc<str>,
    key: Option<usize>,
    timers: Timers,
}

impl Upstream {
    /// What there is to try of each provider that is there: each of its models with each of its keys,
    /// once however many routes lead there.
    pub fn trials(&self) -> impl Iterator<Item = (&str, Vec<Trial>)> {
        self.endpoints.iter().map(|endpoint| (&**endpoint.name(), self.trials_of(endpoint)))
    }

    fn trials_of(&self, endpoint: &Arc<Endpoint>) -> Vec<Trial> {
        let chosen = self.routes.choices().filter(|(choice, _)| Arc::ptr_eq(&choice.endpoint, endpoint));
        let models: BTreeSet<Option<Arc<str>>> = chosen.map(|(_, model)| model).collect();
        let mut trials = Vec::new();
        for model in models {
            match model {
                None => trials.push(Trial::AnyModel),
                Some(model) if endpoint.is_rules => trials.push(Trial::File(model)),
                Some(model) => trials.extend(self.probes(endpoint, &model).map(Trial::Call)),
            }
        }
        trials
    }

    fn probes(&self, endpoint: &Arc<Endpoint>, model: &Arc<str>) -> impl Iterator<Item = Probe> {
        let keys = endpoint.keys.all().len();
        (0..keys.max(1)).map(move |key| Probe {
            endpoint: Arc::clone(endpoint),
            model: Arc::clone(model),
            key: (keys > 0).then_some(key),
            timers: self.timers,
        })
    }
}

impl Probe {
    /// The model's name at the provider.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The key's place among those of the provider that are set, from 0; `None` without a key.
    pub fn key(&self) -> Option<usize> {
        self.key
    }

    /// Asks for a word or two, and gives how long the first content took: connecting included, as
    /// it is for a caller. Ends `within` that time, or sooner where the timers of the config do.
    /// What it says about the target and the key is not remembered.
    ///
    /// An answer that is cut before it says anything counts: the model was there.
    pub async fn call(&self, within: Duration) -> Result<Duration, UpstreamError> {
        match self.ask("max_tokens", within).await {
            // Reasoning models know the limit by another name only.
            Err(error) if self.refused_for(&error, "max_completion_tokens") => {
                self.ask("max_completion_tokens", within).await
            }
            answer => answer,
        }
    }

    async fn ask(&self, limit: &str, within: Duration) -> Result<Duration, UpstreamError> {
        let begun = Instant::now();
        let request = question(&self.model, limit);
        let provider = &self.endpoint.provider;
        let call = provider.complete(&request, &self.model, self.secret());
        match self.timers.watch(provider.name(), begun + within, within, call).await {
            Err(error) if !self.refused_for(&error, "output limit was reached") => Err(error),
            Ok(_) | Err(_) => Ok(begun.elapsed()),
        }
    }

    fn secret(&self) -> Option<&Secret> {
        self.endpoint.keys.all().get(self.key?)
    }

    /// Whether the provider found fault with the question, in these words.
    fn refused_for(&self, error: &UpstreamError, words: &str) -> bool {
        error.fault().class == Class::InvalidRequest
            && self.said(error).is_some_and(|said| said.contains(words))
    }

    /// What the provider said in place of an answer: one line without control characters, of at most
    /// 300 bytes. The key is never in it, though some providers repeat the one that they refuse.
    pub fn said(&self, error: &UpstreamError) -> Option<String> {
        let UpstreamError::Status { body, .. } = error else { return None };
        let mut said = fault::message(body)?;
        if let Some(key) = self.secret() {
            said = said.replace(key.expose(), "[key]");
        }
        let line: Vec<_> = said.split(|c: char| c.is_control() || c.is_whitespace()).collect();
        let mut line = line.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        if line.len() > MAX_SAID {
            line.truncate(line.floor_char_boundary(MAX_SAID));
            line.push('…');
        }
        (!line.is_empty()).then_some(line)
    }
}

/// A question that is answered by a word.
fn question(model: &str, limit: &str) -> ChatRequest {
    let name = json!(model).to_string();
    let body = format!(
        r#"{{"model":{name},"messages":[{{"role":"user","content":"Say OK."}}],"{limit}":{TOKENS},"stream":true}}"#
    );
    let start = r#"{"model":"#.len();
    ChatRequest {
        body: body.into(),
        model_span: start..start + name.len(),
        model: model.to_owned(),
        stream: true,
        ..ChatRequest::default()
    }
}

#[cfg(test)]
mod tests;

//! What would happen to a request, and why; nothing is sent upstream and nothing is counted.

use serde::Serialize;

use super::call::{Route, fuzzy};
use super::{Call, Gateway};
use crate::cache::Entry;
use crate::cache::key::{ExactKey, Scope};
use crate::cache::semantic::{Asked, Judged, best};
use crate::cache::verify::Verdict;
use crate::chat::Question;

/// The answer to "what would happen".
#[derive(Clone, Debug, Serialize)]
pub struct Explained {
    /// `exact`, `semantic`, `miss` or `bypass`.
    pub outcome: &'static str,
    /// Why, in words.
    pub why: String,
    /// The namespace it would be looked up in.
    pub namespace: String,
    /// The tenant, as the hash that stands for the credential.
    pub tenant: String,
    /// The namespace's epoch.
    pub epoch: u64,
    /// The model asked for.
    pub model: String,
    /// The scope's digest: requests that differ in it never meet.
    pub scope: String,
    /// The exact key, and the entry's id.
    pub id: ExactKey,
    /// The question's text.
    pub question: Option<String>,
    /// The encoder that embeds the question.
    pub embedder: Option<String>,
    /// The similarity from which on a question may be the same.
    pub threshold: Option<f32>,
    /// The nearest stored questions of the scope, nearest first.
    pub candidates: Vec<ExplainedCandidate>,
}

/// A stored question, and what is thought of it.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedCandidate {
    /// The entry's id.
    pub id: ExactKey,
    /// Its question.
    pub question: String,
    /// Cosine similarity to the question asked.
    pub similarity: f32,
    /// That one answer serves both, by the encoder's head; `null` when it was not asked.
    pub probability: Option<f32>,
    /// `same`, or the stage that refuses it.
    pub verdict: &'static str,
    /// Whether it may still be served: in time, and not purged.
    pub servable: bool,
    /// Its age in seconds.
    pub age: u64,
    /// The seconds it may still be served.
    pub ttl: u64,
}

impl Explained {
    fn add(&mut self, why: std::fmt::Arguments<'_>) {
        self.why += &why.to_string();
    }
}

impl Gateway {
    /// Explains what [`Gateway::answer`] would do with this call now.
    pub async fn explain(&self, call: &Call) -> Explained {
        let scope = self.scope(call);
        let id = ExactKey::new(&scope, call.request.question.as_ref());
        let mut explained = Explained {
            outcome: "miss",
            why: String::new(),
            namespace: call.namespace.name().to_string(),
            tenant: call.tenant.as_str().to_owned(),
            epoch: scope.partition.epoch,
            model: call.request.model.clone(),
            scope: scope.digest.to_hex(),
            id,
            question: call.request.question.as_ref().map(Question::text),
            embedder: None,
            threshold: None,
            candidates: Vec::new(),
        };
        match Route::of(call, &self.switched()) {
            Route::Bypass(reason) => {
                explained.outcome = "bypass";
                explained.why = format!("the cache is passed by: {reason}");
                return explained;
            }
            Route::Nowhere => {
                "only-if-cached together with what passes the cache by: refused"
                    .clone_into(&mut explained.why);
                return explained;
            }
            Route::Refresh => {
                "no-cache: asked upstream, and stored".clone_into(&mut explained.why);
                return explained;
            }
            Route::Cache | Route::CacheOnly => {}
        }
        if self.exact(&id, call).is_some() {
            explained.outcome = "exact";
            "the same request was answered before, and the answer is in memory"
                .clone_into(&mut explained.why);
            return explained;
        }
        match self.parts.store.get(&id).await {
            Ok(Some(entry)) if entry.scope == scope && self.serves(&entry, call) => {
                explained.outcome = "exact";
                "the same request was answered before, and the answer is in the store"
                    .clone_into(&mut explained.why);
                return explained;
            }
            Ok(_) => {}
            Err(error) => explained.why = format!("the store cannot be read ({error}); "),
        }
        self.explain_semantic(call, &scope, &mut explained).await;
        explained
    }

    async fn explain_semantic(&self, call: &Call, scope: &Scope, explained: &mut Explained) {
        let question = match fuzzy(call, &self.switched()) {
            Ok(question) => question,
            Err(reason) => {
                explained.add(format_args!("the semantic layer is passed by: {reason}"));
                return;
            }
        };
        let embedding = match self.parts.semantic.encoders().embed(&question).await {
            Ok(embedding) => embedding,
            Err(error) => {
                explained.add(format_args!("the semantic layer is passed by: {error}"));
                return;
            }
        };
        let now = self.parts.clock.now();
        let matching = &call.namespace.settings().matching;
        let threshold = self.parts.semantic.verifier().threshold(&embedding, matching);
        explained.embedder = Some(embedding.embedder.to_string());
        explained.threshold = Some(threshold);
        let serves = |entry: &Entry| self.serves(entry, call);
        let asked = Asked { scope, question: &question, embedding: &embedding, matching };
        let judged = self.parts.semantic.judge(asked, &serves).await;
        let judged = match judged {
            Ok(judged) => judged,
            Err(error) => {
                explained.add(format_args!("the semantic layer is passed by: {error}"));
                return;
            }
        };
        let hit = best(&judged);
        let shown = |judged: &Judged| {
            let entry: &Entry = &judged.candidate.entry;
            ExplainedCandidate {
                id: entry.key,
                question: entry.question.clone(),
                similarity: judged.candidate.similarity,
                probability: judged.probability,
                verdict: match judged.verdict {
                    Verdict::Same => "same",
                    Verdict::Different(refusal) => refusal.label(),
                },
                servable: judged.servable,
                age: entry.age(now).as_secs(),
                ttl: entry.time_to_live(now).as_secs(),
            }
        };
        explained.candidates = judged.iter().map(shown).collect();
        let why = match (hit, explained.candidates.first()) {
            (Some(index), _) => {
                explained.outcome = "semantic";
                format!("the same question in other words: candidate {}", index + 1)
            }
            (None, None) => "no question was stored in this scope".to_owned(),
            (None, Some(nearest)) if nearest.verdict == "same" => {
                "the nearest question is the same, but its answer is too old, or purged".to_owned()
            }
            (None, Some(nearest)) => format!(
                "the nearest question is refused by {} (similarity {:.3}, threshold {threshold:.3})",
                nearest.verdict, nearest.similarity
            ),
        };
        explained.why += &why;
    }
}

//! When are two requests the same?
//!
//! The key has three parts. The **partition** (namespace, tenant, epoch) and the **scope**
//! (everything that could change the answer except the fuzzy text) are hard: equal or no hit.
//! The **question** is the text of the last user turn: equal for an exact hit, verified to be
//! the same for a semantic one. Which fields of a request reach the scope is the dialect's
//! deny-list; what a namespace leaves out on purpose is its `scope.ignore`.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::follow_up::is_follow_up;
use crate::chat::json::{Json, Number};
use crate::chat::{ChatRequest, Question, plain_name};

/// Whose answers these are: no hit ever crosses it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Partition {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The caller.
    pub tenant: Tenant,
    /// The namespace's epoch; a purge of the whole namespace begins a new one.
    pub epoch: u64,
}

/// A caller, known by a hash of the credential only.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tenant(Arc<str>);

impl Tenant {
    /// Callers without credentials share one tenant.
    pub fn anonymous() -> Self {
        Self("anonymous".into())
    }

    /// The tenant that holds this credential.
    pub fn of_credential(credential: &str) -> Self {
        Self(hex::encode(&Sha256::digest(credential)[..16]).into())
    }

    /// The tenant that [`Tenant::as_str`] shows as `text`; for operators.
    pub fn known_as(text: &str) -> Self {
        Self(text.into())
    }

    /// The hash, as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Partition and scope: the hard part of the key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scope {
    /// The partition.
    pub partition: Partition,
    /// SHA-256 over partition and canonical scope, so that one match filters both.
    pub digest: Sha256Digest,
}

/// Namespace settings that loosen the scope on purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loosening {
    /// Earlier turns other than system ones do not count, but for a question that leans on them.
    pub history: bool,
    /// Top-level fields that do not count.
    pub fields: Vec<String>,
}

impl Loosening {
    /// From `scope.ignore`: `history`, or names of top-level fields.
    pub fn new(ignore: &[String]) -> Self {
        let (history, fields): (Vec<_>, Vec<_>) = ignore.iter().cloned().partition(|name| name == "history");
        Self { history: !history.is_empty(), fields }
    }
}

impl Scope {
    /// The scope of a request in a partition. `route` names who would serve it: another provider
    /// or model behind the same name gives other answers.
    pub fn new(partition: Partition, request: &ChatRequest, route: &str, loosening: &Loosening) -> Self {
        let mut hash = Canonical::new("refrain scope 1");
        hash.text(&partition.namespace);
        hash.text(partition.tenant.as_str());
        hash.number(partition.epoch);
        if !loosening.fields.iter().any(|name| name == "model") {
            hash.text(&request.model);
            hash.text(route);
        }
        // What leans on the history is another question in another one; so is a last turn that is no
        // question: an answer's beginning, a tool's result, a picture.
        let stands_alone = |question: &Question| !leans_on_history(question);
        let history = loosening.history && request.question.as_ref().is_some_and(stands_alone);
        hash.top_level(&request.scope, loosening, !history);
        if let Some(context) = &request.context {
            hash.text("context");
            hash.json(context);
        }
        Self { partition, digest: hash.finish() }
    }
}

impl Scope {
    /// Where people's verdicts lie, out of the reach of every namespace's purges. No request has
    /// this scope.
    pub(super) fn of_verdicts() -> Self {
        let partition = Partition { namespace: ".verdicts".into(), tenant: Tenant::anonymous(), epoch: 0 };
        Self { partition, digest: Canonical::new("refrain verdicts 1").finish() }
    }
}

/// Scope and question together; an entry's id in every layer.
///
/// The first 128 bits of a SHA-256, formed as a UUID because that is what Qdrant takes as a
/// point's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExactKey(Uuid);

impl ExactKey {
    /// The key of what is said of two questions of a namespace.
    pub(super) fn of_pair(namespace: &str, first: &str, second: &str) -> Self {
        let mut hash = Canonical::new("refrain pair 1");
        for text in [namespace, first, second] {
            hash.text(text);
        }
        Self::from_digest(&hash.finish())
    }

    fn from_digest(digest: &Sha256Digest) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(&digest.0[..16]);
        Self(uuid::Builder::from_custom_bytes(id).into_uuid())
    }

    /// The key of this question in this scope; `None` stands for a turn without text.
    pub fn new(scope: &Scope, question: Option<&Question>) -> Self {
        let mut hash = Canonical::new("refrain key 1");
        hash.bytes(&scope.digest.0);
        for part in question.map_or(&[][..], Question::parts) {
            hash.text(part);
        }
        Self::from_digest(&hash.finish())
    }

    /// The id as a UUID.
    pub fn as_uuid(&self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for ExactKey {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for ExactKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A SHA-256, hexadecimal wherever it is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha256Digest([u8; 32]);

impl Sha256Digest {
    /// The digest in hexadecimal.
    pub fn to_hex(&self) -> String {
        hex::encode(self.0)
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl Serialize for Sha256Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for Sha256Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut digest = [0; 32];
        hex::decode_to_slice(&text, &mut digest).map_err(serde::de::Error::custom)?;
        Ok(Self(digest))
    }
}

fn leans_on_history(question: &Question) -> bool {
    is_follow_up(&question.text())
}

/// Hashes values so that no two different sequences of them feed the hash the same bytes:
/// each is written as a kind, a length and its content.
struct Canonical(Sha256);

impl Canonical {
    fn new(domain: &str) -> Self {
        let mut hash = Self(Sha256::new());
        hash.text(domain);
        hash
    }

    fn piece(&mut self, kind: u8, length: usize) {
        let mut head = [kind; 9];
        head[1..].copy_from_slice(&(length as u64).to_le_bytes());
        self.0.update(head);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.piece(b'b', bytes.len());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.piece(b's', text.len());
        self.0.update(text);
    }

    fn number(&mut self, number: u64) {
        self.json(&Json::Number(Number::Integer(number.into())));
    }

    fn top_level(&mut self, scope: &Json, loosening: &Loosening, history: bool) {
        let Json::Object(fields) = scope else { return self.json(scope) };
        for (name, value) in fields {
            if loosening.fields.iter().any(|field| field == plain_name(name)) {
                continue;
            }
            self.text(name);
            match value {
                Json::Array(turns) if !history && name == "messages" => self.without_history(turns),
                value => self.json(value),
            }
        }
    }

    /// Instructions and the last turn, without the conversation between them.
    fn without_history(&mut self, turns: &[Json]) {
        let Some((last, earlier)) = turns.split_last() else { return };
        for turn in earlier {
            if matches!(turn.get("role").and_then(Json::as_str), Some("system" | "developer")) {
                self.json(turn);
            }
        }
        self.json(last);
    }

    fn json(&mut self, json: &Json) {
        match json {
            Json::Null => self.piece(b'0', 0),
            Json::Bool(value) => self.piece(b'?', usize::from(*value)),
            Json::Number(Number::Integer(value)) => {
                self.piece(b'i', 16);
                self.0.update(value.to_le_bytes());
            }
            Json::Number(Number::Double(value)) => {
                self.piece(b'd', 8);
                self.0.update(value.to_bits().to_le_bytes());
            }
            Json::String(text) => self.text(text),
            Json::Array(items) => {
                self.piece(b'[', items.len());
                for item in items {
                    self.json(item);
                }
            }
            Json::Object(fields) => {
                self.piece(b'{', fields.len());
                for (name, value) in fields {
                    self.text(name);
                    self.json(value);
                }
            }
        }
    }

    fn finish(self) -> Sha256Digest {
        Sha256Digest(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests;

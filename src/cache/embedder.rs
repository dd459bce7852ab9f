//! The port to the embedding model, and the choice among several of them.

pub mod coverage;
mod encoders;
#[cfg(test)]
mod fake;
pub mod lazy;
pub mod memo;
pub mod onnx;
mod tokens;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use encoders::{Encoder, Encoders};
pub use tokens::{Projection, Tokens};

/// Names model, revision, pooling and prefix: all that a vector depends on besides its text.
/// Part of every stored vector's collection, so that changing the model can never mix vectors.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EmbedderId(Arc<str>);

impl EmbedderId {
    /// Only letters, digits, `-`, `_` and `.` stay; anything else becomes `-`, because the id
    /// is part of folder and collection names.
    pub fn new(name: &str) -> Self {
        let clean = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        Self(name.chars().map(clean).collect::<String>().into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EmbedderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text's vector, of unit length, beside the embedder that made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// Who made it.
    pub embedder: EmbedderId,
    /// Unit length, so that the dot product is the cosine.
    pub vector: Arc<[f32]>,
    /// What the embedder's head compares; `None` without a head.
    pub tokens: Option<Arc<Tokens>>,
}

impl Embedding {
    /// A vector by an embedder without a head.
    pub fn new(embedder: EmbedderId, vector: impl Into<Arc<[f32]>>) -> Self {
        Self { embedder, vector: vector.into(), tokens: None }
    }
}

/// Turns text into a vector.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// What the vectors depend on.
    fn id(&self) -> &EmbedderId;

    /// The vectors' length.
    fn dimensions(&self) -> usize;

    /// The vector of the whole text. Dropping the future leaves nothing running on the caller's
    /// account: work not yet begun is skipped.
    async fn embed(&self, text: &str) -> Result<Embedding, EmbedError>;

    /// What tells two near texts apart, where there is such a thing for this embedder.
    fn head(&self) -> Option<&dyn Head> {
        None
    }
}

/// A learned judge of pairs, that goes by what the embedder says of each of their tokens.
#[async_trait]
pub trait Head: Send + Sync {
    /// The probability that one answer serves both texts, 0 to 1, given their cosine similarity.
    /// Symmetric. Dropping the future leaves nothing running on the caller's account.
    async fn compare(
        &self,
        asked: &Arc<Tokens>,
        stored: &Arc<Tokens>,
        similarity: f32,
    ) -> Result<f32, EmbedError>;
}

/// Why a text has no vector now. Never the caller's error: each is a miss with a reason.
#[derive(Clone, Debug, Error)]
pub enum EmbedError {
    /// No configured encoder covers this text: its language, its script, or a sign in it that
    /// the model does not know and would take for any other.
    #[error("no encoder covers this text")]
    NotCovered,
    /// The text is longer than the model's window; it is never cut.
    #[error("the text is longer than the model's window of {window} tokens")]
    TooLong {
        /// Tokens the model takes, prefix and special ones included.
        window: usize,
    },
    /// The model is being loaded; the text goes past the semantic layer meanwhile.
    #[error("the encoder is still loading")]
    Loading,
    /// The queue in front of the workers is full.
    #[error("the embedding queue is full")]
    Busy,
    /// No vector within `embedder.timeout`.
    #[error("no vector within the timeout")]
    TimedOut,
    /// The model failed.
    #[error("the encoder failed: {0}")]
    Failed(Arc<str>),
}

impl EmbedError {
    /// A word for headers, metrics and logs.
    pub fn label(&self) -> &'static str {
        match self {
            Self::NotCovered => "not_covered",
            Self::TooLong { .. } => "too_long",
            Self::Loading => "encoder_loading",
            Self::Busy => "embed_busy",
            Self::TimedOut => "embed_timeout",
            Self::Failed(_) => "embed_failed",
        }
    }
}

/// No tokenizer makes fewer tokens of natural language, blank pages aside.
const MOST_BYTES_PER_TOKEN: usize = 32;

/// Refuses, unread, what cannot fit into `window` tokens, so that a huge text costs nothing.
fn too_long(text: &str, window: usize) -> Result<(), EmbedError> {
    if text.len() / MOST_BYTES_PER_TOKEN > window { Err(EmbedError::TooLong { window }) } else { Ok(()) }
}

/// Why an encoder cannot be used. One sentence that says what to do.
#[derive(Clone, Debug, Error)]
pub enum LoadError {
    /// The ONNX Runtime library is missing, or not one that works here.
    #[error(
        "the ONNX Runtime library {} cannot be loaded ({reason}): run models/fetch, or set embedder.runtime",
        path.display()
    )]
    Runtime {
        /// The library.
        path: PathBuf,
        /// What the system says.
        reason: Arc<str>,
    },
    /// A file of the encoder is not there or cannot be read.
    #[error(
        "encoder {encoder}: {} cannot be read ({reason}): run models/fetch, or set embedder.folder",
        path.display()
    )]
    File {
        /// The encoder's name.
        encoder: Arc<str>,
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: Arc<str>,
    },
    /// The files are there, but no model can be made of them.
    #[error(
        "encoder {encoder}: {} holds no model that works ({reason}): run models/fetch --verify, or set \
         embedder.folder",
        folder.display()
    )]
    Model {
        /// The encoder's name.
        encoder: Arc<str>,
        /// Its folder.
        folder: PathBuf,
        /// What the library says.
        reason: Arc<str>,
    },
    /// The model runs, but its vectors are no good.
    #[error(
        "encoder {encoder} fails its self-test ({reason}): check encoders.{encoder}.pooling and prefix, or run \
         models/fetch --verify"
    )]
    SelfTest {
        /// The encoder's name.
        encoder: Arc<str>,
        /// What is wrong.
        reason: Arc<str>,
    },
    /// The encoder's verifier cannot be used.
    #[error(
        "encoder {encoder}: its verifier {place:?} cannot be used ({reason}): run models/fetch --verify, set \
         embedder.folder, name another in encoders.{encoder}.verifier.files, or leave that verifier out"
    )]
    Verifier {
        /// The encoder's name.
        encoder: Arc<str>,
        /// Where the verifier is.
        place: String,
        /// What is wrong.
        reason: Arc<str>,
    },
    /// The configuration names an encoder that it does not describe.
    #[error("embedder.models names {0:?}, which has no section [encoders]")]
    Unknown(Arc<str>),
}

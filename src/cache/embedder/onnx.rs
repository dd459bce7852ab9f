//! The adapter over `fastembed`: a model and its tokenizer from a folder, run by ONNX Runtime
//! in this process.
//!
//! A worker owns a session with one intra-op thread (more of them lose under concurrent
//! callers) and a tokenizer, since `fastembed` shares neither. Nothing is ever cut: text beyond
//! the window is refused. So is text with a sign that the tokenizer does not know: all such
//! signs look alike to the model, and 👍 and 👎 would be the same question.
//!
//! Memory (`examples/encoder_memory.rs`): the multilingual encoder adds about 300 MiB, most of it
//! its tokenizer, whose trie has a hash map for each of 600,000 nodes (190 MB by their size).
//! Weights that lie beside the model are mapped from their file; a model in one file is read
//! whole first, and the allocator may keep that room for a while.

mod head;
mod pool;
mod runtime;
mod self_test;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;

use async_trait::async_trait;
use fastembed::{
    AutoDevicePolicy, InitOptionsUserDefined, TextEmbedding, TokenizerFiles, UserDefinedEmbeddingModel,
};
use ort::environment::Environment;
use ort::ep::CPU;
use sha2::{Digest, Sha256};

use super::{EmbedError, Embedder, EmbedderId, Embedding, Head, LoadError, Tokens, too_long};
use crate::config::{self, Load, Pooling};
use head::{Head as HeadFiles, HeadSessions};
use pool::Pool;

/// Where ONNX Runtime looks for weights that lie beside the model; so it maps them into memory
/// instead of copying them.
const WEIGHTS_FOLDER: &str = "session.model_external_initializers_file_folder_path";

/// What `fastembed` reads as the tokenizer. It copies what it has read, which for a large
/// vocabulary takes 280 MB more; so the real one takes this one's place afterwards.
const STAND_IN: &[u8] = br#"{"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
    "post_processor": null, "decoder": null, "truncation": null, "padding": null,
    "model": {"type": "WordLevel", "unk_token": "", "vocab": {"": 0}}}"#;

/// An encoder that runs in this process.
pub struct OnnxEmbedder {
    id: EmbedderId,
    dimensions: usize,
    window: usize,
    prefix: String,
    has_head: bool,
    pool: Pool<Onnx>,
}

impl OnnxEmbedder {
    /// Loads the encoder `name`, tests it, and starts its workers. Blocks for up to seconds.
    pub fn try_new(
        name: &str,
        encoder: &config::Encoder,
        settings: &config::Embedder,
    ) -> Result<Self, LoadError> {
        let environment = runtime::environment(&settings.runtime)?;
        let folder = Folder::new(name, encoder, settings);
        let id = folder.id(encoder)?;
        let head = encoder.verifier.as_ref().map(|verifier| HeadFiles::find(name, &id, &verifier.files));
        let head = head.transpose()?;
        let open = || folder.open(encoder, &environment, head.as_ref());
        let mut first = open()?;
        let dimensions =
            self_test::run(encoder.covers, |text| first.vector(&format!("{}{text}", encoder.prefix)))
                .map_err(|reason| LoadError::SelfTest { encoder: name.into(), reason: reason.into() })?;
        if let Some(head) = &head {
            first.check_head(head, &encoder.prefix)?;
        }
        let mut workers = vec![first];
        while workers.len() < worker_count(settings.workers, encoder.load) {
            workers.push(open()?);
        }
        let pool = Pool::try_new(workers, settings.queue, settings.timeout)
            .map_err(|error| folder.unusable(&error))?;
        let (window, prefix) = (encoder.window, encoder.prefix.clone());
        Ok(Self { id, dimensions, window, prefix, has_head: head.is_some(), pool })
    }
}

#[async_trait]
impl Embedder for OnnxEmbedder {
    fn id(&self) -> &EmbedderId {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    async fn embed(&self, text: &str) -> Result<Embedding, EmbedError> {
        too_long(text, self.window)?;
        let text = format!("{}{text}", self.prefix);
        let (vector, tokens) = self.pool.run(move |model| model.embed(&text)).await?;
        self_test::check(&vector, self.dimensions).map_err(|reason| EmbedError::Failed(reason.into()))?;
        Ok(Embedding { embedder: self.id.clone(), vector: vector.into(), tokens: tokens.map(Arc::new) })
    }

    fn head(&self) -> Option<&dyn Head> {
        self.has_head.then_some(self)
    }
}

#[async_trait]
impl Head for OnnxEmbedder {
    async fn compare(
        &self,
        asked: &Arc<Tokens>,
        stored: &Arc<Tokens>,
        similarity: f32,
    ) -> Result<f32, EmbedError> {
        let (asked, stored) = (Arc::clone(asked), Arc::clone(stored));
        let probability = self.pool.run(move |model| model.compare(&asked, &stored, similarity)).await?;
        if probability.is_nan() {
            Err(EmbedError::Failed("the head gave no number".into()))
        } else {
            Ok(probability)
        }
    }
}

/// Zero stands for one worker for every two cores; for one worker where the encoder is lazy,
/// because its memory is what made it so.
fn worker_count(configured: usize, load: Load) -> usize {
    match (configured, load) {
        (0, Load::Lazy) => 1,
        (0, Load::Start) => (available_parallelism().map_or(1, usize::from) / 2).max(1),
        (configured, _) => configured,
    }
}

/// What a worker owns.
struct Onnx {
    model: TextEmbedding,
    window: usize,
    /// The token that stands for all the tokenizer does not know.
    unknown: Option<u32>,
    pooling: Pooling,
    head: Option<HeadSessions>,
}

/// A text's vector, and its tokens where there is a head.
type Encoded = (Vec<f32>, Option<Tokens>);

impl Onnx {
    /// The vector of the whole text, of unit length, and what the head compares of it.
    fn embed(&mut self, text: &str) -> Result<Encoded, EmbedError> {
        let ids = self.ids(text)?;
        let Some(head) = &mut self.head else { return Ok((self.vector(text)?, None)) };
        let output = self.model.transform([text], None).map_err(|error| failed(&error))?;
        let batches = output.into_raw();
        let outputs = batches.first().map(|batch| &*batch.outputs).unwrap_or_default();
        let named = outputs.iter().find(|(name, _)| name == "last_hidden_state").or(outputs.first());
        let (_, value) = named.ok_or_else(|| failed(&"the model gave nothing"))?;
        let (_, hidden) = value.try_extract_tensor::<f32>().map_err(|error| failed(&error))?;
        let vector = pooled(hidden, ids.len(), self.pooling);
        Ok((vector, Some(head.project(&ids, hidden)?)))
    }

    fn compare(&mut self, asked: &Tokens, stored: &Tokens, similarity: f32) -> Result<f32, EmbedError> {
        let head = self.head.as_mut().ok_or_else(|| failed(&"there is no head"))?;
        head.compare(asked, stored, similarity)
    }

    /// Fails when the head does not answer its references as it did when it was trained.
    fn check_head(&mut self, files: &HeadFiles, prefix: &str) -> Result<(), LoadError> {
        let unusable = |error: EmbedError| files.unusable(error.to_string());
        for reference in &files.references {
            let mut tokens = |text: &str| -> Result<Tokens, EmbedError> {
                let (_, tokens) = self.embed(&format!("{prefix}{text}"))?;
                tokens.ok_or_else(|| failed(&"there is no head"))
            };
            let (a, b) = (tokens(&reference.a).map_err(unusable)?, tokens(&reference.b).map_err(unusable)?);
            let head = self.head.as_mut().ok_or_else(|| unusable(failed(&"there is no head")))?;
            files.check(reference, head.logit(&a, &b).map_err(unusable)?)?;
        }
        Ok(())
    }

    fn vector(&mut self, text: &str) -> Result<Vec<f32>, EmbedError> {
        self.ids(text)?;
        let vectors = self.model.embed([text], None).map_err(|error| failed(&error))?;
        vectors.into_iter().next().ok_or_else(|| failed(&"the model gave no vector"))
    }

    /// The text's tokens, if the model reads and knows them all.
    fn ids(&self, text: &str) -> Result<Vec<u32>, EmbedError> {
        let tokens = self.model.tokenizer.encode(text, true).map_err(|error| failed(&error))?;
        let ids = tokens.get_ids().to_vec();
        if ids.len() > self.window {
            return Err(EmbedError::TooLong { window: self.window });
        }
        if self.unknown.is_some_and(|unknown| ids.contains(&unknown)) {
            return Err(EmbedError::NotCovered);
        }
        Ok(ids)
    }
}

fn failed(error: &dyn std::fmt::Display) -> EmbedError {
    EmbedError::Failed(error.to_string().into())
}

/// One vector of unit length for a text, from those of its tokens.
fn pooled(hidden: &[f32], tokens: usize, pooling: Pooling) -> Vec<f32> {
    let width = hidden.len() / tokens.max(1);
    let mut vector = match pooling {
        Pooling::Cls => hidden[..width].to_vec(),
        // Their sum points where their mean does.
        Pooling::Mean => hidden.chunks_exact(width.max(1)).fold(vec![0.0; width], |mut sum, token| {
            sum.iter_mut().zip(token).for_each(|(sum, value)| *sum += value);
            sum
        }),
    };
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    for value in &mut vector {
        *value /= length;
    }
    vector
}

/// The folder of an encoder's files.
struct Folder {
    encoder: Arc<str>,
    path: PathBuf,
}

impl Folder {
    fn new(name: &str, encoder: &config::Encoder, settings: &config::Embedder) -> Self {
        let path = encoder.folder.clone().unwrap_or_else(|| settings.folder.join(name));
        Self { encoder: name.into(), path }
    }

    /// The name, the pooling, and a digest of all else that a vector depends on.
    fn id(&self, encoder: &config::Encoder) -> Result<EmbedderId, LoadError> {
        let mut digest = Sha256::new();
        for file in self.weights()?.iter().map(String::as_str).chain(["tokenizer.json"]) {
            digest.update(file);
            let path = self.path.join(file);
            let mut content = File::open(&path).map_err(|error| self.unreadable(&path, &error))?;
            std::io::copy(&mut content, &mut digest).map_err(|error| self.unreadable(&path, &error))?;
        }
        digest.update(&encoder.prefix);
        let pooling = match encoder.pooling {
            Pooling::Cls => "cls",
            Pooling::Mean => "mean",
        };
        let digest = hex::encode(&digest.finalize()[..4]);
        Ok(EmbedderId::new(&format!("{}-{pooling}-{digest}", self.encoder)))
    }

    /// The model's file, and those beside it that hold its weights.
    fn weights(&self) -> Result<Vec<String>, LoadError> {
        let names = std::fs::read_dir(&self.path)
            .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>, _>>())
            .map_err(|error| self.unreadable(&self.path, &error))?;
        let mut names: Vec<String> = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
        names.retain(|name| name.starts_with("model.onnx"));
        names.sort();
        Ok(names)
    }

    /// A session and a tokenizer for one worker.
    fn open(
        &self,
        encoder: &config::Encoder,
        environment: &Environment,
        head: Option<&HeadFiles>,
    ) -> Result<Onnx, LoadError> {
        let special = self.read("special_tokens_map.json")?;
        let unknown = unknown_token(&special);
        let files = TokenizerFiles {
            tokenizer_file: STAND_IN.to_vec(),
            config_file: self.read("config.json")?,
            special_tokens_map_file: special,
            tokenizer_config_file: self.read("tokenizer_config.json")?,
        };
        let pooling = match encoder.pooling {
            Pooling::Cls => fastembed::Pooling::Cls,
            Pooling::Mean => fastembed::Pooling::Mean,
        };
        let model = UserDefinedEmbeddingModel::new(self.read("model.onnx")?, files).with_pooling(pooling);
        let options = InitOptionsUserDefined::new()
            .with_environment(environment.clone())
            .with_execution_providers(vec![CPU::default().with_arena_allocator(false).build()])
            .with_intra_threads(1)
            .with_auto_device(AutoDevicePolicy::PreferCPU)
            .with_session_config(WEIGHTS_FOLDER, self.path.to_string_lossy());
        let mut model = TextEmbedding::try_new_from_user_defined(model, options)
            .map_err(|error| self.unusable(&error))?;
        model.tokenizer =
            serde_json::from_slice(&self.read("tokenizer.json")?).map_err(|error| self.unusable(&error))?;
        model.tokenizer.with_padding(None);
        model.tokenizer.with_truncation(None).map_err(|error| self.unusable(error.as_ref()))?;
        let unknown = unknown.and_then(|token| model.tokenizer.token_to_id(&token));
        let head = head.map(|head| head.open(environment)).transpose()?;
        Ok(Onnx { model, window: encoder.window, unknown, pooling: encoder.pooling, head })
    }

    fn read(&self, file: &str) -> Result<Vec<u8>, LoadError> {
        let path = self.path.join(file);
        std::fs::read(&path).map_err(|error| self.unreadable(&path, &error))
    }

    fn unreadable(&self, path: &Path, error: &std::io::Error) -> LoadError {
        LoadError::File {
            encoder: Arc::clone(&self.encoder),
            path: path.to_owned(),
            reason: in_one_line(error).into(),
        }
    }

    fn unusable(&self, error: &dyn std::error::Error) -> LoadError {
        LoadError::Model {
            encoder: Arc::clone(&self.encoder),
            folder: self.path.clone(),
            reason: in_one_line(error).into(),
        }
    }
}

/// `unk_token` of a `special_tokens_map.json`: a text, or an object that holds one.
fn unknown_token(special_tokens: &[u8]) -> Option<String> {
    let tokens: serde_json::Value = serde_json::from_slice(special_tokens).ok()?;
    let token = &tokens["unk_token"];
    token.as_str().or_else(|| token["content"].as_str()).map(str::to_owned)
}

/// A library's error without the line breaks and pages that some have.
fn in_one_line(error: &dyn std::error::Error) -> String {
    const MOST: usize = 300;
    let words: Vec<_> = error.to_string().split_whitespace().map(str::to_owned).collect();
    words.join(" ").chars().take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn workers_follow_the_cores_unless_set() {
        assert_eq!(worker_count(3, Load::Lazy), 3);
        assert_eq!(worker_count(3, Load::Start), 3);
        assert_eq!(worker_count(0, Load::Lazy), 1);
        assert!(worker_count(0, Load::Start) >= 1);
    }

    #[test]
    fn finds_the_unknown_token() {
        assert_eq!(unknown_token(br#"{"unk_token": "[UNK]"}"#).as_deref(), Some("[UNK]"));
        assert_eq!(unknown_token(br#"{"unk_token": {"content": "<unk>"}}"#).as_deref(), Some("<unk>"));
        assert_eq!(unknown_token(b"{}"), None);
        assert_eq!(unknown_token(b"no json"), None);
    }

    #[test]
    fn the_id_depends_on_all_that_a_vector_depends_on() {
        let root = tempfile::tempdir().unwrap();
        let mut config = Config::from_toml("").unwrap();
        config.embedder.folder = root.path().to_owned();
        let mut encoder = config.encoders["bge-small-en-v1.5"].clone();
        let name = "bge-small-en-v1.5";
        let folder = Folder::new(name, &encoder, &config.embedder);
        std::fs::create_dir(&folder.path).unwrap();
        let write = |file: &str, content: &str| std::fs::write(folder.path.join(file), content).unwrap();
        write("model.onnx", "model");
        write("tokenizer.json", "tokenizer");
        write("README.md", "not part of it");

        let first = folder.id(&encoder).unwrap();
        assert!(first.as_str().starts_with("bge-small-en-v1.5-cls-"), "{first}");
        assert_eq!(first.as_str().len(), "bge-small-en-v1.5-cls-".len() + 8);
        let mut ids = vec![first];
        encoder.prefix = "query: ".into();
        ids.push(folder.id(&encoder).unwrap());
        encoder.pooling = Pooling::Mean;
        ids.push(folder.id(&encoder).unwrap());
        write("model.onnx_data", "weights");
        ids.push(folder.id(&encoder).unwrap());
        write("tokenizer.json", "another");
        ids.push(folder.id(&encoder).unwrap());
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len(), "{ids:?}");
    }

    #[test]
    fn a_missing_folder_is_one_sentence_that_says_what_to_do() {
        let mut config = Config::from_toml("").unwrap();
        config.embedder.folder = "/nowhere".into();
        let encoder = &config.encoders["bge-small-en-v1.5"];
        let folder = Folder::new("bge-small-en-v1.5", encoder, &config.embedder);
        let message = folder.id(encoder).unwrap_err().to_string();
        for word in ["bge-small-en-v1.5", "/nowhere", "models/fetch", "embedder.folder"] {
            assert!(message.contains(word), "{message}");
        }
        assert!(!message.contains('\n'));
    }
}

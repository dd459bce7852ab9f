//! The adapter over ONNX Runtime with the real models. Without them (`models/fetch`) each test
//! says so and passes.

#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::join_all;
use refrain::cache::embedder::onnx::OnnxEmbedder;
use refrain::cache::embedder::{EmbedError, Embedder, Encoders, LoadError};
use refrain::config::Config;

const ENGLISH: &str = "bge-small-en-v1.5";
const MULTILINGUAL: &str = "multilingual-e5-small";

/// The defaults, with models and library of this checkout and time enough for a busy machine.
fn config() -> Config {
    let mut config = Config::from_toml("").unwrap();
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    config.embedder.runtime = models.join("lib/libonnxruntime.so");
    config.embedder.folder = models;
    config.embedder.timeout = Duration::from_mins(1);
    config
}

/// Whether the encoders' files are there; says so when not.
fn fetched(names: &[&str]) -> bool {
    let folder = config().embedder.folder;
    let missing = names.iter().find(|name| !folder.join(name).join("model.onnx").exists());
    if let Some(name) = missing {
        println!("skipped: models/{name} is not there (models/fetch brings it)");
    }
    missing.is_none()
}

/// The English encoder, loaded once for all tests.
fn english() -> Option<Arc<OnnxEmbedder>> {
    static EMBEDDER: OnceLock<Option<Arc<OnnxEmbedder>>> = OnceLock::new();
    let load = || {
        let config = config();
        let load = || OnnxEmbedder::try_new(ENGLISH, &config.encoders[ENGLISH], &config.embedder).unwrap();
        fetched(&[ENGLISH]).then(|| Arc::new(load()))
    };
    EMBEDDER.get_or_init(load).clone()
}

async fn similarity(embedder: &dyn Embedder, a: &str, b: &str) -> f32 {
    let (a, b) = (embedder.embed(a).await.unwrap(), embedder.embed(b).await.unwrap());
    a.vector.iter().zip(&*b.vector).map(|(a, b)| a * b).sum()
}

#[tokio::test]
async fn a_vector_is_what_the_model_s_authors_promise() {
    let Some(embedder) = english() else { return };
    assert!(embedder.id().as_str().starts_with("bge-small-en-v1.5-cls-"), "{}", embedder.id());
    assert_eq!(embedder.dimensions(), 384);
    let embedding = embedder.embed("How do I reset my password?").await.unwrap();
    assert_eq!(embedding.embedder, *embedder.id());
    assert_eq!(embedding.vector.len(), 384);
    let norm: f32 = embedding.vector.iter().map(|x| x * x).sum();
    assert!((norm - 1.0).abs() < 1e-3, "{norm}");
    let alike = similarity(&*embedder, "How do I reset my password?", "How can I reset my password?").await;
    let unrelated = similarity(&*embedder, "How do I reset my password?", "How do I boil an egg?").await;
    assert!(alike > 0.9 && unrelated < 0.7, "{alike} {unrelated}");
}

#[tokio::test]
async fn a_vector_depends_on_its_text_alone() {
    let Some(embedder) = english() else { return };
    let texts: Vec<_> =
        (0..24).map(|n| format!("question {n} {}", "about a long matter ".repeat(n))).collect();
    let at_once = join_all(texts.iter().map(|text| embedder.embed(text))).await;
    for (text, at_once) in texts.iter().zip(at_once) {
        assert_eq!(embedder.embed(text).await.unwrap(), at_once.unwrap());
    }
}

#[tokio::test]
async fn text_beyond_the_window_is_refused_and_never_cut() {
    let Some(embedder) = english() else { return };
    // Two of the 512 tokens are special.
    assert!(embedder.embed(&"word ".repeat(510)).await.is_ok());
    let refused = embedder.embed(&"word ".repeat(511)).await;
    assert!(matches!(refused, Err(EmbedError::TooLong { window: 512 })));
    let huge = embedder.embed(&"word ".repeat(1 << 21)).await;
    assert!(matches!(huge, Err(EmbedError::TooLong { window: 512 })));
}

#[tokio::test]
async fn text_with_a_sign_that_the_model_does_not_know_is_refused() {
    let Some(embedder) = english() else { return };
    for text in ["What does 👍 mean?", "What does 👎 mean?", "怎么重置密碼", "[UNK]"] {
        assert!(matches!(embedder.embed(text).await, Err(EmbedError::NotCovered)), "{text}");
    }
    for text in ["naïve café — “quoted” … it’s 5 € (50 %)", "a\tb\nc\u{200b}", "x² + y² = z²"]
    {
        assert!(embedder.embed(text).await.is_ok(), "{text}");
    }
}

#[tokio::test]
async fn hostile_text_gets_a_vector_or_an_error() {
    let Some(embedder) = english() else { return };
    for text in
        ["", "\0", "\u{202e}abc", "[CLS] [SEP] [PAD] [MASK]", &"a".repeat(10_000), &" ".repeat(16_000)]
    {
        match embedder.embed(text).await {
            Ok(embedding) => assert!(embedding.vector.iter().all(|x| x.is_finite())),
            Err(error) => assert!(!matches!(error, EmbedError::Failed(_)), "{text:?}: {error}"),
        }
    }
    assert!(embedder.embed("How do I reset my password?").await.is_ok());
}

#[tokio::test]
async fn english_goes_to_one_encoder_and_the_rest_to_the_other() {
    if !fetched(&[ENGLISH, MULTILINGUAL]) {
        return;
    }
    let config = config();
    let encoders = Encoders::try_new(&config.embedder, &config.encoders).unwrap();
    assert!(encoders.ready());
    let english = encoders.embed("How do I reset my password?").await.unwrap();
    assert_eq!(encoders.of(&english.embedder).unwrap().name(), ENGLISH);

    assert!(matches!(encoders.embed("怎么重置密码？").await, Err(EmbedError::Loading)));
    let chinese = loop {
        match encoders.embed("怎么重置密码？").await {
            Err(EmbedError::Loading) => tokio::task::yield_now().await,
            outcome => break outcome.unwrap(),
        }
    };
    let encoder = encoders.of(&chinese.embedder).unwrap();
    assert_eq!(encoder.name(), MULTILINGUAL);
    assert!(chinese.embedder.as_str().starts_with("multilingual-e5-small-mean-"));
    let embedder = encoder.embedder().unwrap();
    let alike = similarity(&*embedder, "怎么重置密码？", "如何重置密码？").await;
    let unrelated = similarity(&*embedder, "怎么重置密码？", "法国的首都是哪里？").await;
    assert!(alike > 0.95 && unrelated < 0.92, "{alike} {unrelated}");
    // What the English tokenizer does not know, the multilingual one may.
    let emoji = encoders.embed("What does 👍 mean?").await.unwrap();
    assert_eq!(emoji.embedder, chinese.embedder);
}

/// What the start says when `change` has been at a copy of the English encoder's folder.
fn refusal(change: impl FnOnce(&Path)) -> Option<LoadError> {
    if !fetched(&[ENGLISH]) {
        return None;
    }
    let mut config = config();
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(config.embedder.folder.join(ENGLISH)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    change(copy.path());
    let encoder = config.encoders.get_mut(ENGLISH).unwrap();
    encoder.folder = Some(copy.path().to_owned());
    let refused = OnnxEmbedder::try_new(ENGLISH, &config.encoders[ENGLISH], &config.embedder);
    Some(refused.err().expect("a broken encoder is refused"))
}

#[test]
fn a_missing_or_damaged_file_is_one_sentence_that_says_what_to_do() {
    let truncate = |file: &'static str| {
        move |folder: &Path| {
            let content = std::fs::read(folder.join(file)).unwrap();
            std::fs::write(folder.join(file), &content[..content.len() / 2]).unwrap();
        }
    };
    let remove = |file: &'static str| move |folder: &Path| std::fs::remove_file(folder.join(file)).unwrap();
    let refusals = [
        refusal(remove("model.onnx")),
        refusal(remove("tokenizer.json")),
        refusal(remove("config.json")),
        refusal(truncate("model.onnx")),
        refusal(truncate("tokenizer.json")),
        refusal(|folder| std::fs::write(folder.join("model.onnx"), "").unwrap()),
        refusal(|folder| std::fs::write(folder.join("tokenizer_config.json"), "{}").unwrap()),
    ];
    for refusal in refusals.into_iter().flatten() {
        let message = refusal.to_string();
        for word in [ENGLISH, "models/fetch", "embedder.folder"] {
            assert!(message.contains(word), "{message}");
        }
        assert!(!message.contains('\n') && message.len() < 600, "{message}");
    }
}

#[tokio::test]
async fn what_is_the_same_to_the_encoder_is_the_same_question() {
    if !fetched(&[ENGLISH]) {
        return;
    }
    let config = config();
    let encoders = Encoders::try_new(&config.embedder, &config.encoders).unwrap();
    let asked = "How do I invite a visitor from another company?";
    let probability = async |other: &str| {
        let (a, b) = (encoders.embed(asked).await.unwrap(), encoders.embed(other).await.unwrap());
        let similarity: f32 = a.vector.iter().zip(&*b.vector).map(|(a, b)| a * b).sum();
        let (a_tokens, b_tokens) = (a.tokens.unwrap(), b.tokens.unwrap());
        encoders.compare(&a.embedder, &a_tokens, &b_tokens, similarity).await.unwrap()
    };
    for same in [
        asked,
        "hOW DO i Invite a visitor from another company?",
        " How do I  invite a visitor from another company? ",
    ] {
        assert!(probability(same).await > 0.999, "{same}");
    }
    let other = probability("How do I invoice a visitor from another company?").await;
    assert!(other < 0.9, "{other}");
}

/// What the start says when `change` has been at a copy of the English encoder's verifier.
fn verifier_refusal(change: impl FnOnce(&Path)) -> Option<String> {
    if !fetched(&[ENGLISH]) {
        return None;
    }
    let mut config = config();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/verifier").join(ENGLISH);
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(shipped).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    change(copy.path());
    let encoder = config.encoders.get_mut(ENGLISH).unwrap();
    encoder.verifier.as_mut().unwrap().files = copy.path().to_string_lossy().into_owned();
    let loaded = OnnxEmbedder::try_new(ENGLISH, &config.encoders[ENGLISH], &config.embedder);
    Some(loaded.err().map(|refused| refused.to_string()).unwrap_or_default())
}

#[test]
fn a_verifier_in_a_folder_is_as_good_as_the_one_built_in() {
    assert!(verifier_refusal(|_| ()).unwrap_or_default().is_empty());
}

#[test]
fn a_verifier_that_cannot_be_trusted_stops_the_start() {
    let edit = |file: &'static str, from: &'static str, to: &'static str| {
        move |folder: &Path| {
            let content = std::fs::read_to_string(folder.join(file)).unwrap();
            assert!(content.contains(from));
            std::fs::write(folder.join(file), content.replace(from, to)).unwrap();
        }
    };
    let remove = |file: &'static str| move |folder: &Path| std::fs::remove_file(folder.join(file)).unwrap();
    let refusals = [
        verifier_refusal(remove("compare.onnx")),
        verifier_refusal(|folder| std::fs::write(folder.join("project.onnx"), "none").unwrap()),
        verifier_refusal(edit("head.json", "bge-small", "bge-large")),
        verifier_refusal(edit("head.json", "window", "windows")),
        verifier_refusal(edit("reference.json", "\"logit\": ", "\"logit\": 9")),
    ];
    for message in refusals.into_iter().flatten() {
        for word in [ENGLISH, "verifier", "cannot be used"] {
            assert!(message.contains(word), "{message:?}");
        }
        assert!(!message.contains('\n') && message.len() < 600, "{message}");
    }
}

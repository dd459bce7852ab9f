use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use super::*;
use crate::cache::embedder::lazy::Loader;
use crate::cache::embedder::{Embedder, EmbedderId, Head, Projection};
use crate::cache::verify::Difference;
use crate::config::{self, Config, Policy, Similarity};

const ENGLISH: &str = "bge-small-en-v1.5";

/// An embedder whose head says what the test wants, and counts.
struct Judge {
    id: EmbedderId,
    says: Mutex<Result<f32, EmbedError>>,
    /// The stored tokens that it was asked about.
    compared: Mutex<Vec<Arc<Tokens>>>,
    /// Why it reads no text now.
    unread: Mutex<Option<EmbedError>>,
}

#[async_trait]
impl Embedder for Judge {
    fn id(&self) -> &EmbedderId {
        &self.id
    }

    fn dimensions(&self) -> usize {
        2
    }

    async fn embed(&self, _: &str) -> Result<Embedding, EmbedError> {
        if let Some(error) = self.unread.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Err(error);
        }
        let mut embedding = Embedding::new(self.id.clone(), [1.0, 0.0]);
        embedding.tokens = Some(tokens());
        Ok(embedding)
    }

    fn head(&self) -> Option<&dyn Head> {
        Some(self)
    }
}

#[async_trait]
impl Head for Judge {
    async fn compare(&self, _: &Arc<Tokens>, stored: &Arc<Tokens>, _: f32) -> Result<f32, EmbedError> {
        self.compared.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(stored));
        self.says.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn tokens() -> Arc<Tokens> {
    Arc::new(Tokens::try_new(Projection::of(b"now"), vec![1, 2], &[0.5, 0.5]).unwrap())
}

struct Court {
    verifier: Verifier,
    judge: Arc<Judge>,
    embedding: Embedding,
}

/// The shipped English encoder's settings over a head that gives this.
async fn court(says: Result<f32, EmbedError>) -> Court {
    let config = Config::from_toml("[embedder]\nmodels = [\"bge-small-en-v1.5\"]").unwrap();
    let judge = Arc::new(Judge {
        id: EmbedderId::new("judge"),
        says: Mutex::new(says),
        compared: Mutex::default(),
        unread: Mutex::default(),
    });
    let loader = |_: &str, _: &config::Encoder| -> Arc<Loader> {
        let judge = Arc::clone(&judge);
        Arc::new(move || Ok(Arc::clone(&judge) as Arc<dyn Embedder>))
    };
    let encoders = Encoders::with_loaders(&config.embedder, &config.encoders, loader).unwrap();
    let embedding = encoders.embed("How do I reset my password?").await.unwrap();
    Court { verifier: Verifier::new(Arc::new(encoders)), judge, embedding }
}

fn matching(policy: Policy) -> Matching {
    Matching { policy, thresholds: BTreeMap::new() }
}

impl Court {
    async fn judge(&self, stored: &str, similarity: f32, matching: &Matching) -> Judgement {
        let tokens = tokens();
        let near = Near { question: stored, similarity, tokens: Some(&tokens) };
        self.verifier.judge("How do I reset my password?", &self.embedding, near, matching).await
    }

    async fn judge_near(&self, near: Near<'_>) -> Judgement {
        let asked = "How do I reset my password?";
        self.verifier.judge(asked, &self.embedding, near, &matching(Policy::Loose)).await
    }

    fn asked(&self) -> usize {
        self.judge.compared.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

const PARAPHRASE: &str = "What is the way to get a new password?";

#[tokio::test]
async fn each_policy_asks_for_more_than_the_looser_one() {
    let served = async |probability: f32| {
        let court = court(Ok(probability)).await;
        let mut served = Vec::new();
        for policy in [Policy::Strict, Policy::Balanced, Policy::Loose] {
            let judgement = court.judge(PARAPHRASE, 0.8, &matching(policy)).await;
            assert_eq!(judgement.probability, Some(probability));
            served.push(judgement.verdict == Verdict::Same);
        }
        served
    };
    assert_eq!(served(0.95).await, [true, true, true]);
    assert_eq!(served(0.6).await, [false, true, true]);
    assert_eq!(served(0.4).await, [false, false, true]);
    assert_eq!(served(0.1).await, [false, false, false]);
}

#[tokio::test]
async fn the_head_is_not_asked_about_what_is_refused_without_it() {
    let court = court(Ok(1.0)).await;
    for (stored, similarity, why) in [
        (PARAPHRASE, 0.5, Refusal::Similarity),
        ("¿Cómo restablezco mi contraseña?", 0.99, Refusal::Language),
        ("How do I not reset my password?", 0.99, Refusal::Difference(Difference::Negation)),
    ] {
        let judgement = court.judge(stored, similarity, &matching(Policy::Loose)).await;
        let refused = Judgement { verdict: Verdict::Different(why), probability: None };
        assert_eq!(judgement, refused, "{stored}");
    }
    assert_eq!(court.asked(), 0);
}

#[tokio::test]
async fn by_similarity_alone_the_head_has_no_say() {
    let court = court(Ok(0.0)).await;
    let alone = matching(Policy::Similarity);
    assert_eq!(court.judge(PARAPHRASE, 0.93, &alone).await.verdict, Verdict::Same);
    let judgement = court.judge(PARAPHRASE, 0.9, &alone).await;
    assert_eq!(judgement.verdict, Verdict::Different(Refusal::Similarity), "the floor is the verifier's");
    assert_eq!(court.asked(), 0);
}

#[tokio::test]
async fn a_namespaces_threshold_takes_the_place_of_the_floor() {
    let court = court(Ok(1.0)).await;
    let at = |similarity: f64| Matching {
        policy: Policy::Balanced,
        thresholds: [(ENGLISH.to_owned(), Similarity::try_from(similarity).unwrap())].into(),
    };
    let judgement = court.judge(PARAPHRASE, 0.8, &at(0.9)).await;
    assert_eq!(judgement.verdict, Verdict::Different(Refusal::Similarity));
    assert_eq!(court.judge(PARAPHRASE, 0.6, &at(0.5)).await.verdict, Verdict::Same);
}

#[tokio::test]
async fn a_head_that_cannot_tell_refuses() {
    let failures = [
        EmbedError::Busy,
        EmbedError::TimedOut,
        EmbedError::TooLong { window: 128 },
        EmbedError::Failed("x".into()),
    ];
    let unjudged = Judgement { verdict: Verdict::Different(Refusal::Unjudged), probability: None };
    for failure in failures {
        let court = court(Err(failure)).await;
        assert_eq!(court.judge(PARAPHRASE, 0.99, &matching(Policy::Loose)).await, unjudged);
    }
}

#[tokio::test]
async fn a_question_without_tokens_is_refused() {
    let court = court(Ok(1.0)).await;
    let embedding = Embedding { tokens: None, ..court.embedding.clone() };
    let tokens = tokens();
    let near = Near { question: PARAPHRASE, similarity: 0.99, tokens: Some(&tokens) };
    let matching = matching(Policy::Loose);
    let judgement = court.verifier.judge("How do I reset my password?", &embedding, near, &matching).await;
    assert_eq!(judgement.verdict, Verdict::Different(Refusal::Unjudged));
    assert_eq!(court.asked(), 0);
}

#[tokio::test]
async fn what_another_head_has_left_is_read_anew_and_never_compared() {
    let of = |graph: &[u8], ids: Vec<u32>, width: usize| {
        let vectors = vec![0.5; ids.len() * width];
        Arc::new(Tokens::try_new(Projection::of(graph), ids, &vectors).unwrap())
    };
    for left in [None, Some(of(b"before", vec![1, 2], 1)), Some(of(b"now", vec![1, 2], 2))] {
        let court = court(Ok(1.0)).await;
        let near = Near { question: PARAPHRASE, similarity: 0.99, tokens: left.as_ref() };
        assert_eq!(court.judge_near(near).await.verdict, Verdict::Same, "{left:?}");
        assert_eq!(*court.judge.compared.lock().unwrap(), [tokens()], "{left:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_read_anew_is_refused() {
    let court = court(Ok(1.0)).await;
    let blank = Near { question: "", similarity: 0.99, tokens: None };
    let judgement = court.judge_near(blank).await;
    assert_ne!(judgement.verdict, Verdict::Same);
    *court.judge.unread.lock().unwrap() = Some(EmbedError::Busy);
    let near = Near { question: PARAPHRASE, similarity: 0.99, tokens: None };
    assert_eq!(court.judge_near(near).await.verdict, Verdict::Different(Refusal::Unjudged));
    assert_eq!(court.asked(), 0);
}

#[tokio::test]
async fn a_vector_of_an_unknown_embedder_matches_nothing() {
    let court = court(Ok(1.0)).await;
    let embedding = Embedding::new(EmbedderId::new("another"), [1.0, 0.0]);
    let tokens = tokens();
    let near = Near { question: PARAPHRASE, similarity: 1.0, tokens: Some(&tokens) };
    for policy in [Policy::Loose, Policy::Similarity] {
        let judgement = court.verifier.judge(PARAPHRASE, &embedding, near, &matching(policy)).await;
        assert_eq!(judgement.verdict, Verdict::Different(Refusal::Similarity));
    }
}

//! The peers' way, to compare with: serve what is near enough.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::join_all;

use super::judge::{AT_ONCE, Contender, Judge, Judgement, Progress, Tick};
use crate::cache::embedder::Embedding;

/// The thresholds that peers ship or advise: GPTCache's default is a cosine of .60, the example of
/// LiteLLM .80, `RedisVL`'s default .90; hosted gateways advise about .95.
pub const PEERS: [f32; 4] = [0.60, 0.80, 0.90, 0.95];

/// The vectors of all texts of a measurement, each made once.
#[derive(Default)]
pub struct Vectors {
    by_text: HashMap<String, Result<Embedding, &'static str>>,
}

impl Vectors {
    /// Embeds each of `texts` once, in order. `embed` gives the vector, or a word that says why
    /// there is none.
    pub async fn embed<'t>(
        texts: impl IntoIterator<Item = &'t str>,
        embed: impl AsyncFn(&str) -> Result<Embedding, &'static str>,
        tick: &Tick<'_>,
    ) -> Self {
        let mut seen = HashSet::new();
        let texts: Vec<&str> = texts.into_iter().filter(|text| seen.insert(*text)).collect();
        let mut by_text = HashMap::with_capacity(texts.len());
        for texts_now in texts.chunks(AT_ONCE) {
            let embeddings = join_all(texts_now.iter().map(|text| embed(text))).await;
            by_text.extend(texts_now.iter().map(|text| (*text).to_owned()).zip(embeddings));
            tick(Progress { step: "embedding", done: by_text.len(), of: texts.len() });
        }
        Self { by_text }
    }

    /// The vector of `text`, or why it has none.
    pub fn of(&self, text: &str) -> Result<&Embedding, &'static str> {
        self.by_text.get(text).map_or(Err("not_embedded"), |found| found.as_ref().map_err(|reason| *reason))
    }
}

/// The cosine of two vectors of unit length; none when they are of different encoders.
pub fn cosine(a: &Embedding, b: &Embedding) -> Option<f32> {
    let comparable = a.embedder == b.embedder && a.vector.len() == b.vector.len();
    comparable.then(|| dot(&a.vector, &b.vector))
}

/// Sums in eight lanes, which the compiler may lay side by side; in one it must not.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    let mut lanes = [0.0_f32; 8];
    for (a, b) in a.iter().zip(b) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    lanes.iter().sum::<f32>() + rest
}

/// Judges by the cosine alone.
pub struct Cosine {
    name: String,
    vectors: Arc<Vectors>,
    threshold: f32,
}

impl Cosine {
    /// A judge over `vectors` whose default serves from `threshold` on.
    pub fn new(name: &str, vectors: Arc<Vectors>, threshold: f32) -> Self {
        Self { name: name.to_owned(), vectors, threshold }
    }

    /// Cosine at each of the [`PEERS`]' thresholds: `cosine >= 0.60` and so on, by this name.
    pub fn peers(name: &str, vectors: Arc<Vectors>) -> Contender {
        Contender::at_least(Arc::new(Self::new(name, vectors, PEERS[2])), &PEERS)
    }
}

#[async_trait]
impl Judge for Cosine {
    fn name(&self) -> &str {
        &self.name
    }

    async fn judge(&self, asked: &str, stored: &str) -> Judgement {
        match (self.vectors.of(asked), self.vectors.of(stored)) {
            (Ok(a), Ok(b)) => cosine(a, b).map_or(Judgement::refused("encoder"), |score| Judgement {
                score,
                serves: score >= self.threshold,
                stage: "cosine",
            }),
            (Err(reason), _) | (_, Err(reason)) => Judgement::refused(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::cache::embedder::EmbedderId;

    fn embedding(embedder: &str, vector: &[f32]) -> Embedding {
        Embedding::new(EmbedderId::new(embedder), vector)
    }

    #[test]
    fn the_sum_in_lanes_is_the_dot_product() {
        for length in [0_u8, 1, 7, 8, 9, 20] {
            let a: Vec<f32> = (0..length).map(f32::from).collect();
            let b: Vec<f32> = (0..length).map(|i| f32::from(i) - 3.0).collect();
            let expected: i32 = (0..i32::from(length)).map(|i| i * (i - 3)).sum();
            assert_eq!(format!("{}", dot(&a, &b)), format!("{expected}"));
        }
    }

    #[test]
    fn vectors_of_different_encoders_have_no_cosine() {
        let (a, b) = (embedding("a", &[0.6, 0.8]), embedding("a", &[1.0, 0.0]));
        assert_eq!(cosine(&a, &b), Some(0.6));
        assert_eq!(cosine(&a, &embedding("b", &[1.0, 0.0])), None);
        assert_eq!(cosine(&a, &embedding("a", &[1.0])), None);
    }

    #[tokio::test]
    async fn each_text_is_embedded_once_and_judged_by_its_vector() {
        let calls = AtomicUsize::new(0);
        let embed = async |text: &str| {
            calls.fetch_add(1, Ordering::Relaxed);
            match text {
                "one" => Ok(embedding("a", &[1.0, 0.0])),
                "near" => Ok(embedding("a", &[0.92, 0.391_918_36])),
                "other" => Ok(embedding("b", &[1.0, 0.0])),
                _ => Err("too_long"),
            }
        };
        let texts = ["one", "near", "one", "other", "long", "long"];
        let vectors = Vectors::embed(texts, embed, &|progress| assert_eq!(progress.of, 4)).await;
        assert_eq!(calls.load(Ordering::Relaxed), 4);

        let peers = Cosine::peers("cosine", Arc::new(vectors));
        let judge = peers.judge();
        let near = judge.judge("one", "near").await;
        assert_eq!(near, Judgement { score: 0.92, serves: true, stage: "cosine" });
        let served = peers.settings().iter().map(|(name, rule)| (name.as_str(), rule.serves(&near)));
        assert!(served.eq([
            ("cosine >= 0.60", true),
            ("cosine >= 0.80", true),
            ("cosine >= 0.90", true),
            ("cosine >= 0.95", false),
        ]));
        assert_eq!(judge.judge("one", "other").await, Judgement::refused("encoder"));
        assert_eq!(judge.judge("one", "long").await, Judgement::refused("too_long"));
        assert_eq!(judge.judge("one", "never seen").await, Judgement::refused("not_embedded"));
    }
}

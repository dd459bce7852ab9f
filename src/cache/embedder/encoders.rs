//! Several encoders as one: the first that covers a text embeds it.
//!
//! Vectors of different encoders never meet, since each names its embedder, and nothing is lost
//! by that: an answer in another language is not the same answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::coverage::Language;
use super::lazy::{Lazy, Loader};
use super::memo::Memo;
use super::onnx::OnnxEmbedder;
use super::{EmbedError, Embedder, EmbedderId, Embedding, LoadError, Tokens, too_long};
use crate::config::{self, Covers, Load, Policy};

/// The configured encoders, in order, and the memo they share.
pub struct Encoders {
    encoders: Vec<Encoder>,
    memo: Memo,
}

/// An embedder and what the configuration says of it.
pub struct Encoder {
    name: String,
    covers: Covers,
    window: usize,
    threshold: f32,
    verifier: Option<config::Verifier>,
    load: Load,
    embedder: Lazy,
}

impl Encoders {
    /// The encoders that `settings` names, described by `described`. Those with `load = "start"`
    /// are loaded and tested when this returns: it blocks for seconds.
    pub fn try_new(
        settings: &config::Embedder,
        described: &BTreeMap<String, config::Encoder>,
    ) -> Result<Self, LoadError> {
        let settings = Arc::new(settings.clone());
        let load = |name: &str, encoder: &config::Encoder| -> Arc<Loader> {
            let (name, encoder, settings) = (name.to_owned(), encoder.clone(), Arc::clone(&settings));
            Arc::new(move || Ok(Arc::new(OnnxEmbedder::try_new(&name, &encoder, &settings)?)))
        };
        Self::with_loaders(&settings, described, load)
    }

    pub(in crate::cache) fn with_loaders(
        settings: &config::Embedder,
        described: &BTreeMap<String, config::Encoder>,
        loader: impl Fn(&str, &config::Encoder) -> Arc<Loader>,
    ) -> Result<Self, LoadError> {
        let mut encoders = Vec::new();
        for name in &settings.models {
            let encoder = described.get(name).ok_or_else(|| LoadError::Unknown(name.as_str().into()))?;
            let embedder = Lazy::new(name, loader(name, encoder));
            if encoder.load == Load::Start {
                embedder.load()?;
            }
            encoders.push(Encoder {
                name: name.clone(),
                covers: encoder.covers,
                window: encoder.window,
                threshold: encoder.threshold.get(),
                verifier: encoder.verifier.clone(),
                load: encoder.load,
                embedder,
            });
        }
        Ok(Self { encoders, memo: Memo::new(settings.memo_bytes.as_u64()) })
    }

    /// Encoders of one's own, in order, each with its name, coverage and threshold; for tests
    /// and for embedders that no file describes.
    pub fn with_embedders(embedders: Vec<(String, Arc<dyn Embedder>, Covers, f32)>, memo_bytes: u64) -> Self {
        let ready = |(name, embedder, covers, threshold): (String, _, _, _)| Encoder {
            embedder: Lazy::ready(&name, embedder),
            name,
            covers,
            window: usize::MAX,
            threshold,
            verifier: None,
            load: Load::Start,
        };
        Self { encoders: embedders.into_iter().map(ready).collect(), memo: Memo::new(memo_bytes) }
    }

    /// The text's vector, by the first encoder that covers it: its language, and every sign in
    /// it. Remembered for the next time. Dropping the future leaves nothing running on the
    /// caller's account.
    pub async fn embed(&self, text: &str) -> Result<Embedding, EmbedError> {
        too_long(text, self.encoders.iter().map(|encoder| encoder.window).max().unwrap_or(0))?;
        let Some(language) = Language::of(text) else { return Err(EmbedError::NotCovered) };
        for encoder in self.encoders.iter().filter(|encoder| language.is_covered_by(encoder.covers)) {
            match self.memo.embed(&encoder.embedder.get()?, text).await {
                Err(EmbedError::NotCovered) => {}
                outcome => return outcome,
            }
        }
        Err(EmbedError::NotCovered)
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.encoders.iter().map(Encoder::name)
    }

    /// Whether there is an encoder of this name.
    pub fn has(&self, name: &str) -> bool {
        self.encoders.iter().any(|encoder| encoder.name == name)
    }

    /// The text's vector by the encoder of this name, whatever language the text is in.
    pub async fn embed_by(&self, name: &str, text: &str) -> Result<Embedding, EmbedError> {
        let named = self.encoders.iter().find(|encoder| encoder.name == name);
        let encoder = named.ok_or(EmbedError::NotCovered)?;
        too_long(text, encoder.window)?;
        self.memo.embed(&encoder.embedder.get()?, text).await
    }

    /// What the head of the texts' embedder says of them.
    pub async fn compare(
        &self,
        embedder: &EmbedderId,
        asked: &Arc<Tokens>,
        stored: &Arc<Tokens>,
        similarity: f32,
    ) -> Result<f32, EmbedError> {
        let embedder = self.of(embedder).and_then(Encoder::embedder).ok_or(EmbedError::Loading)?;
        let head = embedder.head().ok_or_else(|| EmbedError::Failed("the encoder has no head".into()))?;
        head.compare(asked, stored, similarity).await
    }

    /// The embedders that are loaded.
    pub fn loaded(&self) -> impl Iterator<Item = Arc<dyn Embedder>> {
        self.encoders.iter().filter_map(Encoder::embedder)
    }

    /// The encoder whose embedder this is; `None` for one that is not loaded or not of these.
    pub fn of(&self, embedder: &EmbedderId) -> Option<&Encoder> {
        self.encoders
            .iter()
            .find(|encoder| encoder.embedder.loaded().is_some_and(|loaded| loaded.id() == embedder))
    }

    /// Whether all encoders that are not lazy are loaded.
    pub fn ready(&self) -> bool {
        let mut needed = self.encoders.iter().filter(|encoder| encoder.load == Load::Start);
        needed.all(|encoder| encoder.embedder.loaded().is_some())
    }

    /// Vectors remembered, and the bytes they take; both lag a little behind.
    pub fn memo_size(&self) -> (u64, u64) {
        self.memo.size()
    }
}

impl Encoder {
    /// Its name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The probability from which on the encoder's head is believed; `None` where it has no head or
    /// the policy does without, so that similarity decides.
    pub fn min_probability(&self, policy: Policy) -> Option<f32> {
        let verifier = self.verifier.as_ref()?;
        match policy {
            Policy::Strict => Some(verifier.strict.get()),
            Policy::Balanced => Some(verifier.balanced.get()),
            Policy::Loose => Some(verifier.loose.get()),
            Policy::Similarity => None,
        }
    }

    /// The similarity from which on a question may be the same, unless a namespace says otherwise.
    pub fn threshold(&self, policy: Policy) -> f32 {
        match &self.verifier {
            Some(verifier) if policy != Policy::Similarity => verifier.floor.get(),
            _ => self.threshold,
        }
    }

    /// Its embedder, once loaded.
    pub fn embedder(&self) -> Option<Arc<dyn Embedder>> {
        self.embedder.loaded()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;
    use crate::config::Config;

    /// The default encoders, with fakes in place of models.
    struct Fakes {
        encoders: Encoders,
        english: Arc<Fake>,
        multilingual: Arc<Fake>,
    }

    fn fakes() -> Fakes {
        let config = Config::from_toml("").unwrap();
        let english = Arc::new(Fake::new("english"));
        let multilingual = Arc::new(Fake::new("multilingual"));
        let loader = |_: &str, encoder: &config::Encoder| -> Arc<Loader> {
            let fake = if encoder.covers == Covers::English { &english } else { &multilingual };
            let fake = Arc::clone(fake);
            Arc::new(move || Ok(Arc::clone(&fake) as Arc<dyn Embedder>))
        };
        let encoders = Encoders::with_loaders(&config.embedder, &config.encoders, loader).unwrap();
        Fakes { encoders, english, multilingual }
    }

    async fn load_multilingual(encoders: &Encoders) {
        while matches!(encoders.embed("怎么重置密码").await, Err(EmbedError::Loading)) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn the_first_that_covers_a_text_embeds_it() {
        let Fakes { encoders, english, .. } = fakes();
        assert_eq!(encoders.embed("How do I reset it?").await.unwrap().embedder.as_str(), "english");
        load_multilingual(&encoders).await;
        assert_eq!(encoders.embed("如何重置密码").await.unwrap().embedder.as_str(), "multilingual");
        assert_eq!(english.calls(), 1);
    }

    #[tokio::test]
    async fn the_lazy_one_is_loaded_by_the_first_text_that_needs_it() {
        let Fakes { encoders, multilingual, .. } = fakes();
        assert!(encoders.ready());
        assert!(encoders.embed("How do I reset it?").await.is_ok());
        assert!(encoders.of(multilingual.id()).is_none());
        assert!(matches!(encoders.embed("怎么重置密码").await, Err(EmbedError::Loading)));
        load_multilingual(&encoders).await;
        assert!(encoders.of(multilingual.id()).is_some());
    }

    #[tokio::test]
    async fn what_one_does_not_know_the_next_may() {
        let Fakes { encoders, english, multilingual } = fakes();
        load_multilingual(&encoders).await;
        english.fail_with(EmbedError::NotCovered);
        let embedding = encoders.embed("What does 👍 mean?").await.unwrap();
        assert_eq!(embedding.embedder.as_str(), "multilingual");
        english.fail_with(EmbedError::NotCovered);
        multilingual.fail_with(EmbedError::NotCovered);
        assert!(matches!(encoders.embed("What does 👎 mean?").await, Err(EmbedError::NotCovered)));
    }

    #[tokio::test]
    async fn any_other_failure_is_not_passed_on() {
        let Fakes { encoders, english, multilingual } = fakes();
        load_multilingual(&encoders).await;
        let before = multilingual.calls();
        english.fail_with(EmbedError::Busy);
        assert!(matches!(encoders.embed("How do I reset it?").await, Err(EmbedError::Busy)));
        assert_eq!(multilingual.calls(), before);
    }

    #[tokio::test]
    async fn what_no_encoder_covers_reaches_none() {
        let Fakes { encoders, english, multilingual } = fakes();
        for text in ["", "42", "👍", " \n"] {
            assert!(matches!(encoders.embed(text).await, Err(EmbedError::NotCovered)), "{text:?}");
        }
        let endless = "word ".repeat(1 << 21);
        assert!(matches!(encoders.embed(&endless).await, Err(EmbedError::TooLong { window: 512 })));
        assert_eq!(english.calls() + multilingual.calls(), 0);
    }

    #[tokio::test]
    async fn thresholds_and_names_belong_to_embedders() {
        let Fakes { encoders, english, multilingual } = fakes();
        let known =
            |id| encoders.of(id).map(|encoder| (encoder.name(), encoder.threshold(Policy::Similarity)));
        assert_eq!(known(english.id()), Some(("bge-small-en-v1.5", 0.92)));
        assert_eq!(known(multilingual.id()), None);
        load_multilingual(&encoders).await;
        assert_eq!(known(multilingual.id()), Some(("multilingual-e5-small", 0.99)));
        assert_eq!(known(&EmbedderId::new("another")), None);
    }

    #[tokio::test]
    async fn embedders_of_ones_own() {
        let fake = Arc::new(Fake::new("own"));
        let encoders =
            Encoders::with_embedders(vec![("own".into(), Arc::clone(&fake) as _, Covers::All, 0.5)], 1 << 20);
        assert!(encoders.ready());
        encoders.embed("How do I reset it?").await.unwrap();
        encoders.embed("How do I reset it?").await.unwrap();
        assert_eq!(fake.calls(), 1);
        assert_eq!(encoders.of(fake.id()).map(|own| own.threshold(Policy::Balanced)), Some(0.5));
    }

    #[tokio::test]
    async fn what_a_policy_asks_of_an_encoder_with_a_verifier() {
        let Fakes { encoders, english, .. } = fakes();
        let encoder = encoders.of(english.id()).unwrap();
        let [strict, balanced, loose] = [Policy::Strict, Policy::Balanced, Policy::Loose]
            .map(|policy| (encoder.threshold(policy), encoder.min_probability(policy).unwrap()));
        assert!(strict.0 < encoder.threshold(Policy::Similarity), "the verifier sees more than is served");
        assert!(strict.1 > balanced.1 && balanced.1 > loose.1);
        assert_eq!(encoder.min_probability(Policy::Similarity), None);
    }

    #[test]
    fn an_encoder_that_must_load_stops_the_start() {
        let config = Config::from_toml("").unwrap();
        let broken = |name: &str, _: &config::Encoder| -> Arc<Loader> {
            let name: Arc<str> = name.into();
            Arc::new(move || Err(LoadError::Unknown(Arc::clone(&name))))
        };
        let refused = Encoders::with_loaders(&config.embedder, &config.encoders, broken);
        assert!(refused.is_err_and(|error| error.to_string().contains("bge-small-en-v1.5")));
    }
}

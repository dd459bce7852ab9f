//! The head over an encoder: two small graphs, run beside it by the same worker.
//!
//! `project` shortens what the encoder says of each token, once a text; `compare` says of two
//! texts so shortened whether one answer serves both. A head belongs to the weights it was trained
//! over, so its folder names the encoder, and is refused for any other.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use ort::environment::Environment;
use ort::session::Session;
use ort::value::TensorRef;
use serde::Deserialize;

use super::in_one_line;
use crate::cache::embedder::{EmbedError, EmbedderId, LoadError, Projection, Tokens};

/// How far a head may be off its reference answers: other machines round differently.
const TOLERANCE: f32 = 0.05;

/// What a head's folder says of it, in `head.json`.
#[derive(Deserialize)]
struct Card {
    /// The embedder that it was trained over.
    embedder: String,
    /// From this similarity on the head alone decides.
    full_similarity: f32,
    /// How much a similarity below that takes from the head's logit, for one whole of it.
    slope: f32,
    /// The longest text it was tried on, in tokens.
    window: usize,
    #[serde(default)]
    prior: Prior,
}

/// What is known of two near questions before the head is asked: how many tokens differ. Where few
/// do, one word is exchanged and the rest is the same to the letter, and that is how traps are
/// made; near neighbours of which many tokens differ are mostly rewordings.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Prior {
    /// Added to the logit when no, one, two … tokens differ; the last one also when more do.
    by_differing: Vec<f32>,
    /// Tokens that do not count: articles, auxiliary verbs, signs.
    light: HashSet<u32>,
}

impl Prior {
    fn of(&self, a: &[u32], b: &[u32]) -> f32 {
        let mut balance: HashMap<u32, i32> = HashMap::new();
        for (ids, step) in [(a, 1), (b, -1)] {
            for id in ids.iter().filter(|id| !self.light.contains(id)) {
                *balance.entry(*id).or_default() += step;
            }
        }
        let more =
            |sign: i32| balance.values().map(|count| count * sign).filter(|count| *count > 0).sum::<i32>();
        let differing = usize::try_from(more(1).max(more(-1))).unwrap_or_default();
        self.by_differing.get(differing).or(self.by_differing.last()).copied().unwrap_or_default()
    }
}

/// Two texts whose probability is known, to see at the start that all is as it was trained.
#[derive(Deserialize)]
pub(super) struct Reference {
    pub(super) a: String,
    pub(super) b: String,
    pub(super) logit: f32,
}

/// A head's two graphs.
pub(super) struct HeadSessions {
    full_similarity: f32,
    slope: f32,
    window: usize,
    prior: Prior,
    projection: Projection,
    project: Session,
    compare: Session,
}

/// The files of a head that are built in, by the encoder's name.
struct Files {
    card: Vec<u8>,
    references: Vec<u8>,
    project: Vec<u8>,
    compare: Vec<u8>,
}

impl Files {
    fn built_in(encoder: &str) -> Option<Self> {
        macro_rules! file {
            ($folder:literal, $name:literal) => {
                include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/models/verifier/", $folder, "/", $name))
                    .to_vec()
            };
        }
        macro_rules! files {
            ($folder:literal) => {
                Self {
                    card: file!($folder, "head.json"),
                    references: file!($folder, "reference.json"),
                    project: file!($folder, "project.onnx"),
                    compare: file!($folder, "compare.onnx"),
                }
            };
        }
        match encoder {
            "bge-small-en-v1.5" => Some(files!("bge-small-en-v1.5")),
            "multilingual-e5-small" => Some(files!("multilingual-e5-small")),
            _ => None,
        }
    }

    fn read(folder: &Path) -> Result<Self, (PathBuf, std::io::Error)> {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read(&path).map_err(|error| (path, error))
        };
        Ok(Self {
            card: read("head.json")?,
            references: read("reference.json")?,
            project: read("project.onnx")?,
            compare: read("compare.onnx")?,
        })
    }
}

/// A head's files, read and found to belong to the encoder.
pub(super) struct Head {
    files: Files,
    card: Card,
    projection: Projection,
    pub(super) references: Vec<Reference>,
    encoder: std::sync::Arc<str>,
    place: String,
}

impl Head {
    /// The head at `place`: `builtin`, or a folder.
    pub(super) fn find(encoder: &str, id: &EmbedderId, place: &str) -> Result<Self, LoadError> {
        let unusable = |reason: String| LoadError::Verifier {
            encoder: encoder.into(),
            place: place.to_owned(),
            reason: reason.into(),
        };
        let files = if place == "builtin" {
            Files::built_in(encoder).ok_or_else(|| unusable("there is none for this encoder".to_owned()))?
        } else {
            Files::read(Path::new(place))
                .map_err(|(path, error)| unusable(format!("{}: {error}", path.display())))?
        };
        let card: Card =
            serde_json::from_slice(&files.card).map_err(|error| unusable(format!("head.json: {error}")))?;
        if card.embedder != id.as_str() {
            return Err(unusable(format!("it was trained over {}, and this is {id}", card.embedder)));
        }
        let references = serde_json::from_slice(&files.references)
            .map_err(|error| unusable(format!("reference.json: {error}")))?;
        let projection = Projection::of(&files.project);
        Ok(Self { files, card, projection, references, encoder: encoder.into(), place: place.to_owned() })
    }

    /// Sessions for one worker.
    pub(super) fn open(&self, environment: &Environment) -> Result<HeadSessions, LoadError> {
        let session = |bytes: &[u8]| -> ort::Result<Session> {
            Session::builder(environment)?.with_intra_threads(1)?.commit_from_memory(bytes)
        };
        let sessions = || -> ort::Result<HeadSessions> {
            Ok(HeadSessions {
                full_similarity: self.card.full_similarity,
                slope: self.card.slope,
                window: self.card.window,
                prior: self.card.prior.clone(),
                projection: self.projection,
                project: session(&self.files.project)?,
                compare: session(&self.files.compare)?,
            })
        };
        sessions().map_err(|error| self.unusable(in_one_line(&error)))
    }

    /// The error for a head that is there and does not work.
    pub(super) fn unusable(&self, reason: String) -> LoadError {
        let (encoder, place) = (self.encoder.clone(), self.place.clone());
        LoadError::Verifier { encoder, place, reason: reason.into() }
    }

    /// Fails when an answer is not what it was when the head was trained.
    pub(super) fn check(&self, reference: &Reference, logit: f32) -> Result<(), LoadError> {
        let (probability, expected) = (sigmoid(logit), sigmoid(reference.logit));
        let off = (probability - expected).abs();
        // So written, an answer that is no number fails.
        if off <= TOLERANCE {
            return Ok(());
        }
        Err(self.unusable(format!("it gives {probability:.3} to a reference pair, and not {expected:.3}")))
    }
}

impl HeadSessions {
    /// A text's tokens, from their numbers and the encoder's vectors, token by token.
    pub(super) fn project(&mut self, ids: &[u32], hidden: &[f32]) -> Result<Tokens, EmbedError> {
        let shape = [ids.len(), hidden.len() / ids.len().max(1)];
        let input = TensorRef::from_array_view((shape, hidden)).map_err(failed)?;
        let outputs = self.project.run(ort::inputs!["hidden" => input]).map_err(failed)?;
        let (_, projected) = outputs["projected"].try_extract_tensor::<f32>().map_err(failed)?;
        Tokens::try_new(self.projection, ids.to_vec(), projected)
            .ok_or_else(|| EmbedError::Failed("the head's projection does not come out even".into()))
    }

    /// The probability that one answer serves both, given their similarity, for texts of a length
    /// that the head was tried on. What is far apart as a
    /// whole must be all the more alike word by word; what is near gets no credit for that, since a
    /// question with one word flipped is nearest of all.
    pub(super) fn compare(
        &mut self,
        asked: &Tokens,
        stored: &Tokens,
        similarity: f32,
    ) -> Result<f32, EmbedError> {
        if asked.ids().len().max(stored.ids().len()) > self.window {
            return Err(EmbedError::TooLong { window: self.window });
        }
        // What is the same to the encoder is nothing to compare: the head learned from pairs that differ.
        if asked.ids() == stored.ids() {
            return Ok(1.0);
        }
        let logit = self.logit(asked, stored)? + self.prior.of(asked.ids(), stored.ids());
        Ok(sigmoid(logit + self.slope * (similarity - self.full_similarity).min(0.0)))
    }

    /// What the graph says of two texts, as it was trained.
    pub(super) fn logit(&mut self, asked: &Tokens, stored: &Tokens) -> Result<f32, EmbedError> {
        if !asked.is_comparable(stored) {
            return Err(EmbedError::Failed("the stored tokens are of another head".into()));
        }
        let vectors = |tokens: &Tokens| tokens.vectors().collect::<Vec<f32>>();
        let ids = |tokens: &Tokens| tokens.ids().iter().map(|id| i64::from(*id)).collect::<Vec<i64>>();
        let (a, b, a_ids, b_ids) = (vectors(asked), vectors(stored), ids(asked), ids(stored));
        let inputs = ort::inputs![
            "a" => TensorRef::from_array_view(([a_ids.len(), asked.width()], &*a)).map_err(failed)?,
            "a_ids" => TensorRef::from_array_view(([a_ids.len()], &*a_ids)).map_err(failed)?,
            "b" => TensorRef::from_array_view(([b_ids.len(), stored.width()], &*b)).map_err(failed)?,
            "b_ids" => TensorRef::from_array_view(([b_ids.len()], &*b_ids)).map_err(failed)?,
        ];
        let outputs = self.compare.run(inputs).map_err(failed)?;
        let (_, logit) = outputs["logit"].try_extract_tensor::<f32>().map_err(failed)?;
        Ok(logit.first().copied().unwrap_or(f32::NAN))
    }
}

fn sigmoid(logit: f32) -> f32 {
    1.0 / (1.0 + (-logit).exp())
}

fn failed(error: impl std::fmt::Display) -> EmbedError {
    EmbedError::Failed(error.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prior_goes_by_how_many_tokens_differ() {
        let prior = Prior { by_differing: vec![-3.0, -2.0, 0.0, 1.0], light: [7, 8].into() };
        for (a, b, expected) in [
            (&[1, 2, 3][..], &[3, 2, 1][..], -3.0),
            (&[1, 2, 3], &[1, 7, 2, 8, 3], -3.0),
            (&[1, 2, 3], &[1, 2, 4], -2.0),
            (&[1, 2, 3], &[1, 2, 3, 3], -2.0),
            (&[1, 2, 3], &[1, 2, 3, 4, 5], 0.0),
            (&[1, 2, 3], &[4, 5, 6], 1.0),
            (&[1], &[1, 2, 3, 4, 5, 6, 9], 1.0),
        ] {
            for found in [prior.of(a, b), prior.of(b, a)] {
                assert!((found - expected).abs() < f32::EPSILON, "{a:?} {b:?}: {found}");
            }
        }
        assert!(Prior::default().of(&[1], &[1]).abs() < f32::EPSILON, "none is known by default");
    }
}

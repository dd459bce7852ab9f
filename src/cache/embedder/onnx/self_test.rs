//! Is this embedder any good?
//!
//! A wrong pooling, a truncated file or a tokenizer of another model give vectors as readily as
//! the right ones, and then every question is like every other. A few pairs at the start tell.

use crate::cache::embedder::EmbedError;
use crate::config::Covers;

/// A question, the same in other words, and one that has nothing to do with it.
type Triple = [&'static str; 3];

const ENGLISH: &[Triple] = &[
    [
        "How do I reset my password?",
        "How can I reset the password of my account?",
        "What is the capital of France?",
    ],
    ["What are the opening hours of the library?", "When is the library open?", "How do I boil an egg?"],
];

const ELSEWHERE: &[Triple] = &[
    ["怎么重置我的密码？", "如何重置我的密码？", "法国的首都是哪里？"],
    [
        "¿Cómo puedo restablecer mi contraseña?",
        "¿Cómo restablezco la contraseña?",
        "¿Cuál es la capital de Francia?",
    ],
];

/// Above this, two unrelated questions have the same vector.
const SAME: f32 = 0.999;

/// Puts the pairs through `embed`; returns the vectors' length. Fails with what is wrong, in a
/// few words.
pub(super) fn run(
    covers: Covers,
    mut embed: impl FnMut(&str) -> Result<Vec<f32>, EmbedError>,
) -> Result<usize, String> {
    let triples = match covers {
        Covers::English => ENGLISH.iter().chain(&[]),
        Covers::All => ENGLISH.iter().chain(ELSEWHERE),
    };
    let mut dimensions = None;
    for triple in triples {
        let mut vectors = Vec::new();
        for text in triple {
            let vector = embed(text).map_err(|error| format!("{text:?} gave no vector: {error}"))?;
            check(&vector, *dimensions.get_or_insert(vector.len()))?;
            vectors.push(vector);
        }
        let alike = cosine(&vectors[0], &vectors[1]);
        let unrelated = cosine(&vectors[0], &vectors[2]);
        if unrelated >= SAME {
            return Err("all its vectors are equal".into());
        }
        if alike <= unrelated {
            return Err(format!(
                "{:?} is to it less like {:?} ({alike:.2}) than like {:?} ({unrelated:.2})",
                triple[0], triple[1], triple[2]
            ));
        }
    }
    dimensions.ok_or_else(|| "there is nothing to test it with".into())
}

/// Whether this can be the vector of a text: of the right length, finite, of unit length.
pub(super) fn check(vector: &[f32], dimensions: usize) -> Result<(), String> {
    if vector.is_empty() || vector.len() != dimensions {
        return Err(format!("a vector has {} dimensions instead of {dimensions}", vector.len()));
    }
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if !norm.is_finite() {
        return Err("a vector holds what is no number".into());
    }
    if (norm - 1.0).abs() > 0.01 {
        return Err(format!("a vector's length is {norm} instead of 1"));
    }
    Ok(())
}

/// The cosine of two vectors of unit length.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vector in the plane for each text: `angles` by place in the triple.
    fn embedder(angles: [f32; 3]) -> impl FnMut(&str) -> Result<Vec<f32>, EmbedError> {
        move |text| {
            let place = ENGLISH
                .iter()
                .chain(ELSEWHERE)
                .find_map(|triple| triple.iter().position(|known| *known == text))
                .unwrap();
            Ok(vec![angles[place].cos(), angles[place].sin()])
        }
    }

    #[test]
    fn a_good_embedder_passes() {
        for covers in [Covers::English, Covers::All] {
            assert_eq!(run(covers, embedder([0.0, 0.3, 1.2])), Ok(2));
        }
    }

    #[test]
    fn a_broken_one_is_told_what_is_wrong() {
        let refused = |angles| run(Covers::English, embedder(angles)).unwrap_err();
        assert!(refused([0.5, 0.5, 0.5]).contains("equal"));
        assert!(refused([0.0, 1.2, 0.3]).contains("less like"));
        assert!(refused([f32::NAN, 0.3, 1.2]).contains("no number"));
        let mut calls = 0;
        let wrong_size = run(Covers::English, |_| {
            calls += 1;
            Ok(if calls == 1 { vec![1.0, 0.0] } else { vec![1.0] })
        });
        assert!(wrong_size.unwrap_err().contains("1 dimensions instead of 2"));
        assert!(run(Covers::All, |_| Ok(vec![0.0, 0.0])).unwrap_err().contains("length is 0"));
        assert!(run(Covers::All, |_| Ok(vec![])).unwrap_err().contains("dimensions"));
        assert!(
            run(Covers::All, |_| Err(EmbedError::Failed("no".into()))).unwrap_err().contains("no vector")
        );
    }
}

//! What a head compares of a text: its tokens, and what the embedder says of each in short.
//!
//! Stored beside the entry, so that no candidate is encoded twice: half precision, a few kilobytes
//! for a question.

use half::f16;
use sha2::{Digest, Sha256};

/// The form of the bytes below; another one is not read.
const FORM: u8 = 2;

/// Bytes of a [`Projection`].
const PROJECTION: usize = 8;

/// Which head's projection shortened the tokens: the beginning of its digest. Numbers of two
/// projections lie in different spaces; compared all the same, they say nothing and look as if
/// they did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projection([u8; PROJECTION]);

impl Projection {
    /// The projection that this graph computes.
    pub fn of(graph: &[u8]) -> Self {
        let digest: [u8; 32] = Sha256::digest(graph).into();
        let mut short = [0; PROJECTION];
        short.copy_from_slice(&digest[..PROJECTION]);
        Self(short)
    }
}

/// The tokens of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Tokens {
    projection: Projection,
    ids: Box<[u32]>,
    /// `width` numbers for each id.
    vectors: Box<[f16]>,
}

impl Tokens {
    /// Tokens with as many numbers for each as fit; `None` when they do not come out even, or when
    /// there are none.
    pub fn try_new(projection: Projection, ids: Vec<u32>, vectors: &[f32]) -> Option<Self> {
        let even = !ids.is_empty() && !vectors.is_empty() && vectors.len().is_multiple_of(ids.len());
        even.then(|| Self {
            projection,
            ids: ids.into(),
            vectors: vectors.iter().copied().map(f16::from_f32).collect(),
        })
    }

    /// The tokens' numbers in the embedder's vocabulary.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Whether a head can compare both: one projection made them.
    pub fn is_comparable(&self, other: &Self) -> bool {
        self.projection == other.projection && self.width() == other.width()
    }

    /// Numbers for each token.
    pub fn width(&self) -> usize {
        self.vectors.len() / self.ids.len()
    }

    /// The numbers, token by token.
    pub fn vectors(&self) -> impl Iterator<Item = f32> {
        self.vectors.iter().map(|value| value.to_f32())
    }

    /// About how many bytes they hold in memory.
    pub fn weight(&self) -> usize {
        size_of_val(&*self.ids) + size_of_val(&*self.vectors)
    }

    /// As bytes, for storing: the form, the projection, how many tokens (four bytes, little endian
    /// as all that follows), their ids, their numbers.
    pub fn to_bytes(&self) -> Vec<u8> {
        let count = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(5 + PROJECTION + self.weight());
        bytes.push(FORM);
        bytes.extend(self.projection.0);
        bytes.extend(count.to_le_bytes());
        bytes.extend(self.ids.iter().flat_map(|id| id.to_le_bytes()));
        bytes.extend(self.vectors.iter().flat_map(|value| value.to_le_bytes()));
        bytes
    }

    /// Back from bytes; `None` when they are none of ours, or not whole.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (form, rest) = bytes.split_first()?;
        let (projection, rest) = rest.split_first_chunk::<PROJECTION>()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
        let (ids, vectors) = rest.split_at_checked(count.checked_mul(4)?)?;
        let (ids, _) = ids.as_chunks::<4>();
        let (vectors, odd) = vectors.as_chunks::<2>();
        let whole = *form == FORM && odd.is_empty() && count > 0;
        if !whole || vectors.is_empty() || !vectors.len().is_multiple_of(count) {
            return None;
        }
        Some(Self {
            projection: Projection(*projection),
            ids: ids.iter().map(|id| u32::from_le_bytes(*id)).collect(),
            vectors: vectors.iter().map(|value| f16::from_le_bytes(*value)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_come_back_as_they_went(
            ids in prop::collection::vec(any::<u32>(), 1..40),
            width in 1_usize..8,
            value in -100.0_f32..100.0,
        ) {
            let tokens = Tokens::try_new(Projection::of(&[]), ids.clone(), &vec![value; ids.len() * width]).expect("even");
            prop_assert_eq!(tokens.width(), width);
            prop_assert_eq!(Tokens::from_bytes(&tokens.to_bytes()), Some(tokens));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(tokens) = Tokens::from_bytes(&bytes) {
                prop_assert_eq!(tokens.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn what_does_not_come_out_even_is_none() {
        let projection = Projection::of(b"graph");
        assert_eq!(Tokens::try_new(projection, vec![1, 2], &[0.5; 3]), None);
        assert_eq!(Tokens::try_new(projection, Vec::new(), &[]), None);
        assert_eq!(Tokens::try_new(projection, vec![1], &[]), None);
        let whole = Tokens::try_new(projection, vec![7, 8], &[0.5; 4]).expect("even").to_bytes();
        for cut in 0..whole.len() - 4 {
            assert_eq!(Tokens::from_bytes(&whole[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn only_what_one_projection_made_is_comparable() {
        let of = |graph: &[u8], width: usize| {
            Tokens::try_new(Projection::of(graph), vec![7], &vec![0.5; width]).expect("even")
        };
        let tokens = of(b"one", 4);
        assert!(tokens.is_comparable(&of(b"one", 4)));
        assert!(!tokens.is_comparable(&of(b"another", 4)), "of the same width, and of another space");
        assert!(!tokens.is_comparable(&of(b"one", 8)));
        let stored = Tokens::from_bytes(&tokens.to_bytes()).expect("whole");
        assert!(tokens.is_comparable(&stored) && !of(b"another", 4).is_comparable(&stored));
    }
}

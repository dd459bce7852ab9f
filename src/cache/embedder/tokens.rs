//! What a head compares of a text: its tokens, and what the embedder says of each in short.
//!
//! Stored beside the entry, so that no candidate is encoded twice: half precision, a few kilobytes
//! for a question.

use half::f16;

/// The form of the bytes below; another one is not read.
const FORM: u8 = 1;

/// The tokens of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Tokens {
    ids: Box<[u32]>,
    /// `width` numbers for each id.
    vectors: Box<[f16]>,
}

impl Tokens {
    /// Tokens with as many numbers for each as fit; `None` when they do not come out even, or when
    /// there are none.
    pub fn try_new(ids: Vec<u32>, vectors: &[f32]) -> Option<Self> {
        let even = !ids.is_empty() && !vectors.is_empty() && vectors.len().is_multiple_of(ids.len());
        even.then(|| Self { ids: ids.into(), vectors: vectors.iter().copied().map(f16::from_f32).collect() })
    }

    /// The tokens' numbers in the embedder's vocabulary.
    pub fn ids(&self) -> &[u32] {
        &self.ids
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

    /// As bytes, for storing: the form, how many tokens (four bytes, little endian as all that
    /// follows), their ids, their numbers.
    pub fn to_bytes(&self) -> Vec<u8> {
        let count = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(5 + self.weight());
        bytes.push(FORM);
        bytes.extend(count.to_le_bytes());
        bytes.extend(self.ids.iter().flat_map(|id| id.to_le_bytes()));
        bytes.extend(self.vectors.iter().flat_map(|value| value.to_le_bytes()));
        bytes
    }

    /// Back from bytes; `None` when they are none of ours, or not whole.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (form, rest) = bytes.split_first()?;
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
            let tokens = Tokens::try_new(ids.clone(), &vec![value; ids.len() * width]).expect("even");
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
        assert_eq!(Tokens::try_new(vec![1, 2], &[0.5; 3]), None);
        assert_eq!(Tokens::try_new(Vec::new(), &[]), None);
        assert_eq!(Tokens::try_new(vec![1], &[]), None);
        let whole = Tokens::try_new(vec![7, 8], &[0.5; 4]).expect("even").to_bytes();
        for cut in 0..whole.len() - 4 {
            assert_eq!(Tokens::from_bytes(&whole[..cut]), None, "{cut}");
        }
    }
}

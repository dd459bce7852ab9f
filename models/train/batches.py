"""Pairs as padded arrays, in buckets of similar length, made from kept vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from head import Text
from pairs import Pair
from vectors import PREFIX, Vectors

BUCKETS = [12, 16, 22, 34, 78]
# What an idf is divided by, so that 1 is usual.
IDF_UNIT = 6.0
# Tokens before the body: the first special one, and those of the prefix (`▁que`, `ry`, `:`).
BEFORE = {"bge-small-en-v1.5": 1, "multilingual-e5-small": 4}
# Whether the sentence row comes from the mean of all tokens; else from the first one.
MEAN = {"bge-small-en-v1.5": False, "multilingual-e5-small": True}

assert BEFORE.keys() == MEAN.keys() == PREFIX.keys()


@dataclass
class Standard:
    """Mean and spread of an encoder's token and sentence vectors."""

    token_mean: np.ndarray
    token_spread: np.ndarray
    sentence_mean: np.ndarray
    sentence_spread: np.ndarray


class Texts:
    """The texts of some vectors with what the head wants of each."""

    def __init__(self, vectors: Vectors, encoder: str) -> None:
        self.vectors = vectors
        self.before = BEFORE[encoder]
        self.start = vectors.start + self.before
        self.length = vectors.length - self.before - 1
        if MEAN[encoder]:
            self.sentence = np.stack(
                [
                    vectors.hidden[start : start + length].astype(np.float32).mean(0)
                    for start, length in zip(vectors.start, vectors.length, strict=True)
                ]
            )
        else:
            self.sentence = vectors.hidden[vectors.start].astype(np.float32)

    def rows(self, pairs: list[Pair]) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of both texts of each pair."""
        index = self.vectors.index
        return (
            np.array([index[pair.a] for pair in pairs]),
            np.array([index[pair.b] for pair in pairs]),
        )

    def cosine(self, one: np.ndarray, two: np.ndarray) -> np.ndarray:
        """What the cache compares today: the cosine of the sentence vectors."""
        unit = self.sentence / np.linalg.norm(self.sentence, axis=1, keepdims=True)
        return (unit[one] * unit[two]).sum(1)

    def batch(self, numbers: np.ndarray, size: int, standard: Standard, idf: np.ndarray) -> Text:
        """Texts padded or cut to `size` body tokens."""
        places = np.arange(size)[None]
        mask = places < np.minimum(self.length[numbers], size)[:, None]
        at = np.where(mask, self.start[numbers][:, None] + places, 0)
        ids = self.vectors.ids[at]
        body = (self.vectors.hidden[at].astype(np.float32) - standard.token_mean) * (
            mask[..., None] / standard.token_spread
        )
        first = (self.sentence[numbers] - standard.sentence_mean) / standard.sentence_spread
        return Text(
            first.astype(np.float32),
            body.astype(np.float32),
            np.where(mask, ids, -1),
            np.where(mask, idf[ids].astype(np.float32) / IDF_UNIT, 0).astype(np.float32),
            mask.astype(np.float32),
        )


def in_buckets(
    lengths: np.ndarray, size: int, random: np.random.Generator | None = None
) -> Iterator[tuple[np.ndarray, int]]:
    """Numbers of pairs of like length, at most `size` together, with the length to pad to.

    With a random source the batches come mixed; without, each bucket in order.
    """
    bucket = np.searchsorted(BUCKETS, np.minimum(lengths, BUCKETS[-1]))
    found: list[tuple[np.ndarray, int]] = []
    for number, length in enumerate(BUCKETS):
        members = np.flatnonzero(bucket == number)
        if random is not None:
            random.shuffle(members)
        found += [(members[at : at + size], length) for at in range(0, len(members), size)]
    order = range(len(found)) if random is None else random.permutation(len(found))
    for number in order:
        yield found[number]


def padded(members: np.ndarray, size: int) -> np.ndarray:
    """Members repeated to a full batch, so that every batch has one shape."""
    return np.resize(members, size)

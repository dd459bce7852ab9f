"""More pairs out of labelled ones: what follows from them, and near questions of other groups.

    python mine.py --encoder bge-small-en-v1.5 --vectors VECTORS --out mined_en.tsv real_en.tsv

Same as the same is the same: two wordings of a third question make a pair (label 1). Near questions
that no label connects are taken for different (label 0): that is what a cache compares all day, and
what labelled pairs hold little of. Some of them are the same after all, so the nearest are left out
and `train.py` trusts this kind less (`DOUBT`).
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np

from batches import Texts
from pairs import Pair, read_pairs, write_pairs
from vectors import Vectors

# Larger groups are chains of mistakes.
LARGEST = 6
CHUNK = 500


class Groups:
    """Questions that labels connect."""

    def __init__(self, pairs: list[Pair]) -> None:
        self.parent: dict[str, str] = {}
        for pair in pairs:
            if pair.label == 1:
                self.parent[self.of(pair.a)] = self.of(pair.b)

    def of(self, text: str) -> str:
        while self.parent.setdefault(text, text) != text:
            self.parent[text] = text = self.parent[self.parent[text]]
        return text


def followed(pairs: list[Pair], groups: Groups, total: int, random: Random) -> list[Pair]:
    """Pairs within a group that no label names, at most a few of each group."""
    members: dict[str, list[str]] = {}
    for text in dict.fromkeys(text for pair in pairs for text in pair.texts):
        members.setdefault(groups.of(text), []).append(text)
    known = {frozenset(pair.texts) for pair in pairs}
    found = [
        Pair(a, b, 1, "followed")
        for texts in members.values()
        if 2 < len(texts) <= LARGEST
        for number, a in enumerate(texts)
        for b in texts[:number]
        if frozenset((a, b)) not in known
    ]
    return random.sample(found, min(total, len(found)))


def near(
    pairs: list[Pair], groups: Groups, texts: Texts, total: int, between: tuple[float, float],
    random: Random,
) -> list[Pair]:  # fmt: skip
    """Pairs of questions of different groups, as similar as `between` says."""
    names = list(dict.fromkeys(text for pair in pairs for text in pair.texts))
    unit = texts.sentence[[texts.vectors.index[name] for name in names]]
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    known = {frozenset(pair.texts) for pair in pairs}
    asked = random.sample(range(len(names)), min(total, len(names)))
    found: dict[frozenset[str], Pair] = {}
    for at in range(0, len(asked), CHUNK):
        part = asked[at : at + CHUNK]
        cosine = unit[part] @ unit.T
        nearest = np.argpartition(-cosine, 12, axis=1)[:, :12]
        for row, number in enumerate(part):
            fitting = [
                other for other in sorted(nearest[row], key=lambda other: -cosine[row, other])
                if between[0] <= cosine[row, other] < between[1]
                and groups.of(names[other]) != groups.of(names[number])
                and frozenset((names[number], names[other])) not in known
            ]  # fmt: skip
            if fitting:
                one, two = names[number], names[random.choice(fitting[:4])]
                found[frozenset((one, two))] = Pair(one, two, 0, "near")
    return list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--followed", type=int, default=8000)
    parser.add_argument("--near", type=int, default=24000)
    parser.add_argument("--between", type=float, nargs=2, default=(0.72, 0.86))
    arguments = parser.parse_args()

    random = Random(arguments.seed)
    pairs = [pair for file in arguments.pairs for pair in read_pairs(file)]
    groups = Groups(pairs)
    texts = Texts(Vectors(arguments.vectors), arguments.encoder)
    made = followed(pairs, groups, arguments.followed, random)
    made += near(pairs, groups, texts, arguments.near, tuple(arguments.between), random)
    random.shuffle(made)
    write_pairs(arguments.out, made)
    for kind, count in Counter(pair.kind for pair in made).items():
        print(f"{count:6} {kind}")


if __name__ == "__main__":
    main()

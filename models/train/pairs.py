"""Pairs of questions: reading them, drawing a training sample, and making more by edits.

    python pairs.py real --out real_en.tsv --take 30000 --exclude DEV.tsv... -- TRAIN_EN.tsv
    python pairs.py made --out made_en.tsv --language en --different 12000 --same 9000 \\
        --exclude DEV.tsv STREAM.tsv... -- real_en.tsv

Files have the columns a, b, label (1: one answer serves both), kind; further columns are ignored.
`real` draws the same number from each kind, as far as there are so many. `made` edits real
questions so that the answer changes (label 0) or does not (label 1), and composes short requests
from a small grammar. Both leave out every pair with a text of the excluded files.
"""

from __future__ import annotations

import argparse
import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

import edits_en
import edits_zh
from compose import compose
from edits_en import Edit
from requests_of import requests


@dataclass(frozen=True)
class Pair:
    """Two questions, whether one answer serves both, and where the pair comes from."""

    a: str
    b: str
    label: int
    kind: str

    @property
    def texts(self) -> tuple[str, str]:
        return self.a, self.b


def read_pairs(path: Path) -> list[Pair]:
    """All pairs of a file, in order."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(rows)
        return [Pair(row[0], row[1], int(row[2]), row[3]) for row in rows]


def read_texts(path: Path) -> list[str]:
    """All questions of a file of pairs, or of a stream (it has a column `text`)."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        heading = next(rows)
        columns = [heading.index("text")] if "text" in heading else [0, 1]
        return [row[column] for row in rows for column in columns]


def read_some(named: str) -> list[Pair]:
    """The pairs of `FILE`, or the first N of `FILE:N`."""
    path, _, count = named.rpartition(":")
    return (
        read_pairs(Path(path))[: int(count)]
        if path and count.isdigit()
        else read_pairs(Path(named))
    )


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    """Writes what `read_pairs` reads; tabs and line breaks within a text become spaces."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write("a\tb\tlabel\tkind\n")
        for pair in pairs:
            a, b = (re.sub(r"\s+", " ", text).strip() for text in pair.texts)
            file.write(f"{a}\t{b}\t{pair.label}\t{pair.kind}\n")


def plain(text: str) -> str:
    """A text without case, signs and spaces: what `--exclude` compares."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).lower())


def units(text: str) -> set[str]:
    """Words, and single signs of scripts without spaces."""
    return set(re.findall(r"[a-z0-9']+|[^\x00-\x7f\W]", text.lower()))


def without(pairs: Iterable[Pair], excluded: set[str]) -> list[Pair]:
    return [pair for pair in pairs if not {plain(text) for text in pair.texts} & excluded]


def draw(pairs: list[Pair], take: int, random: Random) -> list[Pair]:
    """At most `take` pairs, as many of each kind as of the others where there are so many."""
    kinds: dict[str, list[Pair]] = {}
    for pair in pairs:
        kinds.setdefault(pair.kind, []).append(pair)
    drawn: list[Pair] = []
    for done, kind in enumerate(sorted(kinds, key=lambda kind: (len(kinds[kind]), kind))):
        share = (take - len(drawn)) // (len(kinds) - done)
        drawn += random.sample(kinds[kind], min(share, len(kinds[kind])))
    random.shuffle(drawn)
    return drawn


class Maker:
    """Makes pairs of one language out of real ones, the same ones for the same seed."""

    def __init__(self, language: str, real: list[Pair], random: Random) -> None:
        self.language = language
        self.random = random
        self.texts = list(dict.fromkeys(text for pair in real for text in pair.texts))
        self.same_pairs = [pair for pair in real if pair.label == 1]
        if language == "en":
            found = (re.findall(r"(?<=[a-z,] )[A-Z][a-z]{2,}", text) for text in self.texts)
            counts = Counter(name for names in found for name in names)
            names = sorted(name for name, count in counts.items() if count >= 3)
            contexts = edits_en.Contexts(self.texts)
            self.different, self.same = edits_en.different(names, contexts), edits_en.SAME
            self.added_time = edits_en.added_time
        else:
            self.different, self.same = edits_zh.DIFFERENT, edits_zh.SAME
            self.added_time = edits_zh.added_time

    def edited(self, edits: dict[str, Edit], label: int, total: int) -> Iterator[Pair]:
        """As many pairs per edit as there are, up to an equal share of `total`.

        A part compares with another wording instead of with the edited question itself, so that
        "all but one word the same" does not give the label away.
        What was edited must stand in the other wording too: what only one names may change.
        """
        for name, edit in edits.items():
            share = total // len(edits)
            sources = [(text, text) for text in self.texts]
            sources += [self.random.choice([p.texts, p.texts[::-1]]) for p in self.same_pairs]
            self.random.shuffle(sources)
            for other, text in sources:
                if share == 0:
                    break
                made = edit(text, self.random) if 4 < len(text) < 140 else None
                if made is None or plain(made) == plain(text) and label == 0:
                    continue
                if not units(text) - units(made) <= units(other):
                    continue
                if other == text and self.random.random() < 0.3:
                    other = self.reworded(text)
                if other == text and self.random.random() < 0.15:
                    made = self.reworded(made)
                if other != made:
                    share -= 1
                    yield self.pair(other, made, label, f"{self.language}:{name}")

    def reworded(self, text: str) -> str:
        """The text after an edit that does not change the answer, where the first try applies."""
        edit = self.random.choice(list(self.same.values()))
        return edit(text, self.random) or text

    def times(self, total: int) -> Iterator[Pair]:
        """Pairs that differ in a time that was put into both, and pairs where it is the same."""
        for text in self.random.sample(self.texts, len(self.texts)):
            made = self.added_time(text, self.random) if total > 0 else None
            if made:
                total -= 3
                first, second = made
                yield self.pair(first, second, 0, f"{self.language}:added_time")
                yield self.pair(self.reworded(first), second, 0, f"{self.language}:added_time")
                yield self.pair(first, self.reworded(first), 1, f"{self.language}:same_time")

    def composed(self, total: int) -> Iterator[Pair]:
        for a, b, label, kind in islice(compose(self.language, self.random), total):
            yield self.pair(a, b, label, f"{self.language}:{kind}")

    def requested(self, total: int) -> Iterator[Pair]:
        for a, b, label, kind in islice(requests(self.language, self.random), total):
            yield self.pair(a, b, label, f"{self.language}:{kind}")

    def pair(self, a: str, b: str, label: int, kind: str) -> Pair:
        a, b = (a, b) if self.random.random() < 0.5 else (b, a)
        return Pair(a, b, label, kind)


def made_pairs(maker: Maker, arguments: argparse.Namespace) -> list[Pair]:
    pairs = [
        *maker.edited(maker.different, 0, arguments.different),
        *maker.edited(maker.same, 1, arguments.same),
        *maker.times(arguments.times),
        *maker.composed(arguments.composed),
        *maker.requested(arguments.requests),
    ]
    unique = {pair.texts: pair for pair in pairs if pair.a != pair.b}
    pairs = list(unique.values())
    maker.random.shuffle(pairs)
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("task", choices=["real", "made"])
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--exclude", type=Path, nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--take", type=int, default=30000)
    parser.add_argument("--language", choices=["en", "zh"], default="en")
    parser.add_argument("--different", type=int, default=12000)
    parser.add_argument("--same", type=int, default=9000)
    parser.add_argument("--times", type=int, default=1500)
    parser.add_argument("--composed", type=int, default=5000)
    parser.add_argument("--requests", type=int, default=30000)
    arguments = parser.parse_args()

    random = Random(arguments.seed)
    excluded = {plain(text) for file in arguments.exclude for text in read_texts(file)}
    pairs = without((pair for file in arguments.pairs for pair in read_pairs(file)), excluded)
    if arguments.task == "real":
        pairs = draw(pairs, arguments.take, random)
    else:
        pairs = made_pairs(Maker(arguments.language, pairs, random), arguments)
        pairs = without(pairs, excluded)
    write_pairs(arguments.out, pairs)
    kinds = Counter((pair.kind, pair.label) for pair in pairs)
    for (kind, label), count in sorted(kinds.items()):
        print(f"{count:6} {kind} label {label}")
    print(f"{len(pairs):6} pairs in {arguments.out}")


if __name__ == "__main__":
    main()

"""Replays a stream of questions through encoder and head: hits and errors by threshold.

    python stream.py --graphs models/verifier/ENCODER --encoder models/ENCODER STREAM.tsv

The cache starts empty; a miss stores the question, a hit is right when the classes are equal. The
nearest candidates by cosine are judged, and the best probability decides: that of the head alone,
and, where the folder has a head.json, with its slope and prior. Each threshold has a cache of
its own, because what is stored depends on what was served. `refrain eval` measures the whole
policy, rules and all; this shows what the head is worth, beside cosine at its best threshold.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import Counter
from pathlib import Path

import numpy as np

from batches import MEAN
from export import Graphs

CANDIDATES = 5
FLOOR = {"bge-small-en-v1.5": 0.6, "multilingual-e5-small": 0.85}
PROBABILITIES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.95)


def replay(classes: list[str], likeness: np.ndarray, threshold: float) -> tuple[float, float]:
    """Hit rate and error (wrong hits of all requests) when likeness [new, stored] decides."""
    stored: list[int] = []
    hits = wrong = 0
    for number in range(len(classes)):
        best = max(stored, key=lambda other: likeness[number, other], default=None)
        if best is not None and likeness[number, best] >= threshold:
            hits += 1
            wrong += classes[best] != classes[number]
        else:
            stored.append(number)
    return hits / len(classes), wrong / len(classes)


class Card:
    """What head.json adds to a logit, as the server computes it."""

    def __init__(self, folder: Path) -> None:
        path = folder / "head.json"
        card = json.loads(path.read_text()) if path.exists() else {}
        self.slope = card.get("slope", 0.0)
        self.full = card.get("full_similarity", 1.0)
        prior = card.get("prior", {"by_differing": [0.0], "light": []})
        self.table, self.light = prior["by_differing"], set(prior["light"])

    def added(self, a: np.ndarray, b: np.ndarray, cosine: float) -> float:
        one, two = (Counter(i for i in ids.tolist() if i not in self.light) for ids in (a, b))
        differing = max((one - two).total(), (two - one).total())
        prior = self.table[min(differing, len(self.table) - 1)]
        return self.slope * min(0.0, cosine - self.full) + prior


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("stream", type=Path)
    parser.add_argument("--graphs", type=Path, required=True)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--take", type=int, default=0, help="questions; 0: all")
    arguments = parser.parse_args()

    with arguments.stream.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    rows = rows[: arguments.take or None]
    classes = [row[1] for row in rows]
    graphs = Graphs(arguments.graphs, arguments.encoder)
    texts = [graphs.text(row[2]) for row in rows]
    mean = MEAN[arguments.encoder.name]
    vectors = np.stack([hidden.mean(0) if mean else hidden[0] for hidden, _, _ in texts])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = vectors @ vectors.T
    chance, fused = np.full_like(cosine, -1), np.full_like(cosine, -1)
    card = Card(arguments.graphs)
    for number in range(1, len(rows)):
        # Every earlier question that one of the caches may have among its nearest.
        near = np.argsort(-cosine[number, :number])[: 2 * CANDIDATES]
        for other in near[cosine[number, near] >= FLOOR[arguments.encoder.name]]:
            logit = graphs.logit(texts[number], texts[other])
            chance[number, other] = 1 / (1 + np.exp(-logit))
            logit += card.added(texts[number][2], texts[other][2], float(cosine[number, other]))
            fused[number, other] = 1 / (1 + np.exp(-logit))
    print("| threshold | head: hits / wrong, % | with slope and prior |\n|---|---|---|")
    for threshold in PROBABILITIES:
        alone, both = (replay(classes, likeness, threshold) for likeness in (chance, fused))
        cells = [f"{hits * 100:.1f} / {wrong * 100:.2f}" for hits, wrong in (alone, both)]
        print(f"| {threshold:.2f} | {' | '.join(cells)} |")
    for name, likeness, steps in (
        ("head", chance, np.arange(0.02, 0.98, 0.01)),
        ("with slope and prior", fused, np.arange(0.02, 0.98, 0.01)),
        ("cosine", cosine, np.arange(0.7, 1, 0.0025)),
    ):
        tried = [(*replay(classes, likeness, step), step) for step in steps]
        for limit in (0.01, 0.02):
            usable = [one for one in tried if one[1] <= limit]
            hits, wrong, step = max(usable, default=(0, 0, 1))
            print(f"{name}, at most {limit:.0%} wrong: {hits:.1%} hits, {wrong:.2%}, at {step:.3f}")


if __name__ == "__main__":
    main()

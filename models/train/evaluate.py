"""Measures a head against plain cosine on development pairs, calibrates it, proposes a threshold.

    python evaluate.py --head HEAD --vectors DEV_VECTORS DEV.tsv...

Prints a table per file and kind: AUC, recall at 1 % and 5 % false positives with Wilson intervals,
for cosine and head; then false positives and recall of each file at fixed probabilities. Writes
HEAD/calibration.json: scale and shift that make sigmoid(logit) a probability (Platt 1999), fitted
on all given pairs, and the threshold. Run `export.py` afterwards, which puts both into the graph.

The vectors must be made one text at a time (`vectors.py --batch 1`), as they are served.
"""

from __future__ import annotations

import os

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import argparse
import json
from pathlib import Path

import jax
import numpy as np

import head
from batches import Texts
from export import Head
from measure import auc, recall_at, threshold_at, wilson
from pairs import read_pairs
from train import Data, logits
from vectors import Vectors

# A kind with fewer pairs of either label gets no row of its own.
SMALLEST = 40
PROBABILITIES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97)
# The threshold aims at this part of the wrong share that is allowed.
MARGIN = 0.5


def platt(label: np.ndarray, score: np.ndarray) -> tuple[float, float]:
    """Scale and shift of the logit that fit the labels best (Newton's method)."""
    rows = np.stack([score, np.ones_like(score)], 1).astype(np.float64)
    fit = np.array([1.0, 0.0])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-rows @ fit))
        slope = rows.T @ (label - chance)
        curve = (rows * (chance * (1 - chance))[:, None]).T @ rows
        fit = fit + np.linalg.solve(curve + 1e-9 * np.eye(2), slope)
    return float(fit[0]), float(fit[1])


def calibration_error(label: np.ndarray, chance: np.ndarray) -> float:
    """Mean distance of probability and share of positives over ten equal groups."""
    groups = np.array_split(np.argsort(chance), 10)
    apart = [len(g) * abs(label[g].mean() - chance[g].mean()) for g in groups]
    return float(sum(apart) / len(label))


def cell(label: np.ndarray, score: np.ndarray) -> str:
    """AUC, and recall at 1 % and 5 % with intervals."""
    parts = [f"{auc(label, score):.3f}"]
    for wrong in (0.01, 0.05):
        recall = recall_at(label, score, wrong)
        total = int((label == 1).sum())
        low, high = wilson(round(recall * total), total)
        parts.append(f"{recall * 100:.0f} ({low * 100:.0f}–{high * 100:.0f})")
    return " / ".join(parts)


def halves(label: np.ndarray, chance: np.ndarray, threshold: float) -> str:
    """False positives and recall at a threshold, in percent with intervals."""
    parts = []
    for value in (0, 1):
        chosen = chance[label == value] >= threshold
        low, high = wilson(int(chosen.sum()), len(chosen))
        parts.append(f"{chosen.mean() * 100:.1f} ({low * 100:.1f}–{high * 100:.1f})")
    return " / ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("--head", type=Path, required=True)
    parser.add_argument("--vectors", type=Path, required=True)
    arguments = parser.parse_args()

    given = Head(arguments.head)
    texts = Texts(Vectors(arguments.vectors), given.encoder)
    known = texts.vectors.index
    rows = [
        (file.stem.removeprefix("pairs_"), pair)
        for file in arguments.pairs
        for pair in read_pairs(file)
        if pair.a in known and pair.b in known
    ]
    data = Data(texts, [pair for _, pair in rows])
    score = logits(given.weights, data, given.standard, given.idf)
    cosine = texts.cosine(data.one, data.two)
    scale, shift = platt(data.label, score)
    chance = 1 / (1 + np.exp(-(scale * score + shift)))

    sets: dict[str, list[int]] = {}
    for number, (name, pair) in enumerate(rows):
        sets.setdefault(f"**{name}**", []).append(number)
        sets.setdefault(f"{name}: {pair.kind}", []).append(number)
    print("| set | pairs same / different | cosine | head |\n|---|---|---|---|")
    for name, numbers in sorted(sets.items()):
        label = data.label[numbers]
        same = int(label.sum())
        if min(same, len(label) - same) >= SMALLEST:
            before, after = cell(label, cosine[numbers]), cell(label, score[numbers])
            print(f"| {name} | {same} / {len(label) - same} | {before} | {after} |")
    full = full_width(given, data)
    print(f"\nf16: all {cell(data.label, score)}; without rounding {cell(data.label, full)};")
    moved = np.abs(full - score)
    print(f"logits move by {moved.mean():.4f} on average, {moved.max():.3f} at most")
    print(f"calibration error {calibration_error(data.label, chance):.3f} (all pairs)\n")

    files = [name for name in sets if name.startswith("**")]
    print("| probability | " + " | ".join(files) + " |\n" + "|---" * (len(files) + 1) + "|")
    wanted = [threshold_at(data.label[sets[name]], chance[sets[name]], 0.01) for name in files]
    for threshold in (*PROBABILITIES, *sorted(wanted)):
        cells = [halves(data.label[sets[name]], chance[sets[name]], threshold) for name in files]
        print(f"| {threshold:.3f} | " + " | ".join(cells) + " |")
    threshold = threshold_at(data.label, chance, 0.01 * MARGIN)
    reached = halves(data.label, chance, threshold)
    print(f"\n{0.01 * MARGIN:.1%} of all wrong: {threshold:.3f}, {reached}")
    (arguments.head / "calibration.json").write_text(
        json.dumps({"scale": scale, "shift": shift, "threshold": round(threshold, 3)}) + "\n"
    )


def full_width(given: Head, data: Data) -> np.ndarray:
    """The logits without rounding the rows to f16."""
    judge = jax.jit(lambda one, two: head.forward(given.weights, one, two, half=False)[0])
    result = np.empty(len(data.label), np.float32)
    for members, (one, two, _, _) in data.batches(64, given.standard, given.idf, None):
        result[members] = np.asarray(judge(one, two))[: len(members)]
    return result


if __name__ == "__main__":
    main()

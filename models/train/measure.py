"""Measures of a score against labels."""

from __future__ import annotations

import numpy as np


def auc(label: np.ndarray, score: np.ndarray) -> float:
    """Area under the ROC curve; ties count half."""
    order = np.argsort(score, kind="stable")
    _, place, count = np.unique(score[order], return_index=True, return_counts=True)
    rank = np.empty(len(score))
    rank[order] = np.repeat(place + (count + 1) / 2, count)
    positive = label == 1
    right = positive.sum()
    wrong = len(label) - right
    return float((rank[positive].sum() - right * (right + 1) / 2) / (right * wrong))


def threshold_at(label: np.ndarray, score: np.ndarray, wrong: float) -> float:
    """The lowest score above which at most the share `wrong` of the negatives lies."""
    negatives = np.sort(score[label == 0])[::-1]
    allowed = int(wrong * len(negatives))
    return float(negatives[min(allowed, len(negatives) - 1)])


def recall_at(label: np.ndarray, score: np.ndarray, wrong: float) -> float:
    """The share of positives above that threshold."""
    return float((score[label == 1] > threshold_at(label, score, wrong)).mean())


def wilson(hits: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    if total == 0:
        return 0.0, 1.0
    share = hits / total
    middle = share + z * z / (2 * total)
    spread = z * np.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return max(0.0, float((middle - spread) / scale)), min(1.0, float((middle + spread) / scale))

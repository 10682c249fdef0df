"""Silhouette: is a row nearer to its own class than to the next one? Rousseeuw 1987.

s = (b − a) / max(a, b), with a the mean distance to the other rows of its class and b the smallest
mean distance to another class; 0 for the only row of a class. Distances are Euclidean between unit
rows. Block by block: n×c sums are kept, never n×n distances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from contrastive_core.embedding_set import EmbeddingSet
from contrastive_core.metrics._base import Metric, MetricResult, labels_of, mean_interval
from contrastive_core.neighbours import Graphs, pick_device, unit_rows

__all__ = ["Silhouette"]

BLOCK = 1024


@dataclass(frozen=True)
class Silhouette(Metric):
    title = "Silhouette"
    reading = (
        "How much nearer a sample is to its own class than to the next (−1 to 1): 1 is tight, "
        "well-parted classes, 0 overlapping ones, below 0 a sample nearer to another class."
    )
    paper = "https://doi.org/10.1016/0377-0427(87)90125-7"
    needs_labels = True

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        labels = labels_of(test, self.title)
        rows = np.flatnonzero(labels >= 0)
        classes, own = np.unique(labels[rows], return_inverse=True)
        x = unit_rows(test.features[rows], pick_device(graphs.device)).double()  # (m, d)
        total = _class_sums(x, torch.from_numpy(own).to(x.device), len(classes))  # (m, c)
        size = np.bincount(own).astype(np.float64)
        row = np.arange(len(own))
        a = total[row, own] / np.maximum(size[own] - 1, 1)
        mean = total / size
        mean[row, own] = np.inf
        b = mean.min(1)
        s = (b - a) / np.maximum(np.maximum(a, b), np.finfo(np.float64).tiny)
        s[size[own] == 1] = 0
        per_sample = np.full(len(test), np.nan)
        per_sample[rows] = s
        extras = {"n": len(rows), "below_0": float((s < 0).mean())}
        return MetricResult(float(s.mean()), per_sample, mean_interval(s), "", extras)


def _class_sums(x: torch.Tensor, own: torch.Tensor, classes: int) -> np.ndarray:
    """Sum of each row's distances to the rows of each class: (m, c), float64."""
    member = torch.nn.functional.one_hot(own, classes).to(x.dtype)  # (m, c)
    total = np.empty((len(x), classes))
    for start in range(0, len(x), BLOCK):
        part = x[start : start + BLOCK]
        away = (2 - 2 * (part @ x.mT)).clamp_min_(0).sqrt_()  # (r, m)
        at = torch.arange(len(part), device=x.device)
        away[at, start + at] = 0
        total[start : start + BLOCK] = (away @ member).cpu().numpy()
    return total

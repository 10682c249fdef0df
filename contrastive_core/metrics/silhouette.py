"""Silhouette: is a row nearer to its own class than to the next one? Rousseeuw 1987.

s = (b − a) / max(a, b), with a the mean distance to the other rows of its class and b the smallest
mean distance to another class; 0 for the only row of a class. Distances are Euclidean between unit
rows. Block by block: n×c sums are kept, never n×n distances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from contrastive_core.distributed.sharded_rows import Rows
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.metrics._base import Metric, MetricResult, labels_of, mean_interval
from contrastive_core.ops.neighbors import pick_device, unit_rows

__all__ = ["Silhouette"]

BLOCK, BASE = 1024, 8192  # rows that meet at a time


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
        assert test.labels is not None
        labels = labels_of(test, self.title, graphs.rows)
        rows = np.flatnonzero(labels >= 0)
        classes, class_index = np.unique(labels[rows], return_inverse=True)
        here = test.features[test.labels >= 0]
        x = unit_rows(here, pick_device(graphs.device)).double()  # (m, d) of this part
        total = _class_sums(
            x, torch.from_numpy(class_index).to(x.device), len(classes), graphs.rows
        )
        size = np.bincount(class_index).astype(np.float64)
        row = np.arange(len(class_index))
        a = total[row, class_index] / np.maximum(size[class_index] - 1, 1)
        mean = total / size
        mean[row, class_index] = np.inf
        b = mean.min(1)
        s = (b - a) / np.maximum(np.maximum(a, b), np.finfo(np.float64).tiny)
        s[size[class_index] == 1] = 0
        per_sample = np.full(len(labels), np.nan)
        per_sample[rows] = s
        extras = {"n": len(rows), "below_0": float((s < 0).mean())}
        return MetricResult(float(s.mean()), per_sample, mean_interval(s), "", extras)


def _class_sums(x: torch.Tensor, class_index: torch.Tensor, classes: int, lie: Rows) -> np.ndarray:
    """Sum of each row's distances to the rows of each class: (m, c), float64, of all parts."""
    member = torch.nn.functional.one_hot(class_index, classes).to(x.dtype)  # (m, c)
    total, first = x.new_zeros(len(x), classes), lie.start(len(x))
    for start, others in lie.blocks(x, BASE):
        of = member[start : start + len(others)]
        for i in range(0, len(x), BLOCK):
            part = x[i : i + BLOCK]
            away = (2 - 2 * (part @ others.mT)).clamp_min_(0).sqrt_()  # (r, c)
            at = torch.arange(len(part), device=x.device) + first + i - start
            inside = (at >= 0) & (at < len(others))
            away[inside.nonzero()[:, 0], at[inside]] = 0
            total[i : i + BLOCK] += away @ of
    return lie.whole(total.cpu().numpy())

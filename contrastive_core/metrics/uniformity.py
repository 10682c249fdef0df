"""Uniformity: how evenly the rows cover the sphere. https://arxiv.org/abs/2005.10242.

log of the mean of exp(−t‖x−y‖²) over all pairs of different rows, block by block. The interval is
that of a U-statistic (variance 4·Var of the row means / n), carried through the logarithm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from contrastive_core.embedding_set import EmbeddingSet
from contrastive_core.metrics._base import Z95, CannotScore, Metric, MetricResult
from contrastive_core.neighbours import Graphs, pick_device, unit_rows
from contrastive_core.registry import knob

__all__ = ["Uniformity"]

BLOCK = 1024


@dataclass(frozen=True)
class Uniformity(Metric):
    title = "Uniformity"
    reading = (
        "Log of the mean Gaussian potential of all pairs on the unit sphere: 0 when all rows "
        "are one point, about −4 when they fill a sphere of many dimensions; lower is more even."
    )
    paper = "https://arxiv.org/abs/2005.10242"
    higher_is_better = False

    t: float = knob(2.0, 0.1, 20, "sharpness of the Gaussian potential")

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        n = len(test)
        if n < 2:
            raise CannotScore("Uniformity needs two rows, and there is one")
        x = unit_rows(test.features, pick_device(graphs.device))  # (n, d)
        row_means = np.empty(n)
        for start in range(0, n, BLOCK):
            rows = x[start : start + BLOCK]
            kernel = (2 * self.t * ((rows @ x.mT).clamp_max(1) - 1)).exp()  # (r, n)
            own = torch.arange(len(rows), device=x.device)
            kernel[own, start + own] = 0
            row_means[start : start + BLOCK] = kernel.sum(1, dtype=torch.float64).cpu() / (n - 1)
        mean = float(row_means.mean())
        value = math.log(max(mean, 1e-300))
        half = Z95 * 2 * float(row_means.std(ddof=1)) / math.sqrt(n) / max(mean, 1e-300)
        return MetricResult(
            value,
            per_sample=np.log(np.maximum(row_means, 1e-300)),
            interval=(value - half, value + half),
            unit="nats",
            extras={"t": self.t, "n": n},
        )

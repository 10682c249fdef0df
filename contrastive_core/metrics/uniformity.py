"""Uniformity: how evenly the rows cover the sphere. https://arxiv.org/abs/2005.10242. log of the mean of exp(−t‖x−y‖²)
over all pairs of different rows, block by block. Above SAMPLE rows, the pairs are those of a fixed random sample; the
record says so. The interval is that of a U-statistic (variance 4·Var of the row means / n), transformed by the
logarithm."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from contrastive_core.base.device import pick_device
from contrastive_core.base.errors import CannotScore
from contrastive_core.base.memory import rows_of_sample
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.base.score import INFLUENCE
from contrastive_core.metrics._base import Metric, MetricResult, mean_interval, placed, sampled
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs, unit_rows

BLOCK, BASE = 1024, 8192  # rows that meet at a time
SAMPLE = 32_000  # rows whose pairs are all taken


@dataclass(frozen=True)
class Uniformity(Metric):
    title = N_("Uniformity")
    reading = N_(
        "Log of the mean Gaussian potential of all pairs on the unit sphere. It is 0 when all rows are one point and "
        "about −4 when they fill a sphere of many dimensions. Lower is more even."
    )
    paper = "https://arxiv.org/abs/2005.10242"
    higher_is_better = False
    t: float = knob(2.0, 0.1, 20, N_("sharpness of the Gaussian potential"))

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        n = len(test)
        if n < 2:
            raise CannotScore(N_("Uniformity needs two rows; got one"))
        chosen = rows_of_sample(n, SAMPLE)
        some = test.features if len(chosen) == n else test.features[chosen]
        x = unit_rows(some, pick_device(graphs.device))  # (m, d)
        sums = x.new_zeros(len(x), dtype=torch.float64)  # Σ exp(−t‖x−y‖²) of each row over all others
        for start in range(0, len(x), BASE):
            part = x[start : start + BASE]
            for i in range(0, len(x), BLOCK):
                rows = x[i : i + BLOCK]
                kernel = (2 * self.t * ((rows @ part.mT).clamp_max(1) - 1)).exp()  # (r, c)
                self_column = torch.arange(len(rows), device=x.device) + i - start
                inside = (self_column >= 0) & (self_column < len(part))
                kernel[inside.nonzero()[:, 0], self_column[inside]] = 0
                sums[i : i + BLOCK] += kernel.sum(1, dtype=torch.float64)
        row_means = sums.cpu().numpy() / (len(chosen) - 1)
        mean = float(row_means.mean())
        value = math.log(max(mean, 1e-300))
        influence = placed(value + 2 * (row_means / max(mean, 1e-300) - 1), chosen, n)
        per_sample = placed(np.log(np.maximum(row_means, 1e-300)), chosen, n)
        extras = {"t": self.t, "n": n} | sampled(chosen, n)
        interval = mean_interval(influence, value)
        return MetricResult(value, per_sample, interval, "nats", extras, {INFLUENCE: influence})

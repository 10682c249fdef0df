"""Hubness: whether a few rows are neighbors of very many others. Source: Radovanović et al. 2010, JMLR 11, 2487. N_k(x)
counts how often x is among the k nearest of the other rows; the score is the skewness of N_k."""

from dataclasses import dataclass

import numpy as np

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.metrics._base import AMONG, Metric, MetricResult
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs


@dataclass(frozen=True)
class Hubness(Metric):
    title = N_("Hubness")
    reading = N_(
        "Skewness of the number of times that a sample is a neighbor of others. Near 0, samples are "
        "chosen equally often. Above about 1, a few hubs dominate, and many samples are nobody's "
        "neighbor."
    )
    paper = "https://jmlr.org/papers/v11/radovanovic10a.html"
    higher_is_better = False
    most = AMONG
    k: int = knob(10, 1, 1000, N_("number of neighbors to count"))

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        n = len(test)
        if self.k > n - 1:
            raise CannotScore("k is {k}, but a sample has only {n} others", k=self.k, n=n - 1)
        graph = graphs.get(test, None, self.k)
        count = np.bincount(graph.index.ravel(), minlength=n).astype(np.float64)  # (n), mean k
        off = count - count.mean()
        spread = float(np.sqrt(np.square(off).mean()))
        skew = float((off**3).mean() / spread**3) if spread > 0 else 0.0
        never = float((count == 0).mean())
        extras = {"k": self.k, "n": n, "largest": int(count.max()), "never": never} | graph.about
        return MetricResult(skew, per_sample=count, extras=extras)

"""Neighbor stability: how many of a row's neighbors stay the same. With augmented views, an image's neighbors among the
first views of all images are compared with the neighbors of its second view among the second views. Without views, the
neighbors in a random half of the columns are compared with those in the other half. Needs no labels. The interval
accounts for a row's effect on the shares of others, where it replaces an average neighbor."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.memory import in_common, lowest_recall
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.metrics._base import AMONG, Metric, MetricResult, moved_by, share_interval
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Approximation, Graphs, nearest


@dataclass(frozen=True)
class NeighborStability(Metric):
    title = N_("Neighbor stability")
    reading = N_(
        "Mean share of a sample's k nearest neighbors that another view of it also finds. Without views, the two "
        "halves of the columns are compared. Chance is k over the number of samples."
    )
    most = AMONG
    k: int = knob(10, 1, 1000, N_("number of neighbors to compare"))
    seed: int = knob(0, 0, 10_000, N_("seed of the split into halves, used without views"))

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        if test.views is not None and test.views.shape[1] > 1:
            a, b, how = test.views[:, 0], test.views[:, 1], N_("augmented views")
        elif test.width < 2:
            raise CannotScore(N_("Neighbor stability needs two columns or two views"))
        else:
            order, half = np.random.default_rng(self.seed).permutation(test.width), test.width // 2
            a, b, how = test.features[:, order[:half]], test.features[:, order[half:]], N_("halves of columns")
        n = len(a)
        if self.k > n - 1:
            raise CannotScore("k is {k}, but a sample has only {n} others", k=self.k, n=n - 1)
        near = partial(nearest, base=None, k=self.k, device=graphs.device, approximate=Approximation())
        first, second = near(a), near(b)
        near_a, near_b = first.index, second.index  # (n, k)
        both = in_common(near_a, near_b)
        share = both.mean(1)
        change = moved_by(near_a, both - share[:, None]) - moved_by(near_b, np.repeat(share[:, None], self.k, 1))
        extras = {"k": self.k, "n": n, "seen": how, "chance": self.k / (n - 1)}
        recall = lowest_recall([first.recall, second.recall])
        extras |= {} if recall is None else {"recall": recall}
        per_sample = share if len(a) == len(test) else None
        value = float(share.mean())
        return MetricResult(value, per_sample, share_interval(share + change / self.k, value), "share", extras)

"""Tolerance: how similar rows of one class are. https://arxiv.org/abs/2012.09740. The mean cosine of all pairs of
different rows of one class, by class sums, O(n·d). It falls as uniformity improves: a low temperature separates
semantically similar rows."""

from dataclasses import dataclass

import numpy as np

from contrastive_core.base.device import pick_device
from contrastive_core.base.errors import CannotScore
from contrastive_core.base.messages import N_
from contrastive_core.base.score import INFLUENCE
from contrastive_core.metrics._base import Metric, MetricResult, mean_interval, pairs_influence
from contrastive_core.metrics.alignment import same_class
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs


@dataclass(frozen=True)
class Tolerance(Metric):
    title = N_("Tolerance")
    reading = N_(
        "Mean cosine of two samples of one class, from −1 to 1. A high value keeps classes together, but 1 with a "
        "uniformity of 0 is a collapsed embedding."
    )
    paper = "https://arxiv.org/abs/2012.09740"
    needs_labels = True

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        away, partners = same_class(test, pick_device(graphs.device))  # squared distances: 2 − 2·cosine
        pairs = partners.sum()
        if not pairs:
            raise CannotScore(N_("Tolerance needs a class with two rows"))
        cosine = 1 - away / 2  # (n)
        value = float((np.nan_to_num(cosine) * partners).sum() / pairs)
        influence = pairs_influence(value, cosine, partners)
        about, arrays = {"pairs": int(pairs) // 2}, {INFLUENCE: influence}
        return MetricResult(value, cosine, mean_interval(influence, value), "similarity", about, arrays)

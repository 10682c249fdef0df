"""Purity: the share of a row's nearest other rows that have its class. Rows without a label are excluded, both as
queries and as neighbors. The interval is a leave-one-out jackknife: without a row, others use their next neighbor. It
is too narrow if a class of about k rows is isolated."""

from dataclasses import dataclass

import numpy as np

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.base.score import INFLUENCE
from contrastive_core.metrics._base import AMONG, Metric, MetricResult, labels_of, moved_by, placed, share_interval
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs


@dataclass(frozen=True)
class Purity(Metric):
    title = N_("Neighborhood purity")
    reading = N_(
        "Mean share of a sample's k nearest neighbors that are of its own class. Samples with a low share are "
        "between classes or mislabeled."
    )
    needs_labels = True
    most = AMONG
    k: int = knob(10, 1, 1000, N_("number of neighbors"))

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        labels = labels_of(test, self.title)
        rows = np.flatnonzero(labels >= 0)
        labeled = test if len(rows) == len(test) else test.take(rows)
        if self.k > len(rows) - 1:
            raise CannotScore("k is {k}, but a sample has only {rows} others", k=self.k, rows=len(rows) - 1)
        graph = graphs.get(labeled, None, min(self.k + 1, len(rows) - 1))
        neighbors, row_labels = graph.index, labels[rows]  # (m, k + 1), the last not counted
        match = (row_labels[neighbors] == row_labels[:, None]).astype(np.float64)
        share = match[:, : self.k].mean(1)  # (m)
        value = float(share.mean())
        change = (match[:, : self.k] - match[:, -1:]) / self.k
        influence = share + moved_by(neighbors[:, : self.k], change)
        chance = float(sum((c / len(row_labels)) ** 2 for c in np.unique(row_labels, return_counts=True)[1]))
        extras = {"k": self.k, "n": len(rows), "chance": chance} | graph.about
        arrays = {INFLUENCE: placed(influence, rows, len(labels))}
        per_sample = placed(share, rows, len(labels))
        return MetricResult(value, per_sample, share_interval(influence, value), "share", extras, arrays)

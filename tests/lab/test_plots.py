"""Records as Plotly figures."""

from __future__ import annotations

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_lab import plots
from contrastive_lab.colors import color_of


def test_curves_hold_what_they_are_given() -> None:
    figure = plots.curves({"loss": ([1, 2], [3.0, 2.0])}, "step", "loss")
    assert list(figure.data[0].y) == [3.0, 2.0]
    assert figure.layout.xaxis.title.text == "step"


def test_a_row_that_was_not_judged_is_no_row_without_label() -> None:
    rows = EmbeddingSet(np.eye(3, dtype=np.float32), np.array([0, 1, 1]))
    judged = {"knn:per_sample": np.array([1.0, 0.0, np.nan])}
    values, names = color_of(rows, "right or wrong (kNN)", judged)
    assert values is not None
    assert values.tolist() == [0, 1, 2]
    assert names == ("right", "wrong", "not judged")
    judged["knn:per_sample"][2] = 1
    assert color_of(rows, "right or wrong (kNN)", judged)[1] == ("right", "wrong")

"""The comparison of spaces whose scores are kept: what is left to do takes a moment. Torch-free.

What takes long of a comparison is a matter of each space alone: its rows, and every score with what
it says of each sample. Shipped runs come with both, and others have them once "More" was looked at
on Explore. Of any two of them the rest are tests, matrices and nearest rows in NumPy.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.embeddings.nearest import nearest_of_all
from contrastive_core.embeddings.ref import EmbeddingRef
from contrastive_core.evaluation.compare import NEAREST, Entry, common, of_scores
from contrastive_core.evaluation.comparison import ACCURACIES
from contrastive_core.evaluation.score import Scores, scores_from_json
from contrastive_core.jobs import results
from contrastive_core.jobs.results import Result

__all__ = ["MOST", "comparison_at_once", "keep_comparison"]

MOST = 2000  # rows; all against all in NumPy is a moment up to here


def comparison_at_once(values: dict[str, Any]) -> Result | None:
    """The result of the analysis "comparison" with these values, if every space has its scores and
    all have the same few samples; None else. Raises ValueError for what does not exist."""
    entries, scores = [], []
    groups = [(group, int(seed)) for group, seed in values["groups"]]
    for name, plain, group in zip(values["names"], values["spaces"], groups, strict=True):
        space = EmbeddingRef(**plain)
        kept = kept_scores(space)
        rows = None if kept is None else space.rows()
        if kept is None or rows is None or not 4 <= len(rows) <= MOST:
            return None
        entries.append(Entry(name, None, rows, group))
        scores.append(kept)
    sets = common([entry.test for entry in entries])
    if any(len(cut) < len(entry.test) for cut, entry in zip(sets, entries, strict=True)):
        return None
    if any(set(one) != set(scores[0]) or not set(ACCURACIES) <= set(one) for one in scores):
        return None  # scored by another version
    ordered = [_in_order_of(cut, entry.test, one)
               for cut, entry, one in zip(sets, entries, scores, strict=True)]  # fmt: skip
    graphs = [nearest_of_all(rows, min(NEAREST, len(rows) - 1))[0] for rows in sets]
    report = of_scores(entries, sets, ordered, graphs, every_score=True)
    return Result(report.plain(), report.arrays())


def keep_comparison(values: dict[str, Any]) -> None:
    """Make it at once and keep it, where that can be done and has not been. Raises ValueError."""
    if not results.path("comparison", values).exists() and (made := comparison_at_once(values)):
        with contextlib.suppress(OSError):  # the task that makes it says why it cannot be kept
            results.write("comparison", values, made)


def kept_scores(space: EmbeddingRef) -> Scores | None:
    """Every score of a space with what it says of each sample, if that is kept."""
    result = results.read("scores", {"space": space.values})
    if result is None:
        return None
    scores = scores_from_json(result.meta["scores"]["own"])
    for key, array in result.arrays.items():
        name, _, part = key.partition(":")
        if name in scores:
            scores[name].arrays[part] = array
    return scores


def _in_order_of(cut: EmbeddingSet, rows: EmbeddingSet, scores: Scores) -> Scores:
    """Scores of `rows` as those of the same samples in another order."""
    if cut.ids == rows.ids:
        return scores
    at = {name: row for row, name in enumerate(rows.ids)}
    order = np.array([at[name] for name in cut.ids])
    for score in scores.values():
        if (each := score.per_sample) is not None:
            score.arrays["per_sample"] = each[order]
    return scores

"""The comparison of spaces whose scores are kept, which takes a moment.

The slow part of a comparison concerns each space alone: its rows, and every score of each sample.
Shipped runs come with both. The rest are tests, matrices and nearest rows of a few samples.
"""

from __future__ import annotations

import numpy as np

from contrastive_core.embeddings.nearest import nearest_of_all
from contrastive_core.embeddings.reading import read_rows
from contrastive_core.engine import results
from contrastive_core.engine.results import Result
from contrastive_core.evaluation.compare import NEAREST, Entry, common, compare_scored
from contrastive_core.records.comparison import ACCURACIES
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.score import Scores, scores_from_json
from contrastive_core.storage.json_files import JsonObject

MOST = 2000  # rows; all against all in NumPy is a moment up to here


def comparison_of_kept(values: JsonObject) -> Result | None:
    """The result of the analysis "comparison" with these values, if every space has its scores and
    all have the same few samples; None else. Raises ValueError for what does not exist."""
    entries, scores = [], []
    groups = [(g, int(s)) for g, s in values.get("groups", [])] or [("", 0)] * len(values["spaces"])
    for name, plain, group in zip(values["names"], values["spaces"], groups, strict=True):
        space = EmbeddingRef(**plain)
        kept = kept_scores(space)
        rows = None if kept is None else read_rows(space)
        if kept is None or rows is None or not 4 <= len(rows) <= MOST:
            return None
        entries.append(Entry(name, None, rows, group))
        scores.append(kept)
    sets = common([entry.test for entry in entries])
    if any(len(cut) < len(entry.test) for cut, entry in zip(sets, entries, strict=True)):
        return None
    if any(set(one) != set(scores[0]) or not set(ACCURACIES) <= set(one) for one in scores):
        return None  # scored by another version
    ordered = [_in_order_of(cut, entry.test, one) for cut, entry, one in zip(sets, entries, scores, strict=True)]
    graphs = [nearest_of_all(rows, min(NEAREST, len(rows) - 1))[0] for rows in sets]
    report = compare_scored(entries, sets, ordered, graphs, every_score=True)
    return Result(report.plain(), report.arrays())


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

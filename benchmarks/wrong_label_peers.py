"""Scores that others give to labels, on the same features, and how lists are judged.

The classifier behind cleanlab is a five-fold logistic regression of scikit-learn, on columns as
they are ("plain") and on standardized ones ("std"): which of the two is better differs from set to
set, so both count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.wrong_label_sets import out_of_fold

__all__ = ["interval_of_difference", "judged", "peers_of"]

RESAMPLES = 200
Scores = dict[str, np.ndarray]


def peers_of(features: np.ndarray, given: np.ndarray, near: np.ndarray) -> tuple[Scores, dict[str, float]]:
    """Scores (n) of the peers, higher where a label is more suspect; and how many cleanlab counts.

    Args: features: (n, d). given: (n) labels. near: (n, k) the nearest other rows.
    """
    scores: Scores = {"kNN disagreement": (given[near] != given[:, None]).mean(1)}
    counts = {}
    plain = LogisticRegression(max_iter=500)
    models: dict[str, Any] = {"plain": plain, "std": make_pipeline(StandardScaler(), plain)}
    for name, model in models.items():
        p = out_of_fold(model, features, given)
        confidence, margin = (
            -get_label_quality_scores(given, p, method=m) for m in ("self_confidence", "normalized_margin")
        )
        issues = find_label_issues(given, p)
        counts[name] = float(issues.sum())
        scores[f"self-confidence, {name}"] = confidence
        scores[f"normalized margin, {name}"] = margin
        scores[f"find_label_issues, {name}"] = confidence + 2 * issues  # what it names comes first
    return scores, counts


def judged(score: np.ndarray, wrong: np.ndarray) -> dict[str, float]:
    """Average precision, and precision among the first 50, 100 and as many as are wrong."""
    order = np.argsort(-score, kind="stable")
    figures = {"ap": float(average_precision_score(wrong, score))}
    for name, first in (("50", 50), ("100", 100), ("n", int(wrong.sum()))):
        figures[name] = float(wrong[order[:first]].mean())
    return figures


def interval_of_difference(ours: np.ndarray, theirs: np.ndarray, wrong: np.ndarray) -> tuple[float, float]:
    """95 % interval of our average precision less theirs, rows resampled."""
    rng, gains = np.random.default_rng(0), []
    for _ in range(RESAMPLES):
        at = rng.integers(0, len(wrong), len(wrong))
        a, b = (average_precision_score(wrong[at], s[at]) for s in (ours, theirs))
        gains.append(a - b)
    low, high = np.quantile(gains, [0.025, 0.975])
    return float(low), float(high)

"""Why settings came out as they did: who gains and loses, and over whom each τ spreads its push."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from contrastive_core.advice.held_out import HeldOutScores
from contrastive_core.advice.search import Search
from contrastive_core.data.datasets import Dataset
from contrastive_core.evaluation.paired_tests import Z95
from contrastive_core.loss_lab.view import trade
from contrastive_core.messages import message
from contrastive_core.records import runs
from contrastive_core.records.advice import AnswerRow
from contrastive_core.records.embedding_ref import cached
from contrastive_core.storage.json_files import JsonObject

VALUES = 8  # of a factor, above which thirds of it are taken
CLASSES = 3  # classes, or values of factors, that gain and lose most, named
NEGATIVES = 256  # held-out rows that effective negatives are taken of


def reasons(search: Search, best: AnswerRow | None) -> dict[str, list[JsonObject]]:
    """Classes that gain and lose against the default, and effective negatives over τ."""
    default, why = search.default, dict[str, list[JsonObject]]()
    if best is None or default is None:
        return why
    winner = next(t for t in search.trials.values() if t.label == best["label"])
    usual, mine = (list(t.by_seed(best["epochs"]).values()) for t in (default, winner))
    if not best["is_default"] and usual and mine and mine[0].right is not None:
        gain = _mean_right(mine) - _mean_right(usual)  # (n)
        by_group: list[JsonObject] = [
            {"class": name, "change": float(np.nanmean(gain[of])), "n": int(of.sum())}
            for name, of in _groups(search.dataset, search.rows)
            if of.sum() > 1 and _is_shown(gain[of])
        ]
        by_group.sort(key=lambda r: -r["change"])
        why["gain"] = [r for r in by_group if r["change"] > 0][:CLASSES]
        why["lose"] = [r for r in by_group[::-1] if r["change"] < 0][:CLASSES]
    if "temperature" in search.questions and usual:
        why["effective_negatives"] = _effective_negatives(search, usual[0].run)
    return why


def _is_shown(change: np.ndarray) -> bool:
    """Whether the 95 % interval of a mean (n) excludes zero."""
    known = change[np.isfinite(change)]
    half = Z95 * float(known.std(ddof=1)) / np.sqrt(len(known)) if len(known) > 1 else np.inf
    return bool(abs(known.mean()) > half)


def _mean_right(scores: list[HeldOutScores]) -> np.ndarray:
    """How often each held-out image is named right, over runs: (n)."""
    right = [s.right for s in scores if s.right is not None]
    return np.asarray(np.mean(right, 0))


def _groups(dataset: Dataset, rows: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Classes, and values of known factors (of many values: thirds), with who is in each: (n)."""
    labels = dataset.labels[rows]
    for number, name in enumerate(dataset.classes):
        yield name, labels == number
    for factor, values in dataset.factors.items():
        of = np.asarray(values)[rows]
        if of.ndim != 1:
            continue
        if len(several := np.unique(of)) <= VALUES:
            yield from ((f"{factor} {value}", of == value) for value in several)
        elif of.dtype.kind in "fiub":
            low, high = np.quantile(of, [1 / 3, 2 / 3])
            yield message("{factor} up to {low}", factor=factor, low=f"{low:.3g}"), of <= low
            yield message("{factor} above {high}", factor=factor, high=f"{high:.3g}"), of > high


def _effective_negatives(search: Search, run_name: str) -> list[dict[str, float]]:
    """Over how many of a batch's other rows the softmax spreads, at each τ that was tried: exp of
    the entropy of softmax(s/τ), the mean over anchors, in the default run's own z."""
    rows = None
    with contextlib.suppress(ValueError):
        rows = cached(runs.load(run_name), "train", "z")
    if rows is None:
        return []
    z = rows.features[search.rows[:NEGATIVES]].astype(np.float64)
    z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
    values = sorted({t.value for t in search.trials.values() if t.value})
    others = len(z) - 1
    return [
        {"value": at.temperature, "negatives": at.spread * others, "of": others}
        for at in trade(z @ z.T, ~np.eye(len(z), dtype=bool), None, tuple(values))
    ]

"""The table of an embedding: the loss of each row, its lists, and why it is on them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.samples.issues import Issues
from contrastive_core.samples.losses import (
    Tell,
    over_knob,
    per_sample,
    ranks,
    split_variance,
    training_estimate,
)
from contrastive_core.samples.table import COLUMNS, SampleTable

__all__ = ["table_of"]

REPEATS = 4  # of random batches, for what training saw
GRID = 7  # values of the knob at which all losses are known
GRID_UP_TO = 20_000  # samples; above, only of losses of the softmax family
RANGES = {"temperature": np.geomspace(0.02, 2, GRID), "margin": np.linspace(0.05, 2, GRID)}


def table_of(
    rows: EmbeddingSet,
    loss: str,
    knobs: dict[str, Any] | None = None,
    views: list[np.ndarray] | None = None,
    tell: Tell | None = None,
    *,
    augmented: list[np.ndarray] | None = None,
    features: EmbeddingSet | None = None,
    other: EmbeddingSet | None = None,
    pixels: np.ndarray | None = None,
    batch: int = 0,
) -> SampleTable:
    """The table of an embedding.

    Without labels and views no row has a positive: the loss is NaN, and the lists stand alone.

    Args:
        rows: what the loss is taken on; features: what is searched for oddities (default: rows);
            other: the other split in the space of `features`.
        views: draws of (n, v, d) augmented views, for self-supervised pairs.
        augmented: draws of (n, d), an augmented view of each row, where rows are paired by class:
            what augmentation alone does to each loss.
        batch: images in a training batch; 0: no estimate of what training saw.
        tell: hears the share done.
    Raises: ValueError when the loss cannot use these pairs; what `tell` raises stops the work.
    """
    from contrastive_core.samples.issues import find_issues

    draws: list[np.ndarray | None] = [*views] if views else [None]
    paired = bool(views) or rows.labels is not None
    knob, grid = _grid(loss, knobs, len(rows)) if paired else ("", np.zeros(0))
    again = (augmented or []) if paired and not views else []
    losses = len(draws) * paired + len(again)  # parts of the work; then the search, knob, batches
    parts = losses + 1 + 2 * len(draws) * bool(len(grid)) + 1
    by_draw, weight = [np.full(len(rows), np.nan)], np.zeros(len(rows))
    if paired:
        by_draw = []
        for number, one in enumerate(draws):
            value, weight = per_sample(rows, loss, knobs, one, _part(tell, number, 1, parts))
            by_draw.append(np.where(weight > 0, value, np.nan))
    value = np.mean(by_draw, 0)
    if again:
        by_draw = []
        for number, one in enumerate(again, 1):
            own = dataclasses.replace(rows, features=one)
            seen, known = per_sample(own, loss, knobs, None, _part(tell, number, 1, parts))
            by_draw.append(np.where(known > 0, seen, np.nan))
    searched = features or rows
    found = find_issues(
        searched, other=other, pixels=pixels, supervised=views is None,
        tell=_part(tell, losses, 1, parts),
    )  # fmt: skip
    columns = _columns(searched, value, weight, found)
    extra, facts = _explained(searched, found, other, views is None)
    extra["loss_by_draw"] = np.stack(by_draw, 1)
    defined = extra["loss_by_draw"][np.isfinite(by_draw).all(0)]
    if len(by_draw) > 1 and len(defined) > 1:
        facts |= {f"variance_{k}": v for k, v in split_variance(defined).items()}
    if len(grid):
        extra["loss_over_knob"] = np.mean(
            [
                over_knob(rows, loss, knob, grid.tolist(), knobs, one, _part(tell, at, 2, parts))
                for at, one in zip(range(losses + 1, parts, 2), draws, strict=False)
            ],
            0,
        )
    if batch and paired:
        extra["loss_in_batches"], extra["loss_in_batches_spread"] = training_estimate(
            rows, loss, knobs, batch, REPEATS, views=draws[0]
        )
    if tell:
        tell(1.0)
    return SampleTable(columns, rows.classes, loss, extra, facts, knob, grid)


def _part(tell: Tell | None, first: int, width: int, of: int) -> Tell | None:
    return None if tell is None else lambda share: tell((first + width * share) / of)


def _grid(loss: str, knobs: dict[str, Any] | None, n: int) -> tuple[str, np.ndarray]:
    """The knob that can be dragged, and values of it, the loss's own among them."""
    from contrastive_core import losses

    known, about = losses.knobs(loss), losses.get(loss)
    knob = next((k for k in RANGES if k in known), None)
    if knob is None or (n > GRID_UP_TO and about.family != "softmax"):
        return "", np.zeros(0)
    own = float((knobs or {}).get(knob, known[knob].default))
    inside = [v for v in RANGES[knob] if known[knob].low <= v <= known[knob].high]
    return knob, np.unique([*inside, own])


def _columns(
    rows: EmbeddingSet, value: np.ndarray, weight: np.ndarray, found: Issues
) -> dict[str, np.ndarray]:
    positive, negative = _nearest_of_each(found)
    labels = rows.labels if rows.labels is not None else np.full(len(rows), -1)
    names = np.array(rows.ids)
    columns = {
        "id": names,
        "label": np.array([rows.class_name(int(c)) if c >= 0 else "" for c in labels]),
        "loss": value,
        "weight": weight,
        "rank": ranks(value, weight),
        **{k: v for k, v in found.scores.items() if k in COLUMNS},
        "nearest_positive": np.where(positive >= 0, names[positive], ""),
        "nearest_negative": np.where(negative >= 0, names[negative], ""),
    }
    assert tuple(columns) == COLUMNS
    return columns


def _explained(
    rows: EmbeddingSet, found: Issues, other: EmbeddingSet | None, supervised: bool
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Columns and figures beyond COLUMNS."""
    names, near = np.array(rows.ids), found.neighbors.index
    twin = names[np.where(found.leaked, 0, found.twin)]
    if other is not None:
        far = np.array(other.ids)[np.where(found.leaked, found.twin, 0)]
        twin = np.where(found.leaked, far, twin)
    extra = {"hub": found.scores["hub"], "twin": twin, "leaked": found.leaked}
    extra["lookalike"] = names[near[:, 0]]
    facts: dict[str, float] = {}
    if rows.labels is not None and supervised:
        negative = _nearest_of_each(found)[1]
        extra["lookalike"] = np.where(negative >= 0, names[negative], "")
    if found.by_class is None or found.probabilities is None or rows.labels is None:
        return extra, facts
    said = found.probabilities.argmax(1)
    for name, classes in (("suggested", found.suggested), ("predicted", said),
                          ("voted", found.voted),
                          ("easiest", found.by_class.losses.argmin(1))):  # fmt: skip
        assert classes is not None
        extra[name] = np.array([rows.class_name(int(c)) for c in classes])
    extra["correct"] = said == rows.labels
    two = np.argsort(-found.probabilities, 1, kind="stable")[:, :2]
    both = [(rows.class_name(int(a)), rows.class_name(int(b))) for a, b in two]
    extra["between"] = np.array([f"{a} and {b}" for a, b in both])
    if not supervised:  # else a negative is of another class, by its definition
        top = np.argsort(-found.scores["false_negative"])[: max(1, len(rows) // 20)]
        same = rows.labels[near[top, 0]] == rows.labels[top]
        facts["false_negatives_of_same_class"] = float(same.mean())
    return extra, facts


def _nearest_of_each(found: Issues) -> tuple[np.ndarray, np.ndarray]:
    """Nearest row of the same and of another label (n) each, −1: none; without labels all others
    are negatives."""
    near = found.neighbors.index[:, 0]
    if found.by_class is None:
        return np.full(len(near), -1), near
    return found.by_class.same, found.by_class.other

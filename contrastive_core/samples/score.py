"""The table of an embedding: the loss of each row, its lists, and why it is on them."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.ops.sampling import rows_of_sample
from contrastive_core.progress import OnFraction, OnProgress, fraction_of, ignore_progress
from contrastive_core.samples.issues import Issues
from contrastive_core.samples.losses import (
    exact_of,
    largest_class,
    near_of,
    outlook,
    over_knob,
    per_sample,
    ranks,
    split_variance,
    training_estimate,
)
from contrastive_core.samples.table import COLUMNS, SampleTable
from contrastive_core.samples.wrong_labels import WrongLabels

if TYPE_CHECKING:
    from contrastive_core.samples.candidates import Near

__all__ = ["SampleInputs", "score_samples"]

REPEATS = 4  # of random batches, for what training saw
BLOCK = 1 << 14  # rows whose classes are looked at together
GRID = 7  # values of the knob at which all losses are known
GRID_UP_TO = 20_000  # samples; above, only of losses of the softmax family
RANGES = {"temperature": np.geomspace(0.02, 2, GRID), "margin": np.linspace(0.05, 2, GRID)}


@dataclass(frozen=True, eq=False)
class SampleInputs:
    """What a table is made from: an embedding with its loss, and what goes along.

    rows: what the loss is taken on. features: what is searched for issues (default: rows); other:
    the other split in the space of `features`; pixels and other_pixels: both splits' images as rows
    (n, p). views: draws of (n, v, d) augmented views, for self-supervised pairs. augmented: draws
    of (n, d), an augmented view of each row, where rows are paired by class: what augmentation
    alone does to each loss.
    batch_size: images in a training batch; 0: no estimate of what training saw.
    """

    rows: EmbeddingSet
    loss: str
    knobs: dict[str, Any] | None = None
    views: list[np.ndarray] | None = None
    augmented: list[np.ndarray] | None = None
    features: EmbeddingSet | None = None
    other: EmbeddingSet | None = None
    pixels: np.ndarray | None = None
    other_pixels: np.ndarray | None = None
    batch_size: int = 0
    device: str = "auto"

    @property
    def searched(self) -> EmbeddingSet:
        return self.rows if self.features is None else self.features

    @property
    def draws(self) -> list[np.ndarray | None]:
        """What the loss is the mean over: draws of views; the rows themselves (None) without."""
        return [*self.views] if self.views else [None]

    @property
    def has_pairs(self) -> bool:
        """Whether any row can have a positive."""
        return bool(self.views) or self.rows.labels is not None


def score_samples(inputs: SampleInputs, on_progress: OnProgress = ignore_progress) -> SampleTable:
    """The table of an embedding.

    Without labels and views no row has a positive: the loss is NaN, and the lists stand alone.
    Raises: ValueError when the loss cannot use these pairs; what `on_progress` raises stops it.
    """
    from contrastive_core.samples.issues import find_issues

    ahead = _outlook(inputs)
    is_taken = inputs.has_pairs and "exact_up_to" not in ahead
    by_draw, value, weight, near = _losses(inputs, is_taken, _told_of_losses(ahead, on_progress))
    issues = find_issues(
        inputs.searched, other=inputs.other, pixels=inputs.pixels,
        other_pixels=inputs.other_pixels, device=inputs.device,
        supervised=inputs.views is None, on_fraction=fraction_of(on_progress, "issues"),
        near=near[0] if near and not inputs.views and inputs.features is None else None,
    )  # fmt: skip
    columns = _columns(inputs.searched, value, weight, issues)
    extra, facts = _explained(inputs.searched, issues, inputs.other, inputs.views is None)
    extra["loss_by_draw"] = by_draw
    if issues.neighbors.recall is not None:
        facts["neighbors_recall"] = issues.neighbors.recall
    defined = by_draw[np.isfinite(by_draw).all(1)]
    if by_draw.shape[1] > 1 and len(defined) > 1:
        facts |= {f"variance_{k}": v for k, v in split_variance(defined).items()}
    if near:
        on_progress("how far off the estimated losses are", None)
        facts |= {f"estimate_{k}": v for k, v in _about_estimate(inputs, value, near).items()}
    facts |= {k: v for k, v in ahead.items() if k == "exact_up_to"}
    knob, grid = _grid(inputs) if is_taken else ("", np.zeros(0))
    if len(grid):
        on_fraction = fraction_of(on_progress, f"loss over {knob}")
        extra["loss_over_knob"] = _over_knob(inputs, knob, grid, near, on_fraction)
    if inputs.batch_size and inputs.has_pairs:
        on_progress("loss in training's batches", None)
        views = inputs.views[0] if inputs.views else None
        extra["loss_in_batches"], extra["loss_in_batches_spread"] = training_estimate(
            inputs.rows, inputs.loss, inputs.knobs, inputs.batch_size, REPEATS, views=views,
            device=inputs.device,
        )  # fmt: skip
    return SampleTable(columns, inputs.rows.classes, inputs.loss, extra, facts, knob, grid)


def _outlook(inputs: SampleInputs) -> dict[str, int]:
    """What the losses will be, by `losses.outlook`."""
    if not inputs.has_pairs:
        return {}
    rows = inputs.rows
    views, width = inputs.views[0].shape[1:] if inputs.views else (1, rows.width)
    asked = (len(rows), views, width, _positives(inputs), inputs.device)
    return outlook(inputs.loss, inputs.knobs, *asked)


def _positives(inputs: SampleInputs) -> int:
    """How many positives a row of the largest group has."""
    if inputs.views:
        return int(inputs.views[0].shape[1] - 1)
    assert inputs.rows.labels is not None
    return largest_class(inputs.rows.labels) - 1


def _told_of_losses(ahead: dict[str, int], on_progress: OnProgress) -> OnFraction:
    """The stage of the losses, which says beforehand where they are not exact."""
    stage = "loss of every sample"
    if "candidates" in ahead:
        stage = f"loss of every sample, from about {ahead['candidates']:,} candidates each"
    if "exact_up_to" in ahead:
        most = ahead["exact_up_to"]
        on_progress(f"no losses: this one is exact only up to {most:,} samples", None)
    return fraction_of(on_progress, stage)


def _losses(
    inputs: SampleInputs, is_taken: bool, on_fraction: OnFraction
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Near]]:
    """The loss by draw of augmentation (n, draws), loss and weight (n) of the rows, and from what
    they were estimated, draw by draw of views; nothing where they are exact."""
    rows, none = inputs.rows, np.full(len(inputs.rows), np.nan)
    if not is_taken:
        return none[:, None], none, np.zeros(len(rows)), []
    draws = inputs.draws
    augmented = (inputs.augmented or []) if not inputs.views else []
    sets = [(rows, one) for one in draws]
    sets += [(dataclasses.replace(rows, features=one), None) for one in augmented]
    columns, weight, near = [], np.zeros(0), []
    for number, (features, views) in enumerate(sets):
        parts = [part_of_fraction(on_fraction, 2 * number + i, 2 * len(sets)) for i in range(2)]
        asked = (features, inputs.loss, inputs.knobs, views)
        found = near_of(*asked, parts[0], inputs.device)
        part = part_of_fraction(on_fraction, number, len(sets)) if found is None else parts[1]
        per_row, defined = per_sample(*asked, part, inputs.device, found)
        columns.append(np.where(defined > 0, per_row, np.nan))
        if number < len(draws):
            weight = defined
            near += [] if found is None else [found]
    value = np.mean(columns[: len(draws)], 0)
    return np.stack(columns[len(draws) :] or columns, 1), value, weight, near


def _about_estimate(inputs: SampleInputs, value: np.ndarray, near: list[Near]) -> dict[str, float]:
    """From how many candidates the losses (n) were estimated, and how far they are off."""
    from contrastive_core.samples import estimate

    rows = inputs.rows
    some = rows_of_sample(len(rows), estimate.CHECKED)
    exact = [
        exact_of(some, rows, inputs.loss, inputs.knobs, views, inputs.device)
        for views in inputs.draws
    ]
    about = estimate.about(near, _positives(inputs))
    return about | estimate.error_of(value[some], np.mean(exact, 0))


def _over_knob(
    inputs: SampleInputs, knob: str, grid: np.ndarray, near: list[Near], on_fraction: OnFraction
) -> np.ndarray:
    """Loss (n, g) at each value of the knob, the mean over the draws."""
    draws = inputs.draws
    over = [
        over_knob(
            inputs.rows, inputs.loss, knob, grid.tolist(), inputs.knobs, views,
            part_of_fraction(on_fraction, number, len(draws)), inputs.device,
            near[number] if near else None,
        )
        for number, views in enumerate(draws)
    ]  # fmt: skip
    return np.asarray(np.mean(over, 0))


def part_of_fraction(on_fraction: OnFraction, number: int, parts: int) -> OnFraction:
    """The fraction of one of several equal parts, as that of the whole."""
    return lambda fraction: on_fraction((number + fraction) / parts)


def _grid(inputs: SampleInputs) -> tuple[str, np.ndarray]:
    """The knob that can be dragged, and values of it, the loss's own among them."""
    from contrastive_core import losses

    knobs = losses.knobs(inputs.loss)
    knob = next((k for k in RANGES if k in knobs), None)
    is_softmax = losses.get(inputs.loss).family == "softmax"
    if knob is None or (len(inputs.rows) > GRID_UP_TO and not is_softmax):
        return "", np.zeros(0)
    value = float((inputs.knobs or {}).get(knob, knobs[knob].default))
    inside = [v for v in RANGES[knob] if knobs[knob].low <= v <= knobs[knob].high]
    others = [v for v in inside if not math.isclose(v, value, rel_tol=1e-6)]
    return knob, np.sort([*others, value])


def _columns(
    rows: EmbeddingSet, value: np.ndarray, weight: np.ndarray, issues: Issues
) -> dict[str, np.ndarray]:
    positive, negative = _nearest_of_each(issues)
    labels = rows.labels if rows.labels is not None else np.full(len(rows), -1)
    names = np.array(rows.ids)
    columns = {
        "id": names,
        "label": np.array([rows.class_name(int(c)) if c >= 0 else "" for c in labels]),
        "loss": value,
        "weight": weight,
        "rank": ranks(value, weight),
        **{k: v for k, v in issues.scores.items() if k in COLUMNS},
        "nearest_positive": np.where(positive >= 0, names[positive], ""),
        "nearest_negative": np.where(negative >= 0, names[negative], ""),
    }
    assert tuple(columns) == COLUMNS
    return columns


def _explained(
    rows: EmbeddingSet, issues: Issues, other: EmbeddingSet | None, supervised: bool
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Columns and figures beyond COLUMNS."""
    names, near = np.array(rows.ids), issues.neighbors.index
    duplicate = names[np.where(issues.leaked, 0, issues.nearest_duplicate)]
    if other is not None:
        far = np.array(other.ids)[np.where(issues.leaked, issues.nearest_duplicate, 0)]
        duplicate = np.where(issues.leaked, far, duplicate)
    extra = {
        "hub": issues.scores["hub"], "nearest_duplicate": duplicate, "leaked": issues.leaked,
        "nearness": issues.nearness, "lookalike": names[near[:, 0]],
    }  # fmt: skip
    facts: dict[str, float] = {}
    if rows.labels is not None and supervised:
        negative = _nearest_of_each(issues)[1]
        extra["lookalike"] = np.where(negative >= 0, names[negative], "")
    if issues.labels is None or rows.labels is None:
        return extra, facts
    more, counts = _label_columns(rows, issues.labels)
    extra |= more
    facts |= counts
    if not supervised:  # else a negative is of another class, by its definition
        top = np.argsort(-issues.scores["false_negative"])[: max(1, len(rows) // 20)]
        same = rows.labels[near[top, 0]] == rows.labels[top]
        facts["false_negatives_of_same_class"] = float(same.mean())
    return extra, facts


def _label_columns(
    rows: EmbeddingSet, wrong: WrongLabels
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """What is suspected of labels, by voter and together; and how many are likely wrong."""
    firsts = {
        "suggested": wrong.suggested,
        "probe_prediction": wrong.predicted["probe"],
        "knn_prediction": wrong.predicted["neighbors"],
        "discriminant_prediction": wrong.predicted["discriminant"],
        "min_loss_class": wrong.by_class.losses.argmin(1),
    }
    numbers = [*range(wrong.classes.shape[1]), -1]  # −1, the last: of rows without a label
    names = np.array([rows.class_name(c) for c in numbers])
    extra = {k: names[v] for k, v in firsts.items()}
    extra["suggested_probability"] = wrong.confidence
    extra |= {f"wrong_by_{name}": v for name, v in wrong.by_voter.items()}
    extra["correct"] = firsts["probe_prediction"] == rows.labels
    first, second = _two_highest(wrong.classes)
    pairs, which = np.unique(first * len(names) + second, return_inverse=True)
    between = [f"{names[c // len(names)]} and {names[c % len(names)]}" for c in pairs]
    extra["between"] = np.array(between)[which]
    low, high = wrong.interval
    return extra, {"wrong": wrong.number, "wrong_low": low, "wrong_high": high}


def _two_highest(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each row of p (n, classes) is highest, and next to highest; of equals, and of a row
    without any, the first."""
    found = []
    for start in range(0, len(p), BLOCK):
        part = np.nan_to_num(p[start : start + BLOCK])
        every, first = np.arange(len(part)), part.argmax(1)
        part[every, first] = -1
        found.append(np.stack([first, part.argmax(1)]))
    first, second = np.concatenate(found, 1)
    return first, second


def _nearest_of_each(issues: Issues) -> tuple[np.ndarray, np.ndarray]:
    """Nearest row of the same and of another label (n) each, −1: none; without labels all others
    are negatives."""
    near = issues.neighbors.index[:, 0]
    if issues.by_class is None:
        return np.full(len(near), -1), near
    return issues.by_class.same, issues.by_class.other

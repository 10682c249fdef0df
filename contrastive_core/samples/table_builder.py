"""The table of an embedding: the loss of each row, its lists, and why it is on them."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from contrastive_core import losses
from contrastive_core.messages import N_, message
from contrastive_core.ops.neighbors import Neighbors
from contrastive_core.ops.sampling import rows_of_sample
from contrastive_core.progress import OnFraction, OnProgress, fraction_of, ignore_progress
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.sample_table import COLUMNS, SampleTable
from contrastive_core.samples import candidates
from contrastive_core.samples import losses as sample_losses
from contrastive_core.samples.issues import Issues, Pixels, find_issues
from contrastive_core.samples.label_errors import LabelErrors
from contrastive_core.samples.losses import LossInputs

LIKELY = 4  # classes that a person chooses from: a row's own, and three others
REPEATS = 4  # of random batches, for what training saw
BLOCK = 1 << 14  # rows whose classes are looked at together
GRID = 7  # values of the knob at which all losses are known
GRID_UP_TO = 20_000  # samples; above, only of losses of the softmax family
RANGES = {"temperature": np.geomspace(0.02, 2, GRID), "margin": np.linspace(0.05, 2, GRID)}


@dataclass(frozen=True, eq=False)
class SampleInputs:
    """An embedding with its loss, and what goes along.

    rows: what the loss is taken on. features: what is searched for issues (default: rows); other: the other split in
    the space of `features`; pixels: both splits' images as rows (n, p). views: draws of (n, v, d) augmented views, for
    self-supervised pairs. augmented: draws of (n, d), an augmented view of each row, where rows are paired by class:
    what augmentation alone does to each loss. batch_size: images in a training batch; 0: no estimate of what training
    saw.
    """

    rows: EmbeddingSet
    loss: str
    knobs: Mapping[str, Any] | None = None
    views: list[np.ndarray] | None = None
    augmented: list[np.ndarray] | None = None
    features: EmbeddingSet | None = None
    other: EmbeddingSet | None = None
    pixels: Pixels | None = None
    batch_size: int = 0
    device: str = "auto"

    @property
    def draws(self) -> list[LossInputs]:
        """The draws that the loss averages over: views, or the rows themselves."""
        return [self._draw(self.rows, views) for views in self.views] if self.views else [self._draw(self.rows, None)]

    @property
    def augmented_draws(self) -> list[LossInputs]:
        """Draws that only show what augmentation does."""
        draws = [] if self.views else self.augmented or []
        return [self._draw(dataclasses.replace(self.rows, features=one), None) for one in draws]

    @property
    def has_pairs(self) -> bool:
        """Whether any row can have a positive."""
        return bool(self.views) or self.rows.labels is not None

    @property
    def positives(self) -> int:
        """How many positives a row of the largest group has."""
        return int(self.views[0].shape[1] - 1) if self.views else self.rows.largest_class - 1

    def _draw(self, rows: EmbeddingSet, views: np.ndarray | None) -> LossInputs:
        return LossInputs(rows, self.loss, self.knobs, views, self.device)


@dataclass(frozen=True, eq=False)
class _Losses:
    """Loss by draw (n, draws), loss and weight (n), and by draw of views what they were estimated from, if at all."""

    by_draw: np.ndarray
    value: np.ndarray
    weight: np.ndarray
    near: list[Neighbors]


def build_table(inputs: SampleInputs, on_progress: OnProgress = ignore_progress) -> SampleTable:
    """The table of an embedding. Without labels and views no row has a positive: the loss is NaN, and the lists stand
    alone. Raises: ValueError when the loss cannot use these pairs; what `on_progress` raises stops it."""
    rows, none = inputs.rows if inputs.features is None else inputs.features, np.full(len(inputs.rows), np.nan)
    ahead = _outlook(inputs)
    taken = _Losses(none[:, None], none, np.zeros(len(none)), [])
    is_taken = inputs.has_pairs and "exact_up_to" not in ahead
    on_fraction = _losses_stage(ahead, on_progress)
    if is_taken:
        taken = _losses(inputs, on_fraction)
    near = taken.near[0] if taken.near and not inputs.views and inputs.features is None else None
    on_fraction = fraction_of(on_progress, N_("issues"))
    issues = find_issues(rows, inputs.other, inputs.pixels, not inputs.views, near, inputs.device, on_fraction)
    columns = _columns(rows, taken.value, taken.weight, issues)
    extra, facts = _explained(rows, issues, inputs.other, inputs.views is None)
    extra["loss_by_draw"] = taken.by_draw
    facts |= {f"neighbors_{k}": v for k, v in issues.neighbors.about.items()}
    defined = taken.by_draw[np.isfinite(taken.by_draw).all(1)]
    if taken.by_draw.shape[1] > 1 and len(defined) > 1:
        facts |= {f"variance_{k}": v for k, v in sample_losses.split_variance(defined).items()}
    if taken.near:
        on_progress(N_("measuring the error of the estimated losses"), None)
        facts |= {f"estimate_{k}": v for k, v in _estimate_facts(inputs, taken).items()}
    facts |= {k: v for k, v in ahead.items() if k == "exact_up_to"}
    knob, grid = _grid(inputs) if is_taken else ("", np.zeros(0))
    if len(grid):
        on_fraction = fraction_of(on_progress, message("loss over {knob}", knob=knob))
        extra["loss_over_knob"] = _over_knob(inputs, knob, grid, taken.near, on_fraction)
    if inputs.batch_size and inputs.has_pairs:
        on_progress(N_("loss in training's batches"), None)
        in_batches = sample_losses.losses_in_batches(inputs.draws[0], inputs.batch_size, REPEATS)
        extra["loss_in_batches"], extra["loss_in_batches_spread"] = in_batches
    return SampleTable(columns, inputs.rows.classes, inputs.loss, extra, facts, knob, grid)


def _outlook(inputs: SampleInputs) -> dict[str, int]:
    """How the losses will be taken, by `losses.outlook`."""
    if not inputs.has_pairs:
        return {}
    views, width = inputs.views[0].shape[1:] if inputs.views else (1, inputs.rows.width)
    sizes = (len(inputs.rows), views, width, inputs.positives)
    return sample_losses.outlook(inputs.loss, inputs.knobs, *sizes, inputs.device)


def _losses_stage(ahead: dict[str, int], on_progress: OnProgress) -> OnFraction:
    """The stage of the losses, which says beforehand where they are not exact."""
    if "exact_up_to" in ahead:
        most = f"{ahead['exact_up_to']:,}"
        on_progress(message("no losses: this one is exact only up to {most} samples", most=most), None)
    stage = N_("loss of every sample")
    if "candidates" in ahead:
        number = f"{ahead['candidates']:,}"
        stage = message("loss of every sample, from about {candidates} candidates each", candidates=number)
    return fraction_of(on_progress, stage)


def _losses(inputs: SampleInputs, on_fraction: OnFraction) -> _Losses:
    draws = inputs.draws
    sets = [*draws, *inputs.augmented_draws]
    columns, weight, near = [], np.zeros(0), []
    for number, draw in enumerate(sets):
        found = sample_losses.find_near(draw, _part_of(on_fraction, 2 * number, 2 * len(sets)))
        exactly, estimated = (number, len(sets)), (2 * number + 1, 2 * len(sets))
        per_row, defined = sample_losses.per_sample(
            draw, _part_of(on_fraction, *(estimated if found else exactly)), found
        )
        columns.append(per_row)
        if number < len(draws):
            weight = defined
            near += [found] if found else []
    value = np.mean(columns[: len(draws)], 0)
    return _Losses(np.stack(columns[len(draws) :] or columns, 1), value, weight, near)


def _part_of(on_fraction: OnFraction, number: int, parts: int) -> OnFraction:
    """The fraction of one of several equal parts, as that of the whole."""
    return lambda fraction: on_fraction((number + fraction) / parts)


def _estimate_facts(inputs: SampleInputs, taken: _Losses) -> dict[str, float]:
    """From how many candidates the losses were estimated, and how far they are off."""
    some = rows_of_sample(len(inputs.rows), candidates.CHECKED)
    exact = np.mean([sample_losses.exact_losses(some, draw) for draw in inputs.draws], 0)
    return candidates.estimate_facts(taken.near, inputs.positives, taken.value[some], exact)


def _over_knob(
    inputs: SampleInputs, knob: str, grid: np.ndarray, near: list[Neighbors], on_fraction: OnFraction
) -> np.ndarray:
    """Loss (n, g) at each value of the knob, the mean over the draws."""
    draws, over = inputs.draws, []
    for number, draw in enumerate(draws):
        part = _part_of(on_fraction, number, len(draws))
        over.append(sample_losses.losses_over_knob(draw, knob, grid.tolist(), part, near[number] if near else None))
    return np.asarray(np.mean(over, 0))


def _grid(inputs: SampleInputs) -> tuple[str, np.ndarray]:
    """The knob that can be dragged, and values of it, the loss's own among them."""
    knobs = losses.knobs(inputs.loss)
    knob = next((k for k in RANGES if k in knobs), None)
    is_softmax = losses.get(inputs.loss).card.family == "softmax"
    if knob is None or (len(inputs.rows) > GRID_UP_TO and not is_softmax):
        return "", np.zeros(0)
    value = float((inputs.knobs or {}).get(knob, knobs[knob].default))
    inside = [v for v in RANGES[knob] if knobs[knob].low <= v <= knobs[knob].high]
    others = [v for v in inside if not math.isclose(v, value, rel_tol=1e-6)]
    return knob, np.sort([*others, value])


def _columns(rows: EmbeddingSet, value: np.ndarray, weight: np.ndarray, issues: Issues) -> dict[str, np.ndarray]:
    labels = rows.labels if rows.labels is not None else np.full(len(rows), -1)
    columns = {
        "id": np.array(rows.ids),
        "label": np.array([rows.class_name(int(c)) if c >= 0 else "" for c in labels]),
        "loss": value,
        "weight": weight,
        "rank": sample_losses.ranks(value),
        **{k: v for k, v in issues.scores.items() if k in COLUMNS},
        "nearest_positive": _ids_of(rows, issues.nearest_positive),
        "nearest_negative": _ids_of(rows, issues.nearest_negative),
    }
    assert tuple(columns) == COLUMNS
    return columns


def _ids_of(rows: EmbeddingSet, at: np.ndarray) -> np.ndarray:
    """The ids of rows by number; "" for −1."""
    return np.where(at >= 0, np.array(rows.ids)[at], "")


def _explained(
    rows: EmbeddingSet, issues: Issues, other: EmbeddingSet | None, supervised: bool
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Columns and figures beyond COLUMNS."""
    near = issues.neighbors.index[:, 0]
    both = np.array([*rows.ids, *(other.ids if other else ())])
    extra = {
        "hub": issues.scores["hub"],
        "nearest_duplicate": both[issues.nearest_duplicate + issues.leaked * len(rows)],
        "leaked": issues.leaked,
        "nearness": issues.nearness,
        "lookalike": _ids_of(rows, issues.nearest_negative if rows.labels is not None and supervised else near),
    }
    if issues.labels is None or rows.labels is None:
        return extra, {}
    more, facts = _label_columns(rows, issues.labels)
    if not supervised:  # else a negative is of another class, by its definition
        top = np.argsort(-issues.scores["false_negative"])[: max(1, len(rows) // 20)]
        facts["false_negatives_of_same_class"] = float((rows.labels[near[top]] == rows.labels[top]).mean())
    return extra | more, facts


def _label_columns(rows: EmbeddingSet, wrong: LabelErrors) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Return the suspicion of each label, by voter and combined, and the number of likely errors."""
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
    highest = _highest(wrong.classes, LIKELY)
    extra["likely"] = names[highest]
    first, second = highest[:, 0], highest[:, min(1, highest.shape[1] - 1)]
    pairs, which = np.unique(first * len(names) + second, return_inverse=True)
    between = [
        message("{names} and {names_2}", names=names[c // len(names)], names_2=names[c % len(names)]) for c in pairs
    ]
    extra["between"] = np.array(between)[which]
    low, high = wrong.interval
    return extra, {"wrong": wrong.number, "wrong_low": low, "wrong_high": high}


def _highest(p: np.ndarray, most: int) -> np.ndarray:
    """Where each row of p (n, classes) is highest, next to highest, and so on (n, most); of equals the first."""
    most = min(most, p.shape[1])
    parts = (np.nan_to_num(p[start : start + BLOCK]) for start in range(0, len(p), BLOCK))
    return np.concatenate([np.argsort(-part, 1, kind="stable")[:, :most] for part in parts])

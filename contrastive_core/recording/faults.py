"""Known faults of a training loop, each as the loss that a loop with this fault computes on the same rows."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from contrastive_core import pairs as builders
from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import knobs_of
from contrastive_core.losses import Loss
from contrastive_core.pairs import Pairs
from contrastive_core.pairs.types import NO_ROW, Masks
from contrastive_core.recording.figures import pairs_of, with_learned
from contrastive_core.recording.recorded_batch import RecordedBatch, group_numbers
from contrastive_core.recording.row_faults import Fault, duplicate_fault, duplicates, own_keys

ChangeMasks = Callable[[Masks, Pairs], tuple[Tensor, Tensor]]


class Suspect(NamedTuple):
    """A fault, and the loss of a loop that has it: a number, of rows z (n, d). `fault` is None for what is none."""

    fault: Fault | None
    value: Callable[[Tensor], Tensor]
    scale: float  # what it multiplies a score by


@dataclass(frozen=True, eq=False)
class Case:
    """A batch, as the declared loss pairs it. Raises ValueError where the loss cannot use the rows."""

    rows: RecordedBatch
    loss: Loss
    positives: str
    process: np.ndarray | None = None  # (n), of several that share a batch

    @property
    def processes(self) -> int:
        return 1 if self.process is None else int(self.process.max()) + 1

    def of_anchors(self, pairs: Pairs) -> np.ndarray:
        """The process of each anchor."""
        assert self.process is not None
        return self.process if len(pairs) == len(self.rows) else self.process[self.rows.view == 0]

    def own_anchors(self, pairs: Pairs) -> Pairs:
        """The anchors of this process alone."""
        return pairs.take_anchors(torch.from_numpy(self.of_anchors(pairs) == 0))

    @property
    def declared(self) -> Suspect:
        return self.of()

    def pairs(self, z: Tensor, positives: str = "", **fields: Any) -> tuple[Loss, Pairs]:
        rows = dataclasses.replace(self.rows, z=z, **fields)
        every, _ = pairs_of(rows, self.loss, positives or self.positives)
        return with_learned(rows, self.loss, every)

    def of(
        self,
        fault: Fault | None = None,
        change: Callable[[Pairs], Pairs] = lambda pairs: pairs,
        mean: Callable[[Any, Pairs], Tensor] = lambda output, pairs: output.value,
        positives: str = "",
        loss: Callable[[Loss], Loss] = lambda loss: loss,
        **fields: Any,
    ) -> Suspect:
        """The declared loss with other pairs, another mean, other settings or other groups."""

        def value(z: Tensor) -> Tensor:
            own, every = self.pairs(z, positives, **fields)
            every = change(every)
            return mean(loss(own)(every), every)

        return Suspect(fault, value, abs(loss(self.learned).logit_scale))

    @cached_property
    def learned(self) -> Loss:
        """The declared loss with the τ that goes along with the batch."""
        return self.pairs(self.rows.z)[0]

    @property
    def is_one_sided(self) -> bool:
        """Return whether first views alone are anchors."""
        return self.rows.queue is not None or self.positives == "keys"


def suspects(case: Case) -> Iterator[Suspect]:
    """Everything that a loop with a known fault computes, and harmless variants of the declared loss."""
    yield from _harmless(case)
    yield from _of_settings(case)
    yield from _of_pairs(case)
    yield from _of_targets(case)
    yield from _of_order(case)
    yield from _of_directions(case)
    fault = Fault("mean_over_pairs", N_("The mean is over positive pairs, not over anchors."))

    def mean(output: Any, pairs: Pairs) -> Tensor:
        weight = output.weight * pairs.relation_counts[0]
        return (weight * output.per_anchor).sum() / weight.sum()

    yield case.of(fault, mean=mean)


def _harmless(case: Case) -> Iterator[Suspect]:
    rows = case.rows
    groups = group_numbers(rows.ids)
    is_plain = rows.has_views and not rows.is_of_towers and rows.queue is None
    if is_plain and len(np.unique(groups)) < rows.image.max() + 1:
        yield case.of(image=groups)  # rows of an equal id are positives
    if rows.queue is not None and (own := own_keys(rows)).any():
        yield case.of(queue=rows.queue[torch.from_numpy(~own)])  # it was recorded after it was filled


# --- settings ---


def with_setting(**values: Any) -> Callable[[Loss], Loss]:
    """The loss with other settings, in range or not."""

    def change(loss: Loss) -> Loss:
        other = copy.copy(loss)  # not checked: a fault may lie outside a knob's range
        for name, value in values.items():
            object.__setattr__(other, name, value)
        return other

    return change


def _of_settings(case: Case) -> Iterator[Suspect]:
    knobs = knobs_of(type(case.loss))
    if "temperature" in knobs:
        tau: float = getattr(case.learned, "temperature")  # noqa: B009
        texts = {
            "tau_twice": (tau * tau, N_("τ is applied twice: the logits are s/τ².")),
            "tau_as_scale": (1 / tau, N_("The logits are multiplied by τ instead of divided by it.")),
            "tau_unused": (1.0, N_("τ is not applied.")),
        }
        for name, (other, text) in texts.items():
            yield case.of(Fault(name, text), loss=with_setting(temperature=other))
    if "bias" in knobs:
        yield case.of(Fault("bias_unused", N_("The bias is not added.")), loss=with_setting(bias=0.0), bias=None)
    for name, knob in knobs.items():
        now = getattr(case.loss, name)
        others = knob.choices or ((True, False) if isinstance(knob.default, bool) else ())
        for value in others:
            if value == now:
                continue
            if name == "normalize" or value in ("cosine", "dot"):
                is_raw = value in (False, "dot")
                raw, unit = N_("The rows are not normalized."), N_("The rows are normalized, which was not declared.")
                fault = Fault("not_normalized" if is_raw else "normalized", raw if is_raw else unit)
            else:
                fault = Fault("other_setting", message("The loop uses {name}={value}.", name=name, value=value))
            yield case.of(fault, loss=with_setting(**{name: value}))


# --- pairs ---


def _with_masks(change: ChangeMasks, twice: bool = False) -> Callable[[Pairs], Pairs]:
    """The pairs with other masks (n, m); or (n, 2m), of candidates that come twice."""

    def changed(pairs: Pairs) -> Pairs:
        positive, negative = change(pairs.masks(), pairs)
        at = torch.arange(pairs.candidates.shape[0])
        part = pairs.take_candidates(torch.cat([at, at]) if twice else at)
        none = torch.full_like(part.candidate_rows, NO_ROW)
        return dataclasses.replace(part, positive=positive, negative=negative, candidate_rows=none, group_size=None)

    return changed


def _positive_twice(masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
    none = torch.zeros_like(masks.positive)
    return torch.cat([masks.positive, none], 1), torch.cat([masks.negative, masks.positive], 1)


def _first_positive(masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
    first = masks.positive & (masks.positive.cumsum(1) == 1)
    return first, masks.negative | (masks.positive & ~first)


def _rows_alone(used: Tensor) -> Callable[[Pairs], Pairs]:
    return lambda pairs: pairs.take_anchors(used).take_candidates(torch.nonzero(used).flatten())


def _of_pairs(case: Case) -> Iterator[Suspect]:
    _, every = case.pairs(case.rows.z)
    masks, rows = every.masks(), case.rows
    text = N_("The positive is also among the negatives.")
    yield case.of(Fault("positive_among_negatives", text), _with_masks(_positive_twice, twice=True))
    if masks.self_pair.any() and not every.across:
        text = N_("Each row is its own negative: the diagonal is not masked.")
        with_itself = _with_masks(lambda masks, _: (masks.positive, masks.negative | masks.self_pair))
        yield case.of(Fault("self_among_negatives", text), with_itself)
    if case.process is not None:
        process, of_anchor = case.process, case.of_anchors(every)
        of_candidate = process if len(every.candidates) == len(rows) else process[rows.view == 1]
        same = torch.from_numpy(of_anchor[:, None] == of_candidate)
        text = N_("Rows of other processes are not used as negatives.")
        yield case.of(
            Fault("processes_apart", text), _with_masks(lambda masks, _: (masks.positive, masks.negative & same))
        )
    if (masks.positive.sum(1) > 1).any():
        text = N_("Only the first positive of an anchor counts as one. The others are negatives.")
        yield case.of(Fault("first_positive_only", text), _with_masks(_first_positive))
    if rows.queue is not None:
        text = N_("The queue is not used: the negatives are the other keys of the batch.")
        yield case.of(Fault("queue_unused", text), positives="keys", queue=None)
    alone = ~np.isin(rows.image, rows.shared_groups()) & (rows.view == 1)
    if rows.is_of_towers and alone.any():
        text = message("The {count} rows without an anchor are not used as negatives.", count=int(alone.sum()))
        kept = torch.from_numpy(~alone)
        fault = Fault("negatives_unused", text, tuple(rows.ids[alone].tolist()))
        yield case.of(fault, lambda pairs: pairs.take_candidates(torch.nonzero(kept).flatten()))
    sizes = [int((rows.view == side).sum()) for side in (0, 1)]
    if rows.is_of_towers and sizes[0] == sizes[1] and (names := duplicates(rows)):
        yield case.of(duplicate_fault(names), image=np.tile(np.arange(sizes[0]), 2))
    if not (case.is_one_sided or rows.is_of_towers) and (views := int(rows.view.max()) + 1) > 2:
        for left in (*([view] for view in range(views)), *(range(view, views) for view in range(2, views))):
            text = message("The rows of {count} of {views} views are not used.", count=len(left), views=views)
            used = torch.from_numpy(~np.isin(rows.view, left))
            yield case.of(Fault("view_unused", text), _rows_alone(used))
    for positives in ("labels", "views"):
        has_both = rows.has_labels and rows.has_views and not rows.is_of_towers and not case.is_one_sided
        text = N_("Rows of one label are positives.") if positives == "labels" else N_("The labels are not used.")
        if has_both:
            yield case.of(Fault(f"paired_by_{positives}", text), positives=positives)


# --- targets ---


def _first_column(masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
    compared = masks.positive | masks.negative
    positive = torch.zeros_like(compared).scatter_(1, compared.byte().argmax(1, keepdim=True), True) & compared
    return positive, compared & ~positive


def _first_negative(masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
    positive = masks.negative & (masks.negative.cumsum(1) == 1)
    return positive, (masks.positive | masks.negative) & ~positive


def _shifted(by: int) -> ChangeMasks:
    def change(masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        positive = masks.positive.clone()
        for side in (0, 1):
            own = pairs.anchor_views == side
            positive[own] = positive[own].roll(by, 0)
        negative = masks.negative if not pairs.as_negative.all() else masks.positive | masks.negative
        return positive, negative & ~positive

    return change


def _of_targets(case: Case) -> Iterator[Suspect]:
    rows = case.rows
    column = Fault("column_0", N_("Every target is column 0."))
    yield case.of(column, _with_masks(_first_negative if rows.queue is not None else _first_column))
    shifted = Fault("target_shifted", N_("The targets are shifted by one row."))
    second = rows.view == 1
    for by in (1, -1):
        if rows.has_labels and not rows.is_of_towers:
            yield case.of(shifted, labels=np.roll(rows.labels, by))
        yield case.of(shifted, _with_masks(_shifted(by)))  # the same targets in both directions
        if not case.is_one_sided and (rows.has_views or rows.is_of_towers):
            image = rows.image.copy()
            image[second] = np.roll(image[second], by)
            yield case.of(shifted, image=image, positives="" if rows.is_of_towers else "views")


def _of_order(case: Case) -> Iterator[Suspect]:
    rows, n = case.rows, len(case.rows)
    counts = np.unique(rows.image, return_counts=True)[1]
    if rows.is_of_towers or case.is_one_sided or not rows.has_views or (counts != counts[0]).any():
        return
    views, images = counts[0], len(counts)
    flat, by_view = np.arange(n), rows.view * images + group_numbers(rows.image)
    for image in (flat // views, flat % images, by_view // views, by_view % images):
        if len(np.unique(np.stack([image, rows.image]), axis=1).T) > images:  # another partition
            text = N_("The targets assume another order of the views.")
            yield case.of(Fault("view_order", text), image=image, positives="views")


def _of_directions(case: Case) -> Iterator[Suspect]:
    rows, text = case.rows, N_("Only one direction is computed: the rows of side {side} are not anchors.")
    if case.positives == "keys" and rows.queue is None:
        fault = Fault("both_directions", N_("Both directions are computed: the rows of side 2 are anchors too."))
        if rows.is_of_towers:
            yield case.of(fault, positives="auto")
        else:
            yield case.of(fault, lambda pairs: builders.from_towers(pairs.anchors, pairs.candidates))
    if case.is_one_sided or not (rows.has_views or rows.is_of_towers):
        return
    for side in (1, 0):
        kept = torch.from_numpy(rows.view != side)
        fault = Fault("one_direction", message(text, side=side + 1))
        yield case.of(fault, lambda pairs, kept=kept: pairs.take_anchors(kept))  # type: ignore[misc]
    counts = np.unique(rows.image, return_counts=True)[1]
    if rows.is_of_towers or not (counts == 2).all():
        return
    both = Fault("across_views", N_("Rows are compared only with rows of the other view."))
    order = torch.from_numpy(np.lexsort((rows.image, rows.view)))

    def towers(direction: str) -> Callable[[Pairs], Pairs]:
        def change(pairs: Pairs) -> Pairs:
            a, b = pairs.candidates[order].chunk(2)
            return builders.from_towers(a, b, direction=direction)

        return change

    yield case.of(both, towers("both"))
    for side, direction in ((2, "a_to_b"), (1, "b_to_a")):
        yield case.of(Fault("one_direction", message(text, side=side)), towers(direction))

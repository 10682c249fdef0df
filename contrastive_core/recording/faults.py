"""Known faults of a training loop: those of the loss, each as the loss that a loop with this fault computes on the same
rows, and those that are seen in the rows alone."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from contrastive_core import pairs as builders
from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import knobs_of
from contrastive_core.losses import Loss
from contrastive_core.pairs import Pairs
from contrastive_core.pairs.types import NO_ROW, Masks
from contrastive_core.recording.figures import pairs_of, with_learned
from contrastive_core.recording.recorded_batch import RecordedBatch, group_numbers

SAME = 1 - 1e-5  # cosine from which on two rows are copies
BLOCK = 1 << 17  # scores of a suspect that are held at once: 1 MB, and as much for each step of a formula
COLLAPSED, COLLAPSING = 1e-3, 0.1  # variance of unit rows; of those that varied five times as much
ChangeMasks = Callable[[Masks], tuple[Tensor, Tensor]]  # positive and negative


class Fault(NamedTuple):
    """A fault by name, in a sentence, with the ids of the rows concerned."""

    name: str
    text: str
    rows: tuple[str, ...] = ()


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
            every = dataclasses.replace(change(every), block=BLOCK)
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

    @property
    def has_two_sides(self) -> bool:
        return not self.is_one_sided and (self.rows.has_views or self.rows.is_of_towers)

    @property
    def views(self) -> int:
        """The number of views of each image; 0 if it differs between images, and for two towers."""
        counts = np.unique(self.rows.image, return_counts=True)[1]
        is_even = not self.rows.is_of_towers and bool((counts == counts[0]).all())
        return int(counts[0]) if is_even else 0


def suspects(case: Case) -> Iterator[Suspect]:
    """Everything that a loop with a known fault computes, and harmless variants of the declared loss."""
    for group in (_harmless, _of_settings, _of_masks, _of_rows_left_out, _of_targets, _of_directions, _of_gradient):
        yield from group(case)


def _harmless(case: Case) -> Iterator[Suspect]:
    rows, groups = case.rows, group_numbers(case.rows.ids)
    is_plain = rows.has_views and not rows.is_of_towers and rows.queue is None
    if is_plain and len(np.unique(groups)) < rows.image.max() + 1:
        yield case.of(image=groups)  # rows of an equal id are positives
    if rows.queue is not None and (own := own_keys(rows)).any():
        yield case.of(queue=rows.queue[torch.from_numpy(~own)])  # it was recorded after it was filled


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
        for other, fault in (
            (tau * tau, Fault("tau_twice", N_("τ is applied twice: the logits are s/τ²."))),
            (1 / tau, Fault("tau_as_scale", N_("The logits are multiplied by τ instead of divided by it."))),
            (1.0, Fault("tau_unused", N_("τ is not applied."))),
        ):
            yield case.of(fault, loss=with_setting(temperature=other))
    if "bias" in knobs:
        yield case.of(Fault("bias_unused", N_("The bias is not added.")), loss=with_setting(bias=0.0), bias=None)
    raw = Fault("not_normalized", N_("The rows are not normalized."))
    unit = Fault("normalized", N_("The rows are normalized, although this was not declared."))
    known = {"normalize=False": raw, "critic=dot": raw, "normalize=True": unit, "critic=cosine": unit}
    for name, knob in knobs.items():
        for value in knob.choices or ((True, False) if isinstance(knob.default, bool) else ()):
            if value != getattr(case.loss, name):
                text = message("The loop uses {name}={value}.", name=name, value=value)
                fault = known.get(f"{name}={value}", Fault("other_setting", text))
                yield case.of(fault, loss=with_setting(**{name: value}))


# --- who is compared with whom ---


def _with_masks(change: ChangeMasks) -> Callable[[Pairs], Pairs]:
    """The pairs with other masks (n, m); or (n, 2m), of candidates that come twice."""

    def changed(pairs: Pairs) -> Pairs:
        positive, negative = change(pairs.masks())
        part = pairs.take_candidates(torch.arange(positive.shape[1]) % len(pairs.candidates))
        none = torch.full_like(part.candidate_rows, NO_ROW)
        return dataclasses.replace(part, positive=positive, negative=negative, candidate_rows=none, group_size=None)

    return changed


def _twice(masks: Masks) -> tuple[Tensor, Tensor]:
    none = torch.zeros_like(masks.positive)
    return torch.cat([masks.positive, none], 1), torch.cat([masks.negative, masks.positive], 1)


def _first_of(among: Callable[[Masks], Tensor]) -> ChangeMasks:
    """The first pair of each anchor among some is its positive; every other pair is negative."""

    def change(masks: Masks) -> tuple[Tensor, Tensor]:
        all_of = among(masks)
        positive = all_of & (all_of.cumsum(1, dtype=torch.int32) == 1)
        return positive, (masks.positive | masks.negative) & ~positive

    return change


def _of_masks(case: Case) -> Iterator[Suspect]:
    rows, every = case.rows, case.pairs(case.rows.z)[1]
    masks = every.masks()
    are_rows_their_own, have_several = bool(masks.self_pair.any()), bool((masks.positive.sum(1) > 1).any())
    del masks  # of a large batch they take as much memory as a suspect does
    text = N_("The positive is also among the negatives.")
    yield case.of(Fault("positive_among_negatives", text), _with_masks(_twice))
    if are_rows_their_own and not every.across:
        text = N_("Each row is its own negative: the diagonal is not masked.")
        with_itself = _with_masks(lambda masks: (masks.positive, masks.negative | masks.self_pair))
        yield case.of(Fault("self_among_negatives", text), with_itself)
    if case.process is not None:
        whole = len(every) == len(rows)
        anchor, other = (case.process if whole else case.process[rows.view == side] for side in (0, 1))
        same = torch.from_numpy(anchor[:, None] == (case.process if len(every.candidates) == len(rows) else other))
        text = N_("Rows of other processes are not used as negatives.")
        apart = _with_masks(lambda masks: (masks.positive, masks.negative & same))
        yield case.of(Fault("processes_apart", text), apart)
    if have_several:
        text = N_("Only the first positive of an anchor is used as a positive. The others are treated as negatives.")
        yield case.of(Fault("first_positive_only", text), _with_masks(_first_of(lambda masks: masks.positive)))
    column = Fault("column_0", N_("Every target is column 0."))
    first = (lambda masks: masks.negative) if rows.queue is not None else lambda masks: masks.positive | masks.negative
    yield case.of(column, _with_masks(_first_of(first)))

    def mean(output: Any, pairs: Pairs) -> Tensor:
        weight = output.weight * pairs.relation_counts[0]
        return (weight * output.per_anchor).sum() / weight.sum()

    yield case.of(Fault("mean_over_pairs", N_("The mean is over positive pairs, not over anchors.")), mean=mean)


def _kept(used: np.ndarray, anchors: bool = False) -> Callable[[Pairs], Pairs]:
    """The pairs of some candidates (n), or of some rows as anchors and candidates."""
    at = torch.from_numpy(used)
    return lambda pairs: (pairs.take_anchors(at) if anchors else pairs).take_candidates(torch.nonzero(at).flatten())


def _of_rows_left_out(case: Case) -> Iterator[Suspect]:
    rows = case.rows
    if rows.queue is not None:
        text = N_("The queue is not used: the negatives are the other keys of the batch.")
        yield case.of(Fault("queue_unused", text), positives="keys", queue=None)
    if rows.is_of_towers:
        if (alone := ~np.isin(rows.image, rows.shared_groups()) & (rows.view == 1)).any():
            text = message("The {count} rows without an anchor are not used as negatives.", count=int(alone.sum()))
            yield case.of(Fault("negatives_unused", text, tuple(rows.ids[alone].tolist())), _kept(~alone))
        n = int((rows.view == 0).sum())
        for fault in duplicates(rows) if 2 * n == len(rows) else ():
            yield case.of(fault, image=np.tile(np.arange(n), 2))
        return
    views = int(rows.view.max()) + 1
    if not case.is_one_sided and views > 2:
        for left in (*([view] for view in range(views)), *(range(view, views) for view in range(2, views))):
            text = message("The rows of {count} of {views} views are not used.", count=len(left), views=views)
            yield case.of(Fault("view_unused", text), _kept(~np.isin(rows.view, left), anchors=True))
    if rows.has_labels and rows.has_views and not case.is_one_sided:
        yield case.of(Fault("paired_by_labels", N_("Rows with the same label are positives.")), positives="labels")
        yield case.of(Fault("paired_by_views", N_("The labels are not used.")), positives="views")


def _of_targets(case: Case) -> Iterator[Suspect]:
    rows, shifted = case.rows, Fault("target_shifted", N_("The targets are shifted by one row."))
    second, by_image = rows.view == 1, "" if rows.is_of_towers else "views"

    def rolled(pairs: Pairs, by: int) -> Pairs:
        """Shift the targets of both directions by `by` rows."""

        def change(masks: Masks) -> tuple[Tensor, Tensor]:
            positive = masks.positive.clone()
            for side in (0, 1):
                own = pairs.anchor_views == side
                positive[own] = positive[own].roll(by, 0)
            negative = masks.negative if not pairs.as_negative.all() else masks.positive | masks.negative
            return positive, negative & ~positive

        return _with_masks(change)(pairs)

    def of_whole(by: int, masks: Masks) -> tuple[Tensor, Tensor]:
        """The targets of all rows, the first views first, go around."""
        columns, positive = torch.from_numpy(np.lexsort((rows.image, rows.view))), masks.positive.clone()
        positive[:, columns] = masks.positive[:, columns].roll(by, 1)
        return positive, (masks.positive | masks.negative) & ~positive

    for by in (1, -1):
        if rows.has_labels and not rows.is_of_towers:
            yield case.of(shifted, labels=np.roll(rows.labels, by))
        yield case.of(shifted, lambda pairs, by=by: rolled(pairs, by))  # type: ignore[misc]
        if case.has_two_sides and not rows.is_of_towers:
            yield case.of(shifted, _with_masks(partial(of_whole, by)))
        if case.has_two_sides:
            image = rows.image.copy()
            image[second] = np.roll(image[second], by)
            yield case.of(shifted, image=image, positives=by_image)
    if not case.has_two_sides or not (views := case.views):
        return
    images = len(rows) // views
    flat, by_view = np.arange(len(rows)), rows.view * images + group_numbers(rows.image)
    for image in (flat // views, flat % images, by_view // views, by_view % images):
        if len(np.unique(np.stack([image, rows.image]), axis=1).T) > images:  # another partition
            fault = Fault("view_order", N_("The targets assume another order of the views."))
            yield case.of(fault, image=image, positives="views")


def _of_directions(case: Case) -> Iterator[Suspect]:
    rows = case.rows
    if case.positives == "keys" and rows.queue is None:
        fault = Fault("both_directions", N_("Both directions are computed: the rows of side 2 are anchors too."))
        if rows.is_of_towers:
            yield case.of(fault, positives="auto")
        else:
            yield case.of(fault, lambda pairs: builders.from_towers(pairs.anchors, pairs.candidates))
    if not case.has_two_sides:
        return
    text = N_("Only one direction is computed: the rows of side {side} are not anchors.")
    one = [Fault("one_direction", message(text, side=side)) for side in (1, 2)]
    for side in (1, 0):
        kept = torch.from_numpy(rows.view != side)
        yield case.of(one[side], lambda pairs, kept=kept: pairs.take_anchors(kept))  # type: ignore[misc]
    if case.views != 2:
        return
    order = torch.from_numpy(np.lexsort((rows.image, rows.view)))
    across = Fault("across_views", N_("Rows are compared only with rows of the other view."))
    for fault, direction in ((across, "both"), (one[1], "a_to_b"), (one[0], "b_to_a")):
        yield case.of(
            fault,
            lambda pairs, direction=direction: builders.from_towers(  # type: ignore[misc]
                *pairs.candidates[order].chunk(2), direction=direction
            ),
        )


def _of_gradient(case: Case) -> Iterator[Suspect]:
    """The right loss, whose gradient does not reach all rows."""
    whole, view = case.of(), torch.from_numpy(case.rows.view)

    def in_part(kept: Tensor, z: Tensor) -> Tensor:
        return whole.value(torch.where(kept, z, z.detach()))

    sided = N_("No gradient reaches the rows of side {side}: they are detached, or the loss uses other tensors.")
    for side, text in ((None, N_("No gradient reaches the rows.")), *((s, message(sided, side=s + 1)) for s in (1, 0))):
        kept = (view != side if side is not None else view < 0)[:, None]
        yield Suspect(Fault("detached", text), partial(in_part, kept), whole.scale)
    text = N_("Rows get a gradient only as anchors: the candidates are detached.")
    yield case.of(Fault("detached", text), lambda pairs: pairs.with_rows(pairs.anchors, pairs.candidates.detach()))
    if case.process is not None:
        process = case.process

        def own_anchors(pairs: Pairs) -> Pairs:
            of_anchor = process if len(pairs) == len(process) else process[case.rows.view == 0]
            return pairs.take_anchors(torch.from_numpy(of_anchor == 0))

        own = case.of(change=own_anchors)
        fault = Fault("gathered_detached", N_("Rows of other processes are gathered without their gradient."))

        def gathered(z: Tensor) -> Tensor:
            return whole.value(z.detach()) + (own.value(z) - own.value(z.detach())) / case.processes

        yield Suspect(fault, gathered, whole.scale)


# --- faults of the rows ---


def spread_of(rows: RecordedBatch) -> tuple[float, float]:
    """The variance of unit rows, and the number of dimensions in which they vary (the participation ratio)."""
    unit = normalize(rows.z, dim=1)
    spectrum = torch.linalg.svdvals(unit - unit.mean(0)).square()
    total = float(spectrum.sum())
    return total / len(unit), total**2 / max(float(spectrum.square().sum()), 1e-30)


def of_rows(rows: RecordedBatch, queue_before: Tensor | None, first: float | None) -> Iterator[Fault]:
    """Faults that lie in the rows, whatever the loss. `first`: the variance of the first step."""
    variance, dimensions = spread_of(rows)
    is_flat = variance < COLLAPSED or (first is not None and variance < min(COLLAPSING, first / 5))
    if is_flat or (len(rows) > 15 and rows.z.shape[1] > 7 and dimensions < 1.5):
        text = N_("The embedding collapses: unit rows vary in {count} of {width} dimensions, with variance {variance}.")
        values = {"count": f"{dimensions:.1f}", "width": rows.z.shape[1], "variance": f"{variance:.2g}"}
        yield Fault("collapse", message(text, **values))
    queue = rows.queue
    if queue is not None and len(queue):
        is_same = queue_before is not None and torch.equal(queue, queue_before)
        if is_same or float((queue - queue[0]).abs().max()) == 0:
            yield Fault("queue_unfilled", N_("The queue is not filled: it does not change."))


def of_healthy(rows: RecordedBatch) -> Iterator[Fault]:
    """Faults that lie in what the loop hands to the right loss."""
    if rows.temperature is not None and rows.temperature > 1:
        text = N_("τ is {tau}: the logits are multiplied by τ instead of divided by it.")
        yield Fault("tau_as_scale", message(text, tau=f"{rows.temperature:.3g}"))
    if rows.queue is not None and (own := own_keys(rows)).any():
        text = message("{count} rows of the queue are keys of this batch.", count=int(own.sum()))
        yield Fault("own_keys_in_queue", text)
    if rows.has_views and not rows.is_of_towers:
        yield from duplicates(rows)


def duplicates(rows: RecordedBatch) -> list[Fault]:
    """The fault of a batch in which several images have one id; of two towers, several rows of each."""
    names, counts = np.unique(rows.ids[rows.view == 0], return_counts=True)
    twice = tuple(names[counts > 1].tolist())
    text = N_("Images that are in the batch twice are negatives of each other. Ids: {count}.")
    return [Fault("duplicates", message(text, count=len(twice)), twice)] if twice else []


def own_keys(rows: RecordedBatch) -> np.ndarray:
    """Return a boolean array (k): is each row of the queue a key of this batch?"""
    assert rows.queue is not None
    keys = normalize(rows.z[torch.from_numpy(rows.view == 1)], dim=1)
    scores = normalize(rows.queue, dim=1) @ keys.T
    return (scores > SAME).any(1).numpy()

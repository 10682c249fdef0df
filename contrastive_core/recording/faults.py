"""Known faults of a loss, each as the loss that a loop with this fault computes on the same rows."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import batch_norm

from contrastive_core import pairs as builders
from contrastive_core.base.registry import knobs_of
from contrastive_core.losses import Loss
from contrastive_core.losses.barlow_twins import BarlowTwinsLoss
from contrastive_core.pairs import Pairs
from contrastive_core.pairs.types import Masks
from contrastive_core.recording.fault_kinds import Fault, duplicates, fault_of, own_keys
from contrastive_core.recording.figures import pairs_of, with_learned
from contrastive_core.recording.steps import RecordedBatch, group_numbers

EPS = 2.0**-12  # of float32, whose products may be TF32
BLOCK = 1 << 17  # scores of a suspect that are held at once: 1 MB, and as much for each step of a formula
NORMALIZED = {  # by a setting
    **dict.fromkeys(("normalize=False", "critic=dot"), "not_normalized"),
    **dict.fromkeys(("normalize=True", "critic=cosine"), "normalized"),
}


class Suspect(NamedTuple):
    """A suspected fault with the loss that it would compute from rows z (n, d). `fault` is None for a harmless
    variant."""

    fault: Fault | None
    value: Callable[[Tensor], Tensor]
    scale: float  # what it multiplies a score by


@dataclass(frozen=True, eq=False)
class SavedBatch:
    """Rows of a step with the loop's loss value and the gradient (n, d) that reached them; None for a missing one.

    Args:
        is_learned: (n) rows that require a gradient; default: all. eps: the precision of the loop's numbers.
        accumulate: batches whose gradients add up, each divided by this number.
        process: (n) number of the process that has the row, 0 for this one; None: there is one. `value` is the mean
            over processes; `grad` is the gradient of the sum of their losses at the rows of this process.
        queue_before: the queue of an earlier step. first_spread: `spread_of` the rows of the first step."""

    rows: RecordedBatch
    value: float | None = None
    grad: Tensor | None = None
    is_learned: np.ndarray | None = None
    eps: float = EPS
    positives: str = "auto"
    accumulate: int = 1
    process: np.ndarray | None = None
    queue_before: Tensor | None = None
    first_spread: float | None = None


@dataclass(frozen=True, eq=False)
class Case(SavedBatch):
    """A batch with the declared loss. Raises ValueError if the loss cannot use the rows."""

    loss: Loss = field(kw_only=True)

    @property
    def processes(self) -> int:
        return 1 if self.process is None else int(self.process.max()) + 1

    def pairs(self, z: Tensor, positives: str = "", **fields: Any) -> tuple[Loss, Pairs]:
        rows = dataclasses.replace(self.rows, z=z, **fields)
        every, _ = pairs_of(rows, self.loss, positives or self.positives)
        return with_learned(rows, self.loss, every)

    def of(
        self,
        named: Fault | None = None,
        change: Callable[[Pairs], Pairs] | None = None,
        mean: Callable[[Any, Pairs], Tensor] = lambda output, pairs: output.value,
        positives: str = "",
        loss: Callable[[Loss], Loss] = lambda loss: loss,
        **fields: Any,
    ) -> Suspect:
        """Return a suspect: the declared loss with other pairs, another mean, other settings or other groups."""

        def value(z: Tensor) -> Tensor:
            own, every = self.pairs(z, positives, **fields)
            own, every = loss(own), dataclasses.replace(change(every) if change else every, block=BLOCK)
            if problem := own.check(every):
                raise ValueError(problem)
            return mean(own.without_waiting(every), every)

        return Suspect(named, value, abs(loss(self.learned).logit_scale))

    @cached_property
    def learned(self) -> Loss:
        """The declared loss with the batch's learned τ."""
        return self.pairs(self.rows.z)[0]

    @property
    def is_one_sided(self) -> bool:
        """Return whether only first views are anchors."""
        return self.rows.queue is not None or self.positives == "keys"

    @property
    def has_two_sides(self) -> bool:
        return not self.is_one_sided and (self.rows.has_views or self.rows.is_of_towers)

    @property
    def views(self) -> int:
        """The number of views per image; 0 if it differs between images, and for two towers."""
        counts = np.unique(self.rows.image, return_counts=True)[1]
        is_even = not self.rows.is_of_towers and bool((counts == counts[0]).all())
        return int(counts[0]) if is_even else 0


def suspects(case: Case) -> Iterator[Suspect]:
    """Yield the loss that a loop with each known fault computes."""
    for group in (_of_settings, _of_masks, _of_rows_left_out, _of_targets, _of_directions, _of_gradient):
        yield from group(case)


def harmless(case: Case) -> Iterator[Suspect]:
    """Yield variants of the declared loss that are not faults."""
    rows, groups, process = case.rows, group_numbers(case.rows.ids), case.process
    is_plain = rows.has_views and not rows.is_of_towers and rows.queue is None
    if is_plain and len(np.unique(groups)) < rows.image.max() + 1:
        yield case.of(image=groups)  # rows of an equal id are positives
    if rows.queue is not None and (own := own_keys(rows)).any():
        yield case.of(queue=rows.queue[torch.from_numpy(~own)])  # it was recorded after it was filled
    if process is not None and isinstance(case.loss, BarlowTwinsLoss):  # each process standardizes its own columns
        whole, number = case.of(), process * (rows.view.max() + 1) + rows.view
        parts = [torch.from_numpy(np.flatnonzero(number == k)) for k in np.unique(number)]

        def standardized(z: Tensor) -> Tensor:
            unit = [batch_norm(z[part], None, None, training=True) for part in parts]
            return whole.value(torch.cat(unit)[torch.cat(parts).argsort()])

        yield Suspect(None, standardized, whole.scale)


def with_setting(**values: Any) -> Callable[[Loss], Loss]:
    """Return a function that changes settings of a loss, even beyond their range."""

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
        for name, other in (("tau_twice", tau * tau), ("tau_as_scale", 1 / tau), ("tau_unused", 1.0)):
            yield case.of(fault_of(name), loss=with_setting(temperature=other))
    if "bias" in knobs:
        yield case.of(fault_of("bias_unused"), loss=with_setting(bias=0.0), bias=None)
    for name, knob in knobs.items():
        for value in knob.choices or ((True, False) if isinstance(knob.default, bool) else ()):
            if value != getattr(case.loss, name):
                other_setting = NORMALIZED.get(f"{name}={value}", "other_setting")
                yield case.of(fault_of(other_setting, name=name, value=value), loss=with_setting(**{name: value}))


# --- who is compared with whom ---


class _Related(Pairs):
    """Pairs whose explicit masks may relate a row to itself."""

    def masks(self, rows: slice = slice(None), cols: slice = slice(None)) -> Masks:
        whole: Any = (self.positive, self.negative)
        positive, negative = (mask[rows, cols] for mask in whole)
        return Masks(positive, negative, torch.zeros_like(positive))


def _related(change: Callable[[Pairs, Masks], tuple[Tensor, Tensor]], times: int = 1) -> Callable[[Pairs], Pairs]:
    """Return a function that replaces the positives and negatives of pairs by `change` of their masks (n, m), or
    (n, 2 · m) with each candidate twice."""

    def related(pairs: Pairs) -> Pairs:
        positive, negative = change(pairs, pairs.masks())
        part = pairs.take_candidates(torch.arange(times * len(pairs.candidates)) % len(pairs.candidates))
        fields = {f.name: getattr(part, f.name) for f in dataclasses.fields(Pairs)}
        return _Related(**fields | {"group_size": None, "positive": positive, "negative": negative})

    return related


def _first_of(among: Callable[[Masks], Tensor]) -> Callable[[Pairs], Pairs]:
    """Return a function that makes the first of the pairs `among` the only positive of each anchor, and all others
    negatives."""

    def change(pairs: Pairs, masks: Masks) -> tuple[Tensor, Tensor]:
        all_of = among(masks)
        positive = all_of & (all_of.cumsum(1, dtype=torch.int32) == 1)
        return positive, (masks.positive | masks.negative) & ~positive

    return _related(change)


def _of_masks(case: Case) -> Iterator[Suspect]:
    rows, every = case.rows, case.pairs(case.rows.z)[1]

    def twice(pairs: Pairs, masks: Masks) -> tuple[Tensor, Tensor]:
        none = torch.zeros_like(masks.positive)
        return torch.cat([masks.positive, none], 1), torch.cat([masks.negative, masks.positive], 1)

    yield case.of(fault_of("positive_among_negatives"), _related(twice, 2))
    if not every.across and torch.isin(every.anchor_rows[every.anchor_rows >= 0], every.candidate_rows).any():
        with_itself = _related(lambda pairs, masks: (masks.positive, masks.negative | masks.self_pair))
        yield case.of(fault_of("self_among_negatives"), with_itself)
    if case.process is not None:

        def apart(z: Tensor) -> Tensor:
            """Return the mean over processes of the loss that each computes on its own rows only."""
            each = [np.asarray(case.process == number) for number in range(case.processes)]
            parts = [Case(rows.take(own), positives=case.positives, loss=case.loss).of() for own in each]
            values = [part.value(z[torch.from_numpy(own)]) for part, own in zip(parts, each, strict=True)]
            return torch.stack(values).mean()

        yield Suspect(fault_of("processes_apart"), apart, case.of().scale)
    if (every.relation_counts[0] > 1).any():
        yield case.of(fault_of("first_positive_only"), _first_of(lambda masks: masks.positive))
    first = (lambda masks: masks.negative) if rows.queue is not None else lambda masks: masks.positive | masks.negative
    yield case.of(fault_of("column_0"), _first_of(first))

    def mean(output: Any, pairs: Pairs) -> Tensor:
        weight = output.weight * pairs.relation_counts[0]
        return (weight * output.per_anchor).sum() / weight.sum()

    yield case.of(fault_of("mean_over_pairs"), mean=mean)


def _kept(used: np.ndarray, anchors: bool = False) -> Callable[[Pairs], Pairs]:
    """Return a function that keeps some candidates (n), or some rows as anchors and candidates."""
    at = torch.from_numpy(used)
    return lambda pairs: (pairs.take_anchors(at) if anchors else pairs).take_candidates(torch.nonzero(at).flatten())


def _of_rows_left_out(case: Case) -> Iterator[Suspect]:
    rows = case.rows
    if rows.queue is not None:
        yield case.of(fault_of("queue_unused"), positives="keys", queue=None)
    if rows.is_of_towers:
        if (alone := ~np.isin(rows.image, rows.shared_groups()) & (rows.view == 1)).any():
            unused = fault_of("negatives_unused", tuple(rows.ids[alone].tolist()), count=int(alone.sum()))
            yield case.of(unused, _kept(~alone))
        n = int((rows.view == 0).sum())
        for twice in duplicates(rows) if 2 * n == len(rows) else ():
            yield case.of(twice, image=np.tile(np.arange(n), 2))
        return
    views = int(rows.view.max()) + 1
    if not case.is_one_sided and views > 2:
        for left in (*([view] for view in range(views)), *(range(view, views) for view in range(2, views))):
            used = ~np.isin(rows.view, left)
            yield case.of(fault_of("view_unused", count=len(left), views=views), _kept(used, anchors=True))
    if rows.has_labels and rows.has_views and not case.is_one_sided:
        yield case.of(fault_of("paired_by_labels"), positives="labels")
        yield case.of(fault_of("paired_by_views"), positives="views")


def _of_targets(case: Case) -> Iterator[Suspect]:
    rows, shifted = case.rows, fault_of("target_shifted")
    by_image, columns = "" if rows.is_of_towers else "views", torch.from_numpy(np.lexsort((rows.image, rows.view)))

    def of_direction(by: int, pairs: Pairs, masks: Masks) -> tuple[Tensor, Tensor]:
        """Shift the targets of each direction."""
        source = torch.arange(len(pairs))
        for side in (0, 1):
            own = pairs.anchor_views == side
            source[own] = source[own].roll(by)
        positive = masks.positive[source]
        return positive, (
            masks.negative if not pairs.as_negative.all() else masks.positive | masks.negative
        ) & ~positive

    def of_whole(by: int, pairs: Pairs, masks: Masks) -> tuple[Tensor, Tensor]:
        """Shift the targets of all rows cyclically, with all first views first."""
        positive = masks.positive.clone()
        positive[:, columns] = masks.positive[:, columns].roll(by, 1)
        return positive, (masks.positive | masks.negative) & ~positive

    for by in (1, -1):
        if rows.has_labels and not rows.is_of_towers:
            yield case.of(shifted, labels=np.roll(rows.labels, by))
        yield case.of(shifted, _related(partial(of_direction, by)))
        if case.has_two_sides and not rows.is_of_towers:
            yield case.of(shifted, _related(partial(of_whole, by)))
        if case.has_two_sides:
            image, second = rows.image.copy(), rows.view == 1
            image[second] = np.roll(image[second], by)
            yield case.of(shifted, image=image, positives=by_image)
    if not case.has_two_sides or not (views := case.views):
        return
    images = len(rows) // views
    flat, by_view = np.arange(len(rows)), rows.view * images + group_numbers(rows.image)
    for image in (flat // views, flat % images, by_view // views, by_view % images):
        if len(np.unique(np.stack([image, rows.image]), axis=1).T) > images:  # another partition
            yield case.of(fault_of("view_order"), image=image, positives="views")


def _of_directions(case: Case) -> Iterator[Suspect]:
    rows = case.rows
    if case.positives == "keys" and rows.queue is None:
        change = None if rows.is_of_towers else lambda pairs: builders.from_towers(pairs.anchors, pairs.candidates)
        yield case.of(fault_of("both_directions"), change, positives="auto" if rows.is_of_towers else "")
    if not case.has_two_sides:
        return
    one = [fault_of("one_direction", side=side) for side in (1, 2)]
    for side in (1, 0):
        kept = torch.from_numpy(rows.view != side)
        yield case.of(one[side], lambda pairs, kept=kept: pairs.take_anchors(kept))  # type: ignore[misc]
    if case.views != 2:
        return
    order = torch.from_numpy(np.lexsort((rows.image, rows.view)))

    def towers(direction: str, pairs: Pairs) -> Pairs:
        a, b = pairs.candidates[order].chunk(2)
        return builders.from_towers(a, b, direction=direction)

    for named, direction in ((fault_of("across_views"), "both"), (one[1], "a_to_b"), (one[0], "b_to_a")):
        yield case.of(named, partial(towers, direction))


def _of_gradient(case: Case) -> Iterator[Suspect]:
    """Yield losses with the right value whose gradient does not reach all rows."""
    whole, view, process = case.of(), torch.from_numpy(case.rows.view), case.process

    def in_part(kept: Tensor, z: Tensor) -> Tensor:
        return whole.value(torch.where(kept[:, None], z, z.detach()))

    yield Suspect(fault_of("detached"), partial(in_part, view < 0), whole.scale)
    for side in (1, 0):
        yield Suspect(fault_of("detached_side", side=side + 1), partial(in_part, view != side), whole.scale)
    yield case.of(
        fault_of("detached_candidates"), lambda pairs: pairs.with_rows(pairs.anchors, pairs.candidates.detach())
    )
    if process is None:
        return
    of_view = process[case.rows.view == 0]
    own = case.of(
        change=lambda p: p.take_anchors(torch.from_numpy((process if len(p) == len(process) else of_view) == 0))
    )

    def gathered(z: Tensor) -> Tensor:
        return whole.value(z.detach()) + (own.value(z) - own.value(z.detach())) / case.processes

    yield Suspect(fault_of("gathered_detached"), gathered, whole.scale)

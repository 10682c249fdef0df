"""Faults that are seen in the rows alone, and in what a loop hands to the right loss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from contrastive_core.base.messages import N_, message
from contrastive_core.recording.recorded_batch import RecordedBatch

SAME = 1 - 1e-5  # cosine from which on two rows are copies
COLLAPSED, COLLAPSING = 1e-3, 0.1  # variance of unit rows; of those that varied five times as much


class Fault(NamedTuple):
    """A fault by name, in a sentence, with the ids of the rows concerned."""

    name: str
    text: str
    rows: tuple[str, ...] = ()


def spread_of(rows: RecordedBatch) -> tuple[float, float]:
    """The variance of unit rows, and the number of dimensions in which they vary (the participation ratio)."""
    unit = torch.nn.functional.normalize(rows.z, dim=1)
    unit = unit - unit.mean(0)
    spectrum = torch.linalg.svdvals(unit).square()
    total = float(spectrum.sum())
    return total / len(unit), total**2 / max(float(spectrum.square().sum()), 1e-30)


def of_rows(rows: RecordedBatch, queue_before: Tensor | None, first: float | None) -> list[Fault]:
    """Faults that lie in the rows, whatever the loss. `first`: the variance of the first step."""
    found = []
    variance, dimensions = spread_of(rows)
    if variance < COLLAPSED or (first is not None and variance < min(COLLAPSING, first / 5)):
        text = N_("The embedding collapses: the variance of unit rows is {variance}.")
        found.append(Fault("collapse", message(text, variance=f"{variance:.2g}")))
    elif len(rows) > 15 and rows.z.shape[1] > 7 and dimensions < 1.5:
        text = N_("The embedding collapses: unit rows vary in {count} dimensions.")
        found.append(Fault("collapse", message(text, count=f"{dimensions:.1f}")))
    queue = rows.queue
    if queue is not None and len(queue):
        is_same = queue_before is not None and torch.equal(queue, queue_before)
        if is_same or float((queue - queue[0]).abs().max()) == 0:
            found.append(Fault("queue_unfilled", N_("The queue is not filled: it does not change.")))
    return found


def of_healthy(rows: RecordedBatch) -> list[Fault]:
    """Faults that lie in what the loop hands to the right loss."""
    found = []
    if rows.temperature is not None and rows.temperature > 1:
        text = N_("τ is {tau}: the logits are multiplied by τ instead of divided by it.")
        found.append(Fault("tau_as_scale", message(text, tau=f"{rows.temperature:.3g}")))
    if rows.queue is not None and (own := own_keys(rows)).any():
        text = message("{count} rows of the queue are keys of this batch.", count=int(own.sum()))
        found.append(Fault("own_keys_in_queue", text))
    if rows.has_views and not rows.is_of_towers and (names := duplicates(rows)):
        found.append(duplicate_fault(names))
    return found


def duplicates(rows: RecordedBatch) -> list[str]:
    """Ids that several images of the batch have; of two towers, several rows of each."""
    names, counts = np.unique(rows.ids[rows.view == 0], return_counts=True)
    return names[counts > 1].tolist()


def duplicate_fault(names: list[str]) -> Fault:
    text = N_("Images that are in the batch twice are negatives of each other. Ids: {count}.")
    return Fault("duplicates", message(text, count=len(names)), tuple(names))


def own_keys(rows: RecordedBatch) -> np.ndarray:
    """Which rows (k) of the queue are keys of this batch."""
    assert rows.queue is not None
    keys = _unit(rows.z[torch.from_numpy(rows.view == 1)])
    return ((_unit(rows.queue) @ keys.T).amax(1) > SAME).numpy() if len(keys) else np.zeros(len(rows.queue), bool)


def _unit(z: Tensor) -> Tensor:
    return torch.nn.functional.normalize(z, dim=1)

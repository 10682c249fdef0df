"""Faults of a training loop that are visible in its rows, whatever the loss."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from contrastive_core.recording.fault_names import Fault, fault_of
from contrastive_core.recording.recorded_batch import RecordedBatch

SAME = 1 - 1e-5  # cosine from which on two rows are copies
COLLAPSED, COLLAPSING = 1e-3, 0.1  # variance of unit rows; of those that varied five times as much


def spread_of(rows: RecordedBatch) -> tuple[float, float]:
    """Return the variance of unit rows, and the number of dimensions in which they vary (the participation ratio)."""
    unit = normalize(rows.z, dim=1)
    spectrum = torch.linalg.svdvals(unit - unit.mean(0)).square()
    total = float(spectrum.sum())
    return total / len(unit), total**2 / max(float(spectrum.square().sum()), 1e-30)


def of_rows(rows: RecordedBatch, queue_before: Tensor | None, first: float | None) -> Iterator[Fault]:
    """Yield the faults of the rows of one step. `first`: the variance of the first step."""
    variance, dimensions = spread_of(rows)
    is_flat = variance < COLLAPSED or (first is not None and variance < min(COLLAPSING, first / 5))
    if is_flat or (len(rows) > 15 and rows.z.shape[1] > 7 and dimensions < 1.5):
        yield fault_of("collapse", count=f"{dimensions:.1f}", width=rows.z.shape[1], variance=f"{variance:.2g}")
    queue = rows.queue
    if queue is not None and len(queue):
        is_same = queue_before is not None and torch.equal(queue, queue_before)
        if is_same or float((queue - queue[0]).abs().max()) == 0:
            yield fault_of("queue_unfilled")


def of_healthy(rows: RecordedBatch) -> Iterator[Fault]:
    """Yield faults in the inputs that the loop gives to the right loss."""
    if rows.temperature is not None and rows.temperature > 1:
        yield fault_of("tau_above_1", tau=f"{rows.temperature:.3g}")
    if rows.queue is not None and (own := own_keys(rows)).any():
        yield fault_of("own_keys_in_queue", count=int(own.sum()))
    if rows.has_views and not rows.is_of_towers:
        yield from duplicates(rows)


def duplicates(rows: RecordedBatch) -> list[Fault]:
    """Return the fault of a batch with several images of one id; with two towers, several rows per tower."""
    names, counts = np.unique(rows.ids[rows.view == 0], return_counts=True)
    twice = tuple(names[counts > 1].tolist())
    return [fault_of("duplicates", twice, count=len(twice))] if twice else []


def own_keys(rows: RecordedBatch) -> np.ndarray:
    """Return a boolean array (k): True for a queue row that is a key of this batch."""
    assert rows.queue is not None
    keys = normalize(rows.z[torch.from_numpy(rows.view == 1)], dim=1)
    scores = normalize(rows.queue, dim=1) @ keys.T
    return (scores > SAME).any(1).numpy()

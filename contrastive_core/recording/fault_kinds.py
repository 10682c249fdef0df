"""The known faults of a training loop: their names and sentences, and those that its rows show whatever the loss."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from contrastive_core.base.messages import N_, message
from contrastive_core.recording.steps import RecordedBatch

TEXTS = {
    "tau_twice": N_("τ is applied twice: the logits are s/τ²."),
    "tau_as_scale": N_("The logits are multiplied by τ instead of divided by it."),
    "tau_above_1": N_("τ is {tau}: the logits are multiplied by τ instead of divided by it."),
    "tau_unused": N_("τ is not applied."),
    "other_tau": N_("τ is {tau}, not the declared value."),
    "bias_unused": N_("The bias is not added."),
    "not_normalized": N_("The rows are not normalized."),
    "normalized": N_("The rows are normalized, although this was not declared."),
    "other_setting": N_("The loop uses {name}={value}."),
    "positive_among_negatives": N_("The positive is also among the negatives."),
    "self_among_negatives": N_("Each row is its own negative: the diagonal is not masked."),
    "processes_apart": N_("Rows of other processes are not used: each process has the loss of its own rows."),
    "first_positive_only": N_(
        "Only the first positive of an anchor is used as a positive. The others are treated as negatives."
    ),
    "column_0": N_("Every target is column 0."),
    "mean_over_pairs": N_("The mean is over positive pairs, not over anchors."),
    "queue_unused": N_("The queue is not used: the negatives are the other keys of the batch."),
    "negatives_unused": N_("The {count} rows without an anchor are not used as negatives."),
    "view_unused": N_("The rows of {count} of {views} views are not used."),
    "paired_by_labels": N_("Rows with the same label are positives."),
    "paired_by_views": N_("The labels are not used."),
    "target_shifted": N_("The targets are shifted by one row."),
    "view_order": N_("The targets assume another order of the views."),
    "both_directions": N_("Both directions are computed: the rows of side 2 are anchors too."),
    "one_direction": N_("Only one direction is computed: the rows of side {side} are not anchors."),
    "across_views": N_("Rows are compared only with rows of the other view."),
    "detached": N_("No gradient reaches the rows."),
    "detached_side": N_(
        "No gradient reaches the rows of side {side}: they are detached, or the loss uses other tensors."
    ),
    "detached_candidates": N_("Rows get a gradient only as anchors: the candidates are detached."),
    "gathered_detached": N_("Rows of other processes are gathered without their gradient."),
    "gradient_too_small": N_(
        "The gradient is {factor} times that of the loss, as for a wrong number of processes or of accumulated "
        "batches. If this is intended, pass accumulate={number}."
    ),
    "gradient_too_large": N_(
        "The gradient is {factor} times that of the loss, as for gradients that are summed over processes or "
        "accumulated batches."
    ),
    "value_scaled": N_("The loss value is {factor} times the declared one. Its gradient is right."),
    "summed": N_("The losses are summed over {count} anchors, not averaged."),
    "mean_over_all": N_("The mean is over all {count} rows, but only {defined} have a positive."),
    "scaled": N_("Loss and gradient are {factor} times those of the declared loss."),
    "noise": N_("The rows are noisy when the loss compares them: unit rows with noise of about {sigma} per number."),
    "collapse": N_(
        "The embedding collapses: unit rows vary in {count} of {width} dimensions, with variance {variance}."
    ),
    "queue_unfilled": N_("The queue is not filled: it does not change."),
    "own_keys_in_queue": N_("{count} rows of the queue are keys of this batch."),
    "duplicates": N_("Images that are in the batch twice are negatives of each other. Ids: {count}."),
    "random_evaluation": N_(
        "The encoder is not in evaluation mode during the probe: the same samples get different rows when they are "
        "embedded again (cosine {cosine}), as with dropout. Call model.eval(), or pass model=."
    ),
}
SAME = {  # one name for several sentences
    "tau_above_1": "tau_as_scale",
    **dict.fromkeys(("detached_side", "detached_candidates"), "detached"),
    **dict.fromkeys(("gradient_too_small", "gradient_too_large"), "gradient_scaled"),
    **dict.fromkeys(("summed", "mean_over_all", "scaled"), "wrong_count"),
}
COPIES = 1 - 1e-5  # cosine from which on two rows are copies
COLLAPSED, COLLAPSING = 1e-3, 0.1  # variance of unit rows; of those that varied five times as much
OF_ROWS = ("collapse", "duplicates", "own_keys_in_queue", "queue_unfilled", "random_evaluation")  # exclude no others


class Fault(NamedTuple):
    """A fault: its name, a sentence, and the ids of the rows concerned."""

    name: str
    text: str
    rows: tuple[str, ...] = ()


def fault_of(name: str, /, rows: tuple[str, ...] = (), **values: object) -> Fault:
    return Fault(SAME.get(name, name), message(TEXTS[name], **values), rows)


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
    return (scores > COPIES).any(1).numpy()

"""What a loss does at one step: per row, and in figures. By the recorder's thread, on the CPU. In float64 and by the
losses' own dense formula, so that nothing here depends on what the training sets for the whole process (precision of
products, number of threads), and nothing is set."""

import contextlib
import dataclasses

import numpy as np
import torch
from torch import Tensor

from contrastive_core import pairs as builders
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.errors import CannotScore
from contrastive_core.losses import Loss
from contrastive_core.messages import N_
from contrastive_core.metrics import create
from contrastive_core.metrics.knn import leave_one_out
from contrastive_core.ops.similarity import compare
from contrastive_core.pairs import Pairs
from contrastive_core.pairs.types import Masks
from contrastive_core.recording.rows import RecordedBatch
from contrastive_core.recording.tower_rows import both_sides, tower_figures
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.registry import knobs_of

SCORES = 1 << 21  # of anchors with candidates that are held at once: 16 MB in float64
WHOLE = 1024  # rows of a loss that needs all of a batch
SPREAD = 1024  # images that the figures of the embedding are taken of


def measure(batch: RecordedBatch, loss: Loss | None, positives: str, rows: int) -> tuple[np.ndarray, dict[str, float]]:
    """The loss of each row (n) of a step, NaN where it was not taken or is undefined, and figures by name.

    `loss` is Σ w·L / Σ w; `effective_negatives` and `negatives` are means over the anchors with a
    loss; `grad_positive`, `grad_negative` mean lengths of what an anchor's own loss sends it
    through its pairs of that class. Of large batches about `rows` anchors are asked, each against
    all candidates. Raises ValueError where the loss cannot use these rows.
    """
    values = _spread_figures(batch) | (tower_figures(batch) if batch.is_of_towers else {})
    per_row = np.full(len(batch), np.nan)
    if loss is not None:
        if batch.temperature is not None and hasattr(loss, "temperature"):
            loss = loss.at_temperature(batch.temperature)
        every, at = _pairs_of_towers(batch, positives) if batch.is_of_towers else _pairs_of(batch, loss, positives)
        if batch.bias is not None and "bias" in knobs_of(type(loss)):
            every = loss.with_bias(every, every.anchors.new_tensor(batch.bias))
        if loss.needs_whole_batch and len(every) > WHOLE:
            raise CannotScore("{title} is not computed above {whole} rows", title=loss.card.title, whole=WHOLE)
        if len(every) * every.width > SCORES and not loss.needs_whole_batch:
            chosen = np.linspace(0, len(every) - 1, min(rows, len(every))).round().astype(np.int64)
            every, at = every.take_anchors(torch.from_numpy(chosen)), at[chosen]
        per_row[at], figures = _of_anchors(every, loss)
        values |= figures
    if batch.losses is not None:
        per_row = batch.losses
        defined = per_row[np.isfinite(per_row)]
        if len(defined):
            values["loss" if loss is None else "caller_loss"] = float(defined.mean())
    if batch.temperature is not None:
        values["temperature"] = batch.temperature
    if batch.bias is not None:
        values["bias"] = batch.bias
    return per_row, values


def _pairs_of(batch: RecordedBatch, loss: Loss, positives: str) -> tuple[Pairs, np.ndarray]:
    """Who is compared with whom, and which rows (n) the anchors are. Raises ValueError where no row has a positive."""
    if batch.queue is not None or positives == "keys":  # first views against the second ones, and the queue
        first, second = np.flatnonzero(batch.view == 0), np.flatnonzero(batch.view == 1)
        if len(first) != len(second):
            raise ValueError(N_("queries and keys need two views of each image"))
        q, k = batch.z[torch.from_numpy(first)], batch.z[torch.from_numpy(second)]
        if batch.queue is not None:
            return builders.from_queue(q, k, batch.queue), first
        own = torch.arange(len(q))
        return builders.from_labels(q, own, ref=k, ref_labels=own), first
    if positives == "auto":
        by_label = batch.has_labels and (loss.card.by_label or not batch.has_views)
        positives = "labels" if by_label else "views"
    if positives == "views" and not batch.has_views:
        raise ValueError(N_("its rows have no views and no labels, so no row has a positive"))
    if positives == "labels" and not batch.has_labels:
        raise ValueError(N_("its rows have no labels to pair them by"))
    groups = torch.from_numpy(batch.labels if positives == "labels" else batch.image)
    view = torch.from_numpy(batch.view)
    pairs = builders.from_labels(batch.z, groups)
    return dataclasses.replace(pairs, anchor_views=view, candidate_views=view), np.arange(len(batch))


def _pairs_of_towers(batch: RecordedBatch, positives: str) -> tuple[Pairs, np.ndarray]:
    """Rows of both towers, or as "keys" those of the first alone, with the rows of the other tower."""
    (a, groups_a), (b, groups_b) = both_sides(batch)
    direction = "a_to_b" if positives == "keys" else "both"
    pairs = builders.from_towers(a, b, groups_a, groups_b, direction)
    return pairs, np.argsort(batch.view, kind="stable")[: len(pairs)]


def _of_anchors(pairs: Pairs, loss: Loss) -> tuple[np.ndarray, dict[str, float]]:
    """The loss of each anchor, NaN where it is undefined, and figures."""
    if problem := loss.check(pairs):
        raise ValueError(problem)
    with torch.no_grad():
        unit = loss.rows(pairs)
        scores, masks = compare(unit, loss.score), unit.masks()
    with torch.enable_grad():
        leaf = scores.requires_grad_()
        value, weight = loss.per_anchor(leaf, masks, unit)
        if (balance := unit.tower_weight()) is not None:
            weight = weight * balance
        defined = weight > 0
        total = torch.where(defined, value, 0.0).sum()
        grad = torch.autograd.grad(total, leaf, allow_unused=True)[0] if total.requires_grad else None
    value = value.detach()
    values: dict[str, float] = {"n_valid": int(defined.sum())}
    if not values["n_valid"]:
        return np.full(len(pairs), np.nan), values
    values["loss"] = float((weight * torch.where(defined, value, 0.0)).sum() / weight.sum())
    values["negatives"] = float(masks.negative.sum(1)[defined].double().mean())
    details = loss.details(scores.detach(), masks, unit)
    if "effective_negatives" in details:
        values["effective_negatives"] = float(details["effective_negatives"][defined].mean())
    if grad is not None:
        values |= _forces(pairs, unit, loss, masks, grad)
        values["active_negatives"] = float(((grad != 0) & masks.negative).sum(1)[defined].double().mean())
    return torch.where(defined, value, torch.nan).numpy(), values


def _forces(pairs: Pairs, unit: Pairs, loss: Loss, masks: Masks, grad: Tensor) -> dict[str, float]:
    """Mean gradient length at an anchor before its normalization, through its positive and its negative pairs."""
    values = {}
    for name, mask in (("grad_positive", masks.positive), ("grad_negative", masks.negative)):
        with torch.enable_grad():
            leaf = pairs.anchors.detach().clone().requires_grad_()
            anchors = loss.rows(pairs.with_rows(leaf, pairs.candidates.detach())).anchors
            scores = compare(unit.with_rows(anchors, unit.candidates.detach()), loss.score)
            (force,) = torch.autograd.grad((scores * torch.where(mask, grad, 0.0)).sum(), leaf)
        values[name] = float(force.norm(dim=1).mean())
    return values


def _spread_figures(batch: RecordedBatch) -> dict[str, float]:
    """Alignment, uniformity, RankMe and the leave-one-out kNN vote of one row of each image, where they have one."""
    first = batch.take(batch.view == 0)
    if len(first) > SPREAD:
        kept = np.linspace(0, len(first) - 1, SPREAD).round().astype(np.int64)
        first = first.take(np.isin(np.arange(len(first)), kept))
    labels = first.labels if first.has_labels else None
    rows = EmbeddingSet(first.z.float().numpy(), labels, views=_even_views(batch, first))
    return scores_of(rows, "alignment", "uniformity", "rankme")


def _even_views(batch: RecordedBatch, first: RecordedBatch) -> np.ndarray | None:
    """Views (m, v, d) of the images of `first` where each has as many; else None."""
    mask = np.isin(batch.image, first.image)
    if batch.is_of_towers and len(np.unique(first.image)) < len(first):
        return None
    order = np.lexsort((batch.view[mask], batch.image[mask]))
    counts = np.unique(batch.image[mask], return_counts=True)[1]
    if counts[0] < 2 or (counts != counts[0]).any():
        return None
    z = batch.take(mask).z.float().numpy()[order]
    return z.reshape(len(counts), counts[0], -1)


def scores_of(rows: EmbeddingSet, *names: str) -> dict[str, float]:
    """The metrics that have a value, and the leave-one-out kNN vote as "knn"."""
    values: dict[str, float | None] = {}
    for name in names:
        with contextlib.suppress(CannotScore):
            values[name] = create(name)(None, rows, Graphs("cpu")).value
    values["knn"] = leave_one_out(rows, "cpu") if len(rows) > 2 else None
    return {name: value for name, value in values.items() if value is not None}

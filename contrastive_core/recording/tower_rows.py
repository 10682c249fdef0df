"""Rows of two encoders at one step, as images and captions: copies of both, and which rows belong together.

Rows with an equal id are partners, as several captions of one image are. Without ids, row i belongs to row i; where the
towers differ in size, rows of one label belong together."""

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrastive_core.errors import CannotScore, UnusableEmbedding
from contrastive_core.evaluation.towers import modality_gap, retrieval
from contrastive_core.messages import N_
from contrastive_core.recording.omissions import Omissions
from contrastive_core.recording.rows import RecordedBatch, finite_rows, labels_of, losses_of, texts_of
from contrastive_core.recording.step_copies import StepCopy, to_numpy
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.towers import Towers

QUERIES = 1024  # of a step whose partner is looked for, each among all rows of the other tower
UNPAIRED = N_("two towers of different size need ids, or labels, that say which rows belong together")
ALONE = N_("no row of one tower shares its id with a row of the other")


def tower_batch(copy: StepCopy, omissions: Omissions) -> RecordedBatch:
    """The rows of both towers, the first tower's first; `image` numbers the groups of partners, `view` the towers.
    Raises ValueError where none can be used."""
    a, b = (z.cpu().double() for z in copy.views)
    sizes = (len(a), len(b))
    if not a.numel() or not b.numel():
        raise ValueError(N_("it has no rows"))
    if copy.queue is not None:
        omissions.add(N_("rows of the queue"), N_("two towers have none"), len(copy.queue))
    labels = np.concatenate([labels_of(x, n, 1, omissions) for x, n in zip(_both(copy.labels), sizes, strict=True)])
    ids = _ids(copy, sizes, labels)
    losses = [losses_of(x, n, 1, False, omissions) for x, n in zip(_both(copy.losses), sizes, strict=True)]
    own = np.concatenate([np.full(n, np.nan) if x is None else x for x, n in zip(losses, sizes, strict=True)])
    _, first, place = np.unique(ids, return_index=True, return_inverse=True)
    image, view = np.argsort(np.argsort(first))[place], np.repeat([0, 1], sizes)
    tau, bias = (None if x is None else float(to_numpy([x])[0]) for x in (copy.temperature, copy.bias))
    known = own if np.isfinite(own).any() else None
    batch = RecordedBatch(torch.cat([a, b]), image, view, labels, ids, known, None, tau, bias, is_of_towers=True)
    batch = finite_rows(batch, omissions)
    if not len(shared_groups(batch)):
        raise UnusableEmbedding(ALONE)
    return batch


def shared_groups(batch: RecordedBatch) -> np.ndarray:
    """Numbers of the groups that have rows in both towers."""
    return np.intersect1d(batch.image[batch.view == 0], batch.image[batch.view == 1])


def both_sides(batch: RecordedBatch) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Rows and groups of the first tower, and of the second."""
    sides = [torch.from_numpy(np.flatnonzero(batch.view == tower)) for tower in (0, 1)]
    groups = torch.from_numpy(batch.image)
    return (batch.z[sides[0]], groups[sides[0]]), (batch.z[sides[1]], groups[sides[1]])


def tower_figures(batch: RecordedBatch) -> dict[str, float]:
    """Recall@1 from the first tower to the second and back, of at most QUERIES rows each, and the modality gap."""
    sides = [np.flatnonzero(batch.view == tower) for tower in (0, 1)]
    shared = np.isin(batch.image, shared_groups(batch))
    groups = [np.where(shared[at], batch.image[at], -1) for at in sides]
    towers = Towers(EmbeddingSet(batch.z.float().numpy()), sides[0], sides[1], groups[0], groups[1], ("a", "b"))
    values: dict[str, float] = {}
    for name, reverse in (("recall_1_forth", False), ("recall_1_back", True)):
        with contextlib.suppress(CannotScore):
            values[name] = retrieval(towers, reverse, ks=(1,), most=QUERIES).recall[1].value
    with contextlib.suppress(CannotScore):
        values["modality_gap"] = modality_gap(towers)
    return values


def _both(value: Any) -> Sequence[Any]:
    """What was given for each tower: a pair (step_copies.py), or None for both."""
    return (None, None) if value is None else value


def _ids(copy: StepCopy, sizes: tuple[int, int], labels: np.ndarray) -> np.ndarray:
    """The id of each row (n + m), equal where rows belong together."""
    if copy.ids is not None:
        return np.concatenate([texts_of([] if x is None else x, n) for x, n in zip(copy.ids, sizes, strict=True)])
    if sizes[0] == sizes[1]:
        return np.array([f"{copy.step}:{row}" for row in range(sizes[0])] * 2)
    if not (labels >= 0).any():
        raise UnusableEmbedding(UNPAIRED)
    return np.array([str(y) if y >= 0 else f"{copy.step}:{row}" for row, y in enumerate(labels.tolist())])

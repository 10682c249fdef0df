"""Each row against every class: its supervised contrastive loss there, and the nearest rows.

L_i(c) = −log 1/|P_c| Σ_{p ∈ P_c} e^{s_ip/τ} / Σ_{a ≠ i} e^{s_ia/τ}, P_c the other rows of class c:
the second form of Khosla et al. (2020, arXiv 2004.11362, eq. 3; `sup_con` with form "in"), with c
in the place of the row's own label, on unit rows. It is a mean of softmax probabilities, so that
e^{−L_i(c)}, made to sum to 1, says which class the loss would give the row; the row's own label
has no part in it.

Of a large set the sums are estimated, as candidates.py does: the nearest rows count for
themselves, and of every class some drawn rows stand for its other ones; and the nearest row of a
class is that of these candidates. The same rows are drawn for all, `DRAWN` together, or `LEAST` of
each class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from contrastive_core.device import pick_device
from contrastive_core.distributed import collectives
from contrastive_core.distributed.sharded_rows import SPREAD
from contrastive_core.messages import N_
from contrastive_core.ops.neighbors import Neighbors
from contrastive_core.ops.similarity import unit_rows
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.row_part import part_of
from contrastive_core.storage.large_arrays import mapped_zeros

__all__ = ["ByClass", "by_class", "class_votes"]

TEMPERATURE = 0.07  # as in the vote of the nearest neighbors
DRAWN, LEAST = 8192, 16
ROWS = 1 << 14  # whose votes are made at a time
CELLS = 1 << 23  # of a block of rows against all others: 32 MB in float32


@dataclass(frozen=True, eq=False)
class ByClass:
    """What n rows are to every class, and the nearest row of their own and of another class, by
    cosine: its number, −1 where there is none, and its similarity, −1 then."""

    losses: np.ndarray  # (n, classes) float32; infinite for a class of which there is no other row
    same: np.ndarray  # (n) int64
    same_score: np.ndarray  # (n) float64
    other: np.ndarray  # (n) int64
    other_score: np.ndarray  # (n) float64


def by_class(
    rows: EmbeddingSet,
    temperature: float = TEMPERATURE,
    on_fraction: OnFraction = ignore_fraction,
    device: str = "auto",
    near: Neighbors | None = None,
    seed: int = 0,
) -> ByClass:
    """Every row against all others, block by block, exactly; or, where `near` is given, against
    those nearest (n, k), by cosine, and some drawn ones.

    Rows without a label (−1) are compared, and are of no class. Of many processes (torchrun) each
    takes a share of the rows.

    Raises: ValueError without labels; what `on_fraction` raises stops it.
    """
    if rows.labels is None:
        raise ValueError(N_("without labels there is no class to take the loss of"))
    order = np.argsort(rows.labels, kind="stable")
    counts = np.bincount(rows.labels + 1, minlength=2)
    drawn = order if near is None else _drawn(order, counts, seed)
    place = np.full(len(order), -1)  # of each row among those drawn
    place[drawn] = np.arange(len(drawn))
    where = pick_device(device)
    candidates = unit_rows(rows.features[drawn], where)
    world, blocks, size = collectives.world(), [], max(1, CELLS // len(drawn))
    first, last, _ = part_of(len(order), (world.rank, world.size)).indices(len(order))
    losses = mapped_zeros((last - first, len(counts) - 1))
    for start in range(first, max(last, first + 1), size):  # a process without rows has a block too
        block = slice(start, min(start + size, last))
        s = unit_rows(rows.features[block], where) @ candidates.mT  # (r, drawn)
        known = _Known(rows.labels, counts, place, drawn)
        part = None if near is None else (near.index[block], near.score[block])
        of_block, *nearest = _block(s, block, known, temperature, part)
        losses[block.start - first : block.stop - first] = of_block
        blocks.append(nearest)
        on_fraction((block.stop - first) / max(1, last - first))
    nearest = [SPREAD.whole(np.concatenate(part)) for part in zip(*blocks, strict=True)]
    return ByClass(SPREAD.whole(losses), *nearest)


def _drawn(order: np.ndarray, counts: np.ndarray, seed: int) -> np.ndarray:
    """Some rows of every class, side by side like `order`, at random."""
    wanted = np.maximum(LEAST, np.round(DRAWN * counts / len(order)).astype(int))
    draw = np.random.default_rng(seed)
    parts = np.split(order, counts.cumsum()[:-1])
    return np.concatenate(
        [
            part if len(part) <= most else draw.choice(part, most, replace=False)
            for part, most in zip(parts, wanted, strict=True)
        ]
    )


@dataclass(frozen=True, eq=False)
class _Known:
    """Of all n rows their labels, how many have none and each class, and their place among the
    drawn ones, −1: none; `drawn` (m) are the numbers of these."""

    labels: np.ndarray
    counts: np.ndarray
    place: np.ndarray
    drawn: np.ndarray

    @property
    def drawn_counts(self) -> np.ndarray:
        return np.bincount(self.labels[self.drawn] + 1, minlength=len(self.counts))


def _block(
    s: Tensor, block: slice, known: _Known, temperature: float, near: tuple[np.ndarray, np.ndarray] | None
) -> tuple[np.ndarray, ...]:
    """What ByClass holds, of the rows of a block.

    Args: s: (r, m) similarities to the drawn rows, which are ordered by class; near: numbers (r, k)
        and similarities of the nearest rows, which count for themselves.
    """
    labels, counts = known.labels[block], known.drawn_counts
    is_own = np.arange(len(counts) - 1) == labels[:, None]  # (r, classes)
    own = np.arange(*block.indices(len(known.labels)))[:, None]
    apart = own if near is None else np.concatenate([own, near[0]], 1)  # (r, 1 + k)
    row, column = np.nonzero(known.place[apart] >= 0)
    left = apart[row, column]
    s[torch.from_numpy(row), torch.from_numpy(known.place[left])] = -torch.inf
    best = _best(s, counts)
    e = s.sub_(1).div_(temperature).exp_()  # 1: the highest cosine, so that nothing overflows
    mass = torch.stack([p.sum(1) for p in e.split(counts.tolist(), 1)], 1).double().cpu().numpy()
    if near is not None:
        left_of = _counted(row, known.labels[left] + 1, mass.shape)
        rest = known.counts - _counted(*_each(known.labels[apart] + 1), mass.shape)
        mass *= rest / np.maximum(counts - left_of, 1)
        likely = np.exp((near[1].astype(np.float64) - 1) / temperature)
        mass += _counted(*_each(known.labels[near[0]] + 1), mass.shape, likely.ravel())
    positives = known.counts[1:] - is_own  # |P_c|
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = -np.log(mass[:, 1:] / mass.sum(1, keepdims=True) / positives)
    losses = np.where(positives > 0, losses, np.inf).astype(np.float32)
    found = []
    for among in (is_own, ~is_own & (labels >= 0)[:, None]):
        at, score = _nearest(*best, among)
        at = np.where(at >= 0, known.drawn[at], -1)
        if near is not None:
            at, score = _nearer(at, score, *near, _has(among, known.labels[near[0]]))
        found += [at, score]
    return losses, *found


def _each(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The row of each of labels (r, k), and the labels, flat."""
    return np.repeat(np.arange(len(labels)), labels.shape[1]), labels.ravel()


def _counted(
    row: np.ndarray, column: np.ndarray, shape: tuple[int, ...], weight: np.ndarray | None = None
) -> np.ndarray:
    """How often each cell of a table is named, or the sum of these weights."""
    flat = np.bincount(row * shape[1] + column, weight, minlength=shape[0] * shape[1])
    return np.asarray(flat.reshape(shape))


def _has(among: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Whether labels (r, k) are of the classes of each row (r, classes)."""
    return (labels >= 0) & np.take_along_axis(among, np.maximum(labels, 0), 1)


def _nearer(
    at: np.ndarray, score: np.ndarray, near: np.ndarray, nearness: np.ndarray, some: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The first of the nearest rows (r, k) that is one of `some`, where it is nearer than `at`."""
    every, first = np.arange(len(near)), some.argmax(1)
    theirs = np.where(some[every, first], nearness[every, first], -np.inf)
    is_nearer = theirs > score
    return np.where(is_nearer, near[every, first], at), np.where(is_nearer, theirs, score)


def _best(s: Tensor, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The highest of s (r, n) in each class, −∞ where there is none, and where; (r, classes)."""
    score = np.full((len(s), len(counts) - 1), -np.inf)
    at = np.zeros(score.shape, np.int64)
    start = 0
    for c, part in enumerate(s.split(counts.tolist(), 1), -1):
        if c >= 0 and part.shape[1]:
            value, column = part.max(1)
            score[:, c], at[:, c] = value.cpu().numpy(), column.cpu().numpy() + start
        start += part.shape[1]
    return score, at


def _nearest(score: np.ndarray, at: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The highest among some classes of each row: where, and how high; −1 where there is none."""
    every, score = np.arange(len(score)), np.where(among, score, -np.inf)
    c = score.argmax(1)
    there = np.isfinite(score[every, c])
    return np.where(there, at[every, c], -1), np.where(there, score[every, c], -1.0)


def class_votes(losses: np.ndarray, classes: int) -> np.ndarray:
    """e^{−L} of losses (n, c), made to sum to 1: (n, classes), the last of which, where no row is
    known, have none."""
    votes = mapped_zeros((len(losses), classes))
    for start in range(0, len(losses), ROWS):
        part = losses[start : start + ROWS]
        weight = np.exp(part.min(1, keepdims=True) - part)
        votes[start : start + ROWS, : part.shape[1]] = weight / weight.sum(1, keepdims=True)
    return votes

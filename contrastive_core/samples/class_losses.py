"""Each row against every class: its supervised contrastive loss there, and the nearest rows.

L_i(c) = −log 1/|P_c| Σ_{p ∈ P_c} e^{s_ip/τ} / Σ_{a ≠ i} e^{s_ia/τ}, P_c the other rows of class c: the second form of
Khosla et al. (2020, arXiv 2004.11362, eq. 3; `sup_con` with form "in"), with c in the place of the row's own label, on
unit rows. It is a mean of softmax probabilities, so that e^{−L_i(c)}, made to sum to 1, says which class the loss would
give the row; the row's own label has no part in it.

Of a large set the sums are estimated, as candidates.py does: the nearest rows count for themselves, and of every class
some drawn rows stand for its other ones; and the nearest row of a class is that of these candidates. The same rows are
drawn for all, `DRAWN` together, or `LEAST` of each class.
"""

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
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.storage.large_arrays import mapped_zeros, part_of

TEMPERATURE = 0.07  # as in the vote of the nearest neighbors
DRAWN, LEAST = 8192, 16
ROWS = 1 << 14  # whose votes are made at a time
CELLS = 1 << 23  # of a block of rows against all others: 32 MB in float32


@dataclass(frozen=True, eq=False)
class ByClass:
    """Losses of n rows by class, and the nearest row (−1: none) of their own and of another class, with its cosine."""

    losses: np.ndarray  # (n, classes) float32; infinite for a class of which there is no other row
    same: np.ndarray  # (n) int64
    same_score: np.ndarray  # (n) float64
    other: np.ndarray  # (n) int64
    other_score: np.ndarray  # (n) float64


def by_class(rows: EmbeddingSet, device: str = "auto", near: Neighbors | None = None, seed: int = 0) -> ByClass:
    """Every row against all others, block by block, exactly; or, where `near` is given, against those nearest (n, k),
    by cosine, and some drawn ones. Rows without a label (−1) are compared, and are of no class. Of many processes
    (torchrun) each takes a share of the rows. Raises: ValueError without labels."""
    if rows.labels is None:
        raise ValueError(N_("a loss by class needs labels"))
    n, where, world = len(rows), pick_device(device), collectives.world()
    drawn = _draw_rows(rows.labels, n if near is None else DRAWN, seed)
    candidates = _Candidates(rows.labels, drawn)
    unit = unit_rows(rows.features[drawn], where)
    size = max(1, CELLS // len(drawn))
    first, last, _ = part_of(n, (world.rank, world.size)).indices(n)
    losses, nearest = mapped_zeros((last - first, len(candidates.counts) - 1)), []
    for start in range(first, max(last, first + 1), size):  # a process without rows has a block too
        block = slice(start, min(start + size, last))
        s = unit_rows(rows.features[block], where) @ unit.mT  # (r, drawn)
        known = (near.index[block], near.score[block]) if near else (np.empty((len(s), 0), int), np.empty((len(s), 0)))
        losses[block.start - first : block.stop - first], *found = _of_block(s, block, candidates, *known)
        nearest.append(found)
    return ByClass(SPREAD.whole(losses), *(SPREAD.whole(np.concatenate(part)) for part in zip(*nearest, strict=True)))


def _draw_rows(labels: np.ndarray, most: int, seed: int) -> np.ndarray:
    """About `most` rows of n at random, every class in proportion and side by side; all where n are wanted."""
    order, counts = np.argsort(labels, kind="stable"), np.bincount(labels + 1, minlength=2)
    if most >= len(order):
        return order
    wanted = np.maximum(LEAST, np.round(most * counts / len(order)).astype(int))
    draw, parts = np.random.default_rng(seed), np.split(order, counts.cumsum()[:-1])
    drawn = [p if len(p) <= m else draw.choice(p, m, replace=False) for p, m in zip(parts, wanted, strict=True)]
    return np.concatenate(drawn)


class _Candidates:
    """Labels of all n rows, which rows are drawn (m), and how many of either are of no class (first), and of each."""

    def __init__(self, labels: np.ndarray, drawn: np.ndarray) -> None:
        self.labels, self.drawn = labels, drawn
        self.counts = np.bincount(labels + 1, minlength=2)
        self.drawn_counts = np.bincount(labels[drawn] + 1, minlength=len(self.counts))
        self.column = np.full(len(labels), -1)  # of each row among the drawn ones
        self.column[drawn] = np.arange(len(drawn))


def _of_block(
    s: Tensor, block: slice, candidates: _Candidates, near: np.ndarray, nearness: np.ndarray
) -> tuple[np.ndarray, ...]:
    """What ByClass holds, of the rows of a block. `s`: (r, m) similarities to the drawn rows; `near`, `nearness`:
    numbers and similarities (r, k) of the nearest rows, which count for themselves."""
    labels, counts, classes = candidates.labels, candidates.counts, len(candidates.counts)
    apart = np.concatenate([np.arange(*block.indices(len(labels)))[:, None], near], 1)  # (r, 1 + k)
    column = candidates.column[apart]
    row, number = np.nonzero(column >= 0)
    s[torch.from_numpy(row), torch.from_numpy(column[row, number])] = -torch.inf
    nearest = _nearest_rows(s, labels[block], candidates, near, nearness)
    e = s.sub_(1).div_(TEMPERATURE).exp_()  # 1: the highest cosine, so that nothing overflows
    parts = e.split(candidates.drawn_counts.tolist(), 1)
    mass = torch.stack([part.sum(1) for part in parts], 1).double().cpu().numpy()
    stood_for = counts - sums_by_class(labels[apart] + 1, np.ones(apart.shape), classes)
    mass *= stood_for / np.maximum(candidates.drawn_counts - sums_by_class(labels[apart] + 1, column >= 0, classes), 1)
    mass += sums_by_class(labels[near] + 1, np.exp((nearness.astype(np.float64) - 1) / TEMPERATURE), classes)
    positives = counts[1:] - (np.arange(classes - 1) == labels[block, None])  # |P_c|
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = -np.log(mass[:, 1:] / mass.sum(1, keepdims=True) / positives)
    return np.where(positives > 0, losses, np.inf).astype(np.float32), *nearest


def sums_by_class(labels: np.ndarray, weight: np.ndarray, classes: int) -> np.ndarray:
    """The sum (r, classes) of the weights (r, k) of each class, by labels (r, k)."""
    cell = np.arange(len(labels))[:, None] * classes + labels
    return np.bincount(cell.ravel(), weight.ravel(), len(labels) * classes).reshape(len(labels), classes)


def _nearest_rows(
    s: Tensor, labels: np.ndarray, candidates: _Candidates, near: np.ndarray, nearness: np.ndarray
) -> list[np.ndarray]:
    """The nearest row of the own and of another class (r) each, and its similarity: −1 where there is none."""
    ends = candidates.drawn_counts.cumsum()
    present = np.flatnonzero(candidates.drawn_counts[1:])
    best = [s[:, ends[c] : ends[c + 1]].max(1) for c in present]
    at = torch.stack([one.indices for one in best], 1).cpu().numpy() + ends[present]
    rows = np.concatenate([candidates.drawn[at], near], 1)  # (r, classes present + k)
    highest = torch.stack([one.values for one in best], 1).double().cpu().numpy()
    score = np.concatenate([highest, nearness], 1)
    theirs = np.concatenate([np.broadcast_to(present, at.shape), candidates.labels[near]], 1)
    own, found = labels[:, None], []
    for is_among in (theirs == own, theirs != own):
        masked = np.where(is_among & (theirs >= 0) & (own >= 0), score, -np.inf)
        column = masked.argmax(1)[:, None]
        at, highest = (np.take_along_axis(x, column, 1)[:, 0] for x in (rows, masked))
        is_there = np.isfinite(highest)
        found += [np.where(is_there, at, -1), np.where(is_there, highest, -1.0)]
    return found


def class_votes(losses: np.ndarray, classes: int) -> np.ndarray:
    """e^{−L} of losses (n, c), made to sum to 1: (n, classes), the last of which, where no row is known, have none."""
    votes = mapped_zeros((len(losses), classes))
    for start in range(0, len(losses), ROWS):
        part = losses[start : start + ROWS]
        weight = np.exp(part.min(1, keepdims=True) - part)
        votes[start : start + ROWS, : part.shape[1]] = weight / weight.sum(1, keepdims=True)
    return votes

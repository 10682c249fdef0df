"""Each row against every class: its supervised contrastive loss there, and the nearest rows.

L_i(c) = −log 1/|P_c| Σ_{p ∈ P_c} e^{s_ip/τ} / Σ_{a ≠ i} e^{s_ia/τ}, P_c the other rows of class c:
the second form of Khosla et al. (2020, arXiv 2004.11362, eq. 3; `sup_con` with form "in"), with c
in the place of the row's own label, on unit rows. It is a mean of softmax probabilities, so that
e^{−L_i(c)}, made to sum to 1, says which class the loss would give the row; the row's own label
has no part in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.progress import OnFraction, ignore_fraction

__all__ = ["ByClass", "by_class", "class_votes"]

TEMPERATURE = 0.07  # as in the vote of the nearest neighbors
CELLS = 1 << 23  # of a block of rows against all others: 32 MB in float32


@dataclass(frozen=True, eq=False)
class ByClass:
    """What n rows are to every class, and the nearest row of their own and of another class, by
    cosine: its number, −1 where there is none, and its similarity, −1 then."""

    losses: np.ndarray  # (n, classes) float64; infinite for a class of which there is no other row
    same: np.ndarray  # (n) int64
    same_score: np.ndarray  # (n) float64
    other: np.ndarray  # (n) int64
    other_score: np.ndarray  # (n) float64


def by_class(
    rows: EmbeddingSet,
    temperature: float = TEMPERATURE,
    on_fraction: OnFraction = ignore_fraction,
    device: str = "auto",
) -> ByClass:
    """Every row against all others, block by block, exactly.

    Rows without a label (−1) are compared, and are of no class. Of many processes (torchrun) each
    takes a share of the rows.

    Raises: ValueError without labels; what `on_fraction` raises stops it.
    """
    from contrastive_core.distributed import collectives
    from contrastive_core.distributed.partition import part_of
    from contrastive_core.distributed.sharded_rows import SPREAD
    from contrastive_core.ops.neighbors import pick_device, unit_rows

    if rows.labels is None:
        raise ValueError("without labels there is no class to take the loss of")
    order = np.argsort(rows.labels, kind="stable")
    x = unit_rows(rows.features, pick_device(device))
    counts = np.bincount(rows.labels + 1, minlength=2)
    candidates, place = x[order], np.argsort(order)
    world, blocks, size = collectives.world(), [], max(1, CELLS // len(x))
    first, last, _ = part_of(len(x), (world.rank, world.size)).indices(len(x))
    for start in range(first, max(last, first + 1), size):  # a process without rows has a block too
        block = slice(start, min(start + size, last))
        s = x[block] @ candidates.mT  # (r, n)
        blocks.append(_block(s, rows.labels[block], place[block], counts, temperature))
        on_fraction((block.stop - first) / max(1, last - first))
    whole = [SPREAD.whole(np.concatenate(part)) for part in zip(*blocks, strict=True)]
    losses, (same, same_score, other, other_score) = whole[0], whole[1:]
    same, other = (np.where(at >= 0, order[at], -1) for at in (same, other))
    return ByClass(losses, same, same_score, other, other_score)


def _block(
    s: Any, labels: np.ndarray, place: np.ndarray, counts: np.ndarray, temperature: float
) -> tuple[np.ndarray, ...]:
    """What ByClass holds, of the rows of a block.

    Args: s: (r, n) similarities to all rows, ordered by class, which also numbers them here;
        place: (r) where each stands itself; counts: of rows without a label, then of each class.
    """
    import torch

    s[torch.arange(len(s)), torch.from_numpy(place)] = -torch.inf
    is_own = np.arange(len(counts) - 1) == labels[:, None]  # (r, classes)
    best = _best(s, counts)
    e = s.sub_(1).div_(temperature).exp_()  # 1: the highest cosine, so that nothing overflows
    mass = torch.stack([p.sum(1) for p in e.split(counts.tolist(), 1)], 1).double().cpu().numpy()
    positives = counts[1:] - is_own  # |P_c|
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = -np.log(mass[:, 1:] / mass.sum(1, keepdims=True) / positives)
    losses = np.where(positives > 0, losses, np.inf)
    return losses, *_nearest(*best, is_own), *_nearest(*best, ~is_own & (labels >= 0)[:, None])


def _best(s: Any, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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


def class_votes(losses: np.ndarray) -> np.ndarray:
    """e^{−L} (n, classes), made to sum to 1."""
    weight = np.exp(losses.min(1, keepdims=True) - losses)
    return np.asarray(weight / weight.sum(1, keepdims=True))

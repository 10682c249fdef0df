"""The supervised contrastive loss that each row would have under every class.

L_i(c) = −log 1/|P_c| Σ_{p ∈ P_c} e^{s_ip/τ} / Σ_{a ≠ i} e^{s_ia/τ}, P_c the other rows of class c:
the second form of Khosla et al. (2020, arXiv 2004.11362, eq. 3; `sup_con` with form "in"), with c
in the place of the row's own label, on unit rows. It is a mean of softmax probabilities, so that
e^{−L_i(c)}, made to sum to 1, says which class the loss would give the row; the row's own label
has no part in it.
"""

from __future__ import annotations

import numpy as np

from contrastive_core.embedding_set import EmbeddingSet

__all__ = ["class_losses", "class_votes"]

TEMPERATURE = 0.07  # as in the vote of the nearest neighbours
CELLS = 1 << 23  # of a block of rows against all others: 32 MB in float32


def class_losses(rows: EmbeddingSet, temperature: float = TEMPERATURE) -> np.ndarray:
    """Losses (n, classes) float64; infinite for a class of which there is no other row.

    Rows without a label (−1) are compared, and are of no class. Of many processes (torchrun) each
    takes a share of the rows. Raises: ValueError without labels.
    """
    import torch

    from contrastive_core import distributed
    from contrastive_core.neighbours import unit_rows
    from contrastive_core.readers import part_of
    from contrastive_core.sharded import SPREAD

    if rows.labels is None:
        raise ValueError("without labels there is no class to take the loss of")
    order = np.argsort(rows.labels, kind="stable")
    labels, x = rows.labels[order], unit_rows(rows.features)
    candidates, place = x[order], np.argsort(order)
    counts = np.bincount(labels + 1, minlength=2)  # of rows without a label, then of each class
    world = distributed.here()
    first, last, _ = part_of(len(x), (world.rank, world.size)).indices(len(x))
    found, size = [np.empty((0, len(counts)))], max(1, CELLS // len(x))
    for start in range(first, last, size):
        block = slice(start, min(start + size, last))
        s = x[block] @ candidates.mT  # (r, n)
        s = s.sub_(1).div_(temperature).exp_()  # 1: the highest cosine, so that nothing overflows
        s[torch.arange(len(s)), torch.from_numpy(place[block])] = 0  # itself
        found.append(torch.stack([p.sum(1) for p in s.split(counts.tolist(), 1)], 1).numpy())
    mass = SPREAD.whole(np.concatenate(found).astype(np.float64))  # (n, 1 + classes)
    own = np.arange(-1, counts.size - 1) == rows.labels[:, None]
    positives = (counts - own)[:, 1:]  # |P_c| (n, classes)
    share = mass[:, 1:] / mass.sum(1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(positives > 0, -np.log(share / positives), np.inf)


def class_votes(losses: np.ndarray) -> np.ndarray:
    """e^{−L} (n, classes), made to sum to 1."""
    weight = np.exp(losses.min(1, keepdims=True) - losses)
    return np.asarray(weight / weight.sum(1, keepdims=True))

"""The pairs of one group, without the n×m matrix: their numbers, their means, and them alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from contrastive_core.losses._multiview import mean_of_views
from contrastive_core.ops import similarity
from contrastive_core.ops.differentiation import recomputed
from contrastive_core.ops.similarity import deterministic_gather
from contrastive_core.pairs.types import NO_GROUP, NO_ROW, Pairs

__all__ = ["mean_of_positives", "over_groups", "relation_counts"]

ROWS = 1 << 10  # anchors at once where nothing goes back
WINDOW = 1 << 20  # scores of one group held at once: 4 MB in float32


def relation_counts(pairs: Pairs) -> tuple[Tensor, Tensor]:
    """|P(i)| and |N(i)| of every anchor (n), by counting ids; (n) int64 each."""
    if not pairs.by_id:
        masks = pairs.masks()
        return masks.positive.sum(1), masks.negative.sum(1)
    if v := pairs.even_views:
        n = len(pairs)
        return pairs.anchor_rows.new_full((n,), v - 1), pairs.anchor_rows.new_full((n,), n - v)
    of_anchor, of_candidate, number = _numbered(pairs)
    grouped = pairs.candidate_groups != NO_GROUP
    may = torch.stack([pairs.as_positive & grouped, pairs.as_negative & grouped], 1).long()
    per_group = may.new_zeros(number, 2).index_add_(0, of_candidate, may)
    mine = per_group[of_anchor]  # (n, 2)
    at, present = _own_candidate(pairs)
    itself = may[at, 0] * present * (of_candidate[at] == of_anchor) if len(may) else mine[:, 0] * 0
    positive, negative = mine[:, 0] - itself, may[:, 1].sum() - mine[:, 1]
    in_group = pairs.anchor_groups != NO_GROUP
    return torch.where(in_group, positive, 0), torch.where(in_group, negative, 0)


def mean_of_positives(pairs: Pairs, scale: float, number: Tensor) -> Tensor:
    """mean over P(i) of scale · a_i·c_p, by the sums of the groups, in O((n + m)·d); (n).

    Args: number: |P(i)| (n).
    """
    if v := pairs.even_views:
        return scale * mean_of_views(pairs.anchors, v)
    of_anchor, of_candidate, groups = _numbered(pairs)
    c, allowed = pairs.candidates, pairs.as_positive & (pairs.candidate_groups != NO_GROUP)
    if not bool(allowed.all()):
        c = torch.where(allowed[:, None], c, 0.0)
    sums = c.new_zeros(groups, c.shape[1]).index_add_(0, of_candidate, c)
    at, present = _own_candidate(pairs)
    own_candidate = c
    if not pairs.symmetric:
        own_candidate = torch.where(
            (present & (of_candidate[at] == of_anchor))[:, None], deterministic_gather(c, at), 0.0
        )
    if sums.requires_grad or pairs.anchors.requires_grad:
        total = (pairs.anchors * (deterministic_gather(sums, of_anchor) - own_candidate)).sum(1)
    else:
        total = sums.new_empty(len(pairs))
        for i in range(0, len(pairs), ROWS):
            r = slice(i, i + ROWS)
            total[r] = (
                pairs.anchors[r] * (deterministic_gather(sums, of_anchor[r]) - own_candidate[r])
            ).sum(1)
    return torch.where(number > 0, scale * total / number.clamp_min(1), 0.0)


def over_groups(
    pairs: Pairs,
    negatives: Tensor,
    score: str,
    scale: float,
    formula: Callable[[Tensor, Tensor, Tensor], Tensor],
) -> Tensor:
    """`formula(ℓ, positive, negatives)` (n) for pairs sorted by group, over each group alone.

    Blocks of anchors meet the window of candidates that their groups span; the backward pass
    computes each block again.
    """

    def block(part: Pairs, a: Tensor, c: Tensor, negatives: Tensor) -> Tensor:
        logits = scale * getattr(similarity, score)(a, c)
        return formula(logits, part.masks().positive, negatives)

    parts = []
    for rows, cols in _windows(pairs):
        part = pairs.take_anchors(rows).take_candidates(cols)
        task = partial(block, part)
        parts.append(recomputed(task, part.anchors, part.candidates, negatives[rows]))
    return torch.cat(parts) if parts else 0 * negatives


def _windows(pairs: Pairs) -> list[tuple[slice, slice]]:
    """Blocks of anchors, and the candidates of the same groups, for pairs sorted by group."""
    groups = pairs.candidate_groups.contiguous()
    low = torch.searchsorted(groups, pairs.anchor_groups).tolist()
    high = torch.searchsorted(groups, pairs.anchor_groups, right=True).tolist()
    windows, start, n = [], 0, len(pairs)
    while start < n:
        stop = start + 1
        while stop < n and (stop + 1 - start) * (high[stop] - low[start]) <= WINDOW:
            stop += 1
        windows.append((slice(start, stop), slice(low[start], high[stop - 1])))
        start = stop
    return windows


def _numbered(pairs: Pairs) -> tuple[Tensor, Tensor, int]:
    """Groups as numbers from 0: of anchors (n), of candidates (m), and how many."""
    n, most = len(pairs), 2 * (len(pairs) + pairs.width) + 16
    groups = pairs.anchor_groups
    if pairs.candidate_groups is not groups:
        groups = torch.cat([groups, pairs.candidate_groups])
    if not len(groups):
        return groups, groups, 0
    low, high = torch.stack(groups.aminmax()).tolist()
    if high - low < most:
        distinct, number = high - low + 1, groups - low
    else:
        values, number = groups.unique(return_inverse=True)
        distinct = len(values)
    return number[:n], number[-pairs.candidate_groups.shape[0] :], distinct


def _own_candidate(pairs: Pairs) -> tuple[Tensor, Tensor]:
    """Where each anchor's own row stands among the candidates, and whether it does; (n) each."""
    if pairs.symmetric:
        at = torch.arange(len(pairs), device=pairs.anchor_rows.device)
        return at, pairs.anchor_rows != NO_ROW
    if not pairs.width:
        return torch.zeros_like(pairs.anchor_rows), pairs.anchor_rows != pairs.anchor_rows
    rows, order = pairs.candidate_rows.sort()
    at = torch.searchsorted(rows, pairs.anchor_rows.contiguous()).clamp_max(len(rows) - 1)
    return order[at], (rows[at] == pairs.anchor_rows) & (pairs.anchor_rows != NO_ROW)

"""Numbers and means of positives, counted by group instead of over the n×m matrix."""

from __future__ import annotations

import torch
from torch import Tensor

from contrastive_core.ops.similarity import deterministic_gather
from contrastive_core.pairs.types import NO_GROUP, NO_ROW, Pairs

__all__ = ["mean_of_positives", "relation_counts"]

ROWS = 1 << 10  # anchors at once where nothing goes back


def relation_counts(pairs: Pairs) -> tuple[Tensor, Tensor]:
    """|P(i)| and |N(i)| of every anchor (n), by counting ids; (n) int64 each."""
    if not pairs.by_id:
        masks = pairs.masks()
        return masks.positive.sum(1), masks.negative.sum(1)
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
            total[r] = (pairs.anchors[r] * (deterministic_gather(sums, of_anchor[r]) - own_candidate[r])).sum(1)
    return torch.where(number > 0, scale * total / number.clamp_min(1), 0.0)


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

"""The loss and gradients of one big batch, computed by many processes.

Every process holds its rows of the batch; the columns are gathered *with* gradient (the backward pass is a sum over
processes). The local Σ w·L is divided by the all-reduced Σ w and the gradients are summed. Loss and gradients equal
those of one process on the whole batch, also for unequal shares and undefined anchors, without a factor of the world
size. A single process does not call these functions; there they are the identity.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from contrastive_core.distributed.collectives import all_gather, all_gather_ints, is_single_process
from contrastive_core.losses._output import LossOutput
from contrastive_core.pairs.types import NO_GROUP, NO_ROW, Pairs


def global_pairs(pairs: Pairs, by_label: bool) -> Pairs:
    """Local anchors against the candidates of every process. Candidates without a row id (bank, queue, momentum keys)
    stay. Row ids, and groups unless they are class labels (`by_label`), become unique over the processes."""
    if is_single_process() or not pairs.by_id or not (pairs.candidate_rows != NO_ROW).any():
        return pairs
    group_ids = torch.cat([pairs.anchor_groups, pairs.candidate_groups])
    row_ids = torch.cat([pairs.anchor_rows, pairs.candidate_rows])
    sizes = all_gather_ints(len(pairs.candidates), _above(row_ids), _above(group_ids))
    widths, row_counts, group_counts = (list(one) for one in zip(*sizes, strict=True))
    before = slice(0, dist.get_rank())
    shift_row = sum(row_counts[before])
    shift_group = 0 if by_label else sum(group_counts[before])

    def rows(ids: Tensor) -> Tensor:
        return torch.where(ids == NO_ROW, ids, ids + shift_row)

    def group(ids: Tensor) -> Tensor:
        return torch.where(ids == NO_GROUP, ids, ids + shift_group)

    local_roles = pairs.as_positive.long() + 2 * pairs.as_negative.long()
    columns = (group(pairs.candidate_groups), rows(pairs.candidate_rows), pairs.candidate_views, local_roles)
    groups, numbers, views, roles = all_gather(torch.stack(columns, 1), widths).unbind(1)
    return dataclasses.replace(
        pairs,
        candidates=all_gather(pairs.candidates, widths),
        anchor_groups=group(pairs.anchor_groups),
        candidate_groups=groups.contiguous(),
        anchor_rows=rows(pairs.anchor_rows),
        candidate_rows=numbers.contiguous(),
        candidate_views=views.contiguous(),
        as_positive=roles % 2 == 1,
        as_negative=roles >= 2,
    )


def _above(ids: Tensor) -> int:
    """A number above all local ids: other processes' ids are shifted by it."""
    return int(ids.max()) + 1 if ids.numel() else 0


def local_value(out: LossOutput) -> Tensor:
    """This process's part of the loss: local Σ w·L over everyone's Σ w. The parts sum to the
    value of one big batch, and so do their gradients."""
    if is_single_process():
        return out.value
    weight = out.weight.sum().detach().clone()
    dist.all_reduce(weight)
    safe = torch.where(weight > 0, weight, torch.ones_like(weight))
    return (out.weight * out.per_anchor).sum() / safe


def sum_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Add up every process's gradients, in one message for each dtype."""
    if is_single_process():
        return
    trained = [p for p in parameters if p.requires_grad]
    for p in trained:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
    for dtype in sorted({p.dtype for p in trained}, key=str):
        grads = [p.grad for p in trained if p.dtype == dtype and p.grad is not None]
        flat = torch.cat([g.reshape(-1) for g in grads])
        dist.all_reduce(flat)
        for g, part in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
            g.copy_(part.view_as(g))

"""The loss, gradients and BatchNorm of one big batch, computed by many processes.

Every process holds its rows of the batch; the columns are gathered *with* gradient (the backward pass is a sum over
processes). The local Σ w·L is divided by the all-reduced Σ w and the gradients are summed. Loss and gradients equal
those of one process on the whole batch, also for unequal shares and undefined anchors, without a factor of the world
size. A single process does not call these functions; there they are the identity.
"""

import dataclasses
import math
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from contrastive_core.distributed.collectives import (
    all_gather,
    all_gather_ints,
    all_reduce_sum,
    is_single_process,
    world,
)
from contrastive_core.losses._output import LossOutput
from contrastive_core.messages import message
from contrastive_core.models.encoders import SplitBatchNorm
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
    group_ids = torch.where(group_ids == NO_GROUP, group_ids, group_ids + shift_group)
    anchor_groups, own_groups = group_ids.tensor_split([len(pairs)])
    anchor_rows, own_rows = torch.where(row_ids == NO_ROW, row_ids, row_ids + shift_row).tensor_split([len(pairs)])
    local_roles = pairs.as_positive.long() + 2 * pairs.as_negative.long()
    columns = (own_groups, own_rows, pairs.candidate_views, local_roles)
    groups, numbers, views, roles = all_gather(torch.stack(columns, 1), widths).unbind(1)
    return dataclasses.replace(
        pairs,
        candidates=all_gather(pairs.candidates, widths),
        anchor_groups=anchor_groups,
        candidate_groups=groups.contiguous(),
        anchor_rows=anchor_rows,
        candidate_rows=numbers.contiguous(),
        candidate_views=views.contiguous(),
        as_positive=roles % 2 == 1,
        as_negative=roles >= 2,
    )


def _above(ids: Tensor) -> int:
    """A number above all local ids: other processes' ids are shifted by it."""
    return int(ids.max()) + 1 if ids.numel() else 0


def local_value(out: LossOutput) -> Tensor:
    """This process's part of the loss: local Σ w·L over all Σ w. The parts, and their gradients, sum to the whole."""
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


class SyncBatchNorm(_BatchNorm):
    """BatchNorm over all processes' rows, or `splits` parts of them. torch's refuses CPU tensors and knows no parts."""

    splits = 1

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(message("expected (n, channels, …); got shape {shape}", shape=tuple(input.shape)))

    def forward(self, input: Tensor) -> Tensor:
        if not self.training or is_single_process():
            return super().forward(input)
        x = input.float() if input.dtype in (torch.bfloat16, torch.float16) else input
        n, c = x.shape[:2]
        member = self._membership(n).to(x)  # (n, splits)
        pixels = x.new_full((n, 1), math.prod(x.shape[2:]))
        sums = _sum_by_part(torch.cat([_per_row(x), pixels], 1), member)  # (splits, c + 1)
        count = sums[:, -1:].detach()  # (splits, 1)
        mean = sums[:, :-1] / count  # (splits, c)
        beside = (-1, c, *[1] * (x.ndim - 2))  # a row's values beside its pixels
        centered = x - _of_rows(mean, member).view(beside)
        variance = _sum_by_part(_per_row(centered.square()), member) / count
        self._update_running(mean.detach(), (variance * count / (count - 1).clamp_min(1)).detach())
        y = centered * _of_rows((variance + self.eps).rsqrt(), member).view(beside)
        if self.affine:
            y = y * self.weight.view(beside) + self.bias.view(beside)
        return y.to(input.dtype)

    def _membership(self, n: int) -> Tensor:
        """(n, splits): which part of the global batch each of this process's rows is in."""
        if self.splits == 1:
            return torch.ones(n, 1)
        counts = [one for (one,) in all_gather_ints(n)]
        if sum(counts) < 2 * self.splits:
            return torch.ones(n, 1)
        parts = torch.arange(sum(counts)).tensor_split(self.splits)
        part = torch.cat([torch.full_like(rows, i) for i, rows in enumerate(parts)])
        start = sum(counts[: world().rank])
        return F.one_hot(part[start : start + n], self.splits)

    @torch.no_grad()
    def _update_running(self, mean: Tensor, variance: Tensor) -> None:
        """Running statistics, part by part, in their order."""
        if not self.track_running_stats or self.running_mean is None or self.running_var is None:
            return
        rate = 0.1 if self.momentum is None else self.momentum
        for part_mean, part_variance in zip(mean, variance, strict=True):
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)
            self.running_mean.lerp_(part_mean.to(self.running_mean.dtype), rate)
            self.running_var.lerp_(part_variance.to(self.running_var.dtype), rate)


def synchronize_norms(module: nn.Module) -> nn.Module:
    """Turn every BatchNorm into one over all processes; names, state and the parameters themselves stay."""
    if not is_single_process():
        for norm in module.modules():
            if type(norm) in (nn.BatchNorm1d, nn.BatchNorm2d, SplitBatchNorm):
                norm.__class__ = SyncBatchNorm
    return module


def _per_row(x: Tensor) -> Tensor:
    """(n, c, …) summed over pixels: (n, c)."""
    return x.sum(tuple(range(2, x.ndim))) if x.ndim > 2 else x


def _sum_by_part(rows: Tensor, member: Tensor) -> Tensor:
    """Rows (n, c) of all processes, summed by part: (splits, c), with gradient."""
    if member.shape[1] == 1:
        return all_reduce_sum(rows.sum(0, keepdim=True))
    return all_reduce_sum((member[:, :, None] * rows[:, None]).sum(0))


def _of_rows(parts: Tensor, member: Tensor) -> Tensor:
    """Each row's part's values: (splits, c) to (n, c), or (1, c) where there is one part."""
    return parts if member.shape[1] == 1 else (member[:, :, None] * parts).sum(1)

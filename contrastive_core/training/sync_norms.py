"""BatchNorm over the rows of all processes, whole or in parts, as one process computes it.

torch's own SyncBatchNorm refuses CPU tensors and knows no parts. In a world of one nothing here is used.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from contrastive_core.distributed.collectives import all_gather_ints, all_reduce_sum, is_single_process, world
from contrastive_core.messages import message
from contrastive_core.models.encoders import SplitBatchNorm


class SyncBatchNorm(_BatchNorm):
    """BatchNorm over all processes' rows; with `splits`, over each of so many parts of them."""

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

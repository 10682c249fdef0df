"""Many processes compute what one big batch would: loss, gradients, batch statistics.

Every process holds its rows of the batch; the columns are gathered *with* gradient (the backward
pass is a sum over processes). The local Σ w·L is divided by the all-reduced Σ w and the gradients
are summed, so loss and gradients equal those of one process on the whole batch, with unequal
shares and undefined anchors too, and no factor of the world size hides anywhere. In a world of one
every function here is the identity.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from contrastive_core.distributed.collectives import (
    all_gather,
    all_gather_ints,
    all_reduce_sum,
    is_single_process,
)
from contrastive_core.losses._output import LossOutput
from contrastive_core.pairs.types import NO_GROUP, NO_ROW, Pairs

__all__ = ["SyncBatchNorm", "global_pairs", "local_value", "sum_gradients", "synchronize_norms"]


# --- loss and gradients ------------------------------------------------------------------------


def global_pairs(pairs: Pairs, by_label: bool, gather_all: bool = False) -> Pairs:
    """Local anchors against the candidates of every process.

    Candidates without a row id (bank, queue, momentum keys) are alike everywhere, or nobody
    else's business, and stay. Row ids, and groups unless they are class labels, get a number
    that is unique over the processes.

    Args:
        by_label: groups are class labels, which mean the same on every process.
        gather_all: gather candidates although they have no row id.
    """
    local = (pairs.candidate_rows != NO_ROW).any() or gather_all
    if is_single_process() or pairs.columns is not None or not local:
        return pairs
    group_ids = torch.cat([pairs.anchor_groups, pairs.candidate_groups])
    row_ids = torch.cat([pairs.anchor_rows, pairs.candidate_rows])
    told = all_gather_ints(len(pairs.candidates), _above(row_ids), _above(group_ids))
    widths, row_counts, group_counts = (list(one) for one in zip(*told, strict=True))
    before = slice(0, dist.get_rank())
    shift_row = sum(row_counts[before])
    shift_group = 0 if by_label else sum(group_counts[before])

    def rows(ids: Tensor) -> Tensor:
        return torch.where(ids == NO_ROW, ids, ids + shift_row)

    def group(ids: Tensor) -> Tensor:
        return torch.where(ids == NO_GROUP, ids, ids + shift_group)

    roles = pairs.as_positive.long() + 2 * pairs.as_negative.long()
    own = (group(pairs.candidate_groups), rows(pairs.candidate_rows), pairs.candidate_views, roles)
    groups, numbered, views, roles = all_gather(torch.stack(own, 1), widths).unbind(1)
    return dataclasses.replace(
        pairs,
        candidates=all_gather(pairs.candidates, widths),
        anchor_groups=group(pairs.anchor_groups),
        candidate_groups=groups.contiguous(),
        anchor_rows=rows(pairs.anchor_rows),
        candidate_rows=numbered.contiguous(),
        candidate_views=views.contiguous(),
        as_positive=roles % 2 == 1,
        as_negative=roles >= 2,
        **_wide_masks(pairs, widths),
    )


def _wide_masks(pairs: Pairs, widths: list[int]) -> dict[str, Any]:
    """Explicit masks over the gathered columns: other processes' columns are negatives."""
    if pairs.positive is None or pairs.negative is None:
        return {}
    rank, n = dist.get_rank(), len(pairs)
    left, right = sum(widths[:rank]), sum(widths[rank + 1 :])
    pad = torch.nn.functional.pad
    positive = pad(pairs.positive, (left, right), value=False)
    negative = pad(pairs.negative, (left, right), value=True)
    assert positive.shape == (n, sum(widths))
    return {"positive": positive, "negative": negative}


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


# --- batch statistics and equality -------------------------------------------------------------


class SyncBatchNorm(_BatchNorm):
    """BatchNorm over the rows of all processes, on the CPU too (torch's own refuses it)."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected (n, channels, …); got shape {tuple(input.shape)}")

    def forward(self, input: Tensor) -> Tensor:
        if not self.training or is_single_process():
            return super().forward(input)
        x = input.float() if input.dtype in (torch.bfloat16, torch.float16) else input
        axes = [0, *range(2, x.ndim)]
        shape = [1, -1, *[1] * (x.ndim - 2)]
        own = x.new_full((1,), x.numel() / x.shape[1])
        sums = all_reduce_sum(torch.cat([x.sum(axes), own]))
        n, mean = sums[-1:].detach(), sums[:-1] / sums[-1:].detach()
        centerd = x - mean.view(shape)
        variance = all_reduce_sum(centerd.square().sum(axes)) / n  # (c)
        self._remember(mean.detach(), (variance * n / (n - 1).clamp_min(1)).detach())
        y = centerd * (variance + self.eps).rsqrt().view(shape)
        if self.affine:
            y = y * self.weight.view(shape) + self.bias.view(shape)
        return y.to(input.dtype)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        if not self.track_running_stats or self.running_mean is None or self.running_var is None:
            return
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        rate = 0.1 if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), rate)
        self.running_var.lerp_(variance.to(self.running_var.dtype), rate)


def synchronize_norms(module: nn.Module) -> nn.Module:
    """Replace every plain BatchNorm by one over all processes; names and state stay the same."""
    if is_single_process():
        return module
    for name, child in module.named_children():
        if isinstance(child, _BatchNorm) and type(child) in (nn.BatchNorm1d, nn.BatchNorm2d):
            other = SyncBatchNorm(
                child.num_features,
                child.eps,
                child.momentum,
                child.affine,
                child.track_running_stats,
                device=None if child.weight is None else child.weight.device,
                dtype=None if child.weight is None else child.weight.dtype,
            )
            other.load_state_dict(child.state_dict())
            if child.affine:  # keep the parameters' identity: weights may be shared or frozen
                other.weight, other.bias = child.weight, child.bias
            other.train(child.training)
            setattr(module, name, other)
        else:
            synchronize_norms(child)
    return module

"""Batches that are too large for one process: over many processes, and in micro-batches.

Every process gathers the columns of all *with* gradient, divides its Σ w·L by the Σ w of all, and gradients are summed:
loss and gradients equal those of one process on the whole batch. Micro-batches use gradient caching (Gao et al. 2021,
arXiv 2101.06983): encode each without a graph, compute the loss of all rows and its gradient, encode each again and
backpropagate the gradient of its rows, with the same views and dropout. Batch norms see one micro-batch at a time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from contrastive_core.base.messages import message
from contrastive_core.data.batch_loader import Batch
from contrastive_core.losses import LossOutput
from contrastive_core.methods._base import Rows
from contrastive_core.models.encoders import SplitBatchNorm
from contrastive_core.ops import collectives
from contrastive_core.pairs.types import NO_GROUP, NO_ROW, Pairs

if TYPE_CHECKING:
    from contrastive_core.train.setup import TrainSetup

BUCKET = 25 << 20  # bytes, as DistributedDataParallel has it
LEAST = 2  # images in a micro-batch: a batch norm has no statistics of one
StepLoss = tuple[Pairs, LossOutput, Tensor]  # pairs of all processes, their loss, this process's part of its value


def global_pairs(pairs: Pairs, by_label: bool) -> Pairs:
    """Return the pairs of local anchors with the candidates of every process, except those without a row id (bank,
    queue, keys). Row ids, and groups unless they are labels (`by_label`), become unique over the processes."""
    if collectives.is_single_process() or not pairs.by_id or not (pairs.candidate_rows != NO_ROW).any():
        return pairs
    group_ids = torch.cat([pairs.anchor_groups, pairs.candidate_groups])
    row_ids = torch.cat([pairs.anchor_rows, pairs.candidate_rows])
    sizes = collectives.all_gather_ints(len(pairs.candidates), _above(row_ids), _above(group_ids))
    widths, row_counts, group_counts = (list(one) for one in zip(*sizes, strict=True))
    before = slice(0, dist.get_rank())
    shift_row = sum(row_counts[before])
    shift_group = 0 if by_label else sum(group_counts[before])
    group_ids = torch.where(group_ids == NO_GROUP, group_ids, group_ids + shift_group)
    anchor_groups, own_groups = group_ids.tensor_split([len(pairs)])
    anchor_rows, own_rows = torch.where(row_ids == NO_ROW, row_ids, row_ids + shift_row).tensor_split([len(pairs)])
    local_roles = pairs.as_positive.long() + 2 * pairs.as_negative.long()
    columns = (own_groups, own_rows, pairs.candidate_views, local_roles)
    groups, numbers, views, roles = collectives.all_gather(torch.stack(columns, 1), widths).unbind(1)
    return dataclasses.replace(
        pairs,
        candidates=collectives.all_gather(pairs.candidates, widths),
        anchor_groups=anchor_groups,
        candidate_groups=groups.contiguous(),
        anchor_rows=anchor_rows,
        candidate_rows=numbers.contiguous(),
        candidate_views=views.contiguous(),
        as_positive=roles % 2 == 1,
        as_negative=roles >= 2,
    )


def _above(ids: Tensor) -> int:
    """Return a number above all local ids, by which the ids of other processes are shifted."""
    return int(ids.max()) + 1 if ids.numel() else 0


def local_value(out: LossOutput) -> Tensor:
    """Return this process's part of the loss, local Σ w·L over global Σ w. Parts and gradients sum to the whole."""
    if collectives.is_single_process():
        return out.value
    weight = out.weight.sum().detach().clone()
    dist.all_reduce(weight)
    safe = torch.where(weight > 0, weight, torch.ones_like(weight))
    return (out.weight * out.per_anchor).sum() / safe


class GradientBuckets:
    """Sums every process's gradients in buckets, sent in a fixed order as soon as the backward pass has filled each."""

    def __init__(self, parameters: Iterable[nn.Parameter], size: int = BUCKET) -> None:
        """Split parameters, given in forward order, into buckets of at least `size` bytes. All call it together."""
        self._buckets: list[list[nn.Parameter]] = []  # each of one dtype
        self._missing: list[int] = []  # gradients of each bucket; [] between steps
        self._sent: list[tuple[Tensor, Any]] = []  # a bucket's gradients, and what waits for their sums
        if collectives.is_single_process():
            return
        unfilled: dict[torch.dtype, list[nn.Parameter]] = {}
        for p in [p for p in parameters if p.requires_grad][::-1]:
            bucket = unfilled.setdefault(p.dtype, [])
            bucket.append(p)
            if sum(q.nbytes for q in bucket) >= size:
                self._buckets.append(unfilled.pop(p.dtype))
        self._buckets += unfilled.values()
        # of its own with gloo: buckets do not queue with the messages of batch norms
        self._group: Any = collectives.new_group() if dist.get_backend() == "gloo" else None
        for i, bucket in enumerate(self._buckets):
            for p in bucket:
                p.register_post_accumulate_grad_hook(partial(self._arrive, i))

    def start(self) -> None:
        """Send buckets during the next backward pass, the last one of this step."""
        self._missing = list(map(len, self._buckets))

    def finish(self) -> None:
        """Replace the gradients by the sums; a parameter without a local gradient gets the sum, too."""
        while len(self._sent) < len(self._buckets):
            self._send()
        for bucket, (flat, work) in zip(self._buckets, self._sent, strict=True):
            work.wait()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                assert p.grad is not None
                p.grad.copy_(part.view_as(p))
        self._missing, self._sent = [], []

    def _arrive(self, bucket: int, _: Tensor) -> None:
        if not self._missing:
            return
        self._missing[bucket] -= 1
        while len(self._sent) < len(self._buckets) and not self._missing[len(self._sent)]:
            self._send()

    def _send(self) -> None:
        bucket = self._buckets[len(self._sent)]
        for p in bucket:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        flat = torch.cat([p.grad.reshape(-1) for p in bucket if p.grad is not None])
        self._sent.append((flat, dist.all_reduce(flat, group=self._group, async_op=True)))


class SyncBatchNorm(_BatchNorm):
    """BatchNorm over all processes' rows, or over `splits` parts of them. torch's version rejects CPU tensors and has
    no parts, but needs 5.6 ms in both directions where this one needs 13.5 (an H200, two processes, 512 × 64 × 32 × 32
    in bf16)."""

    splits = 1

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(message("expected (n, channels, …); got shape {shape}", shape=tuple(input.shape)))

    def forward(self, input: Tensor) -> Tensor:
        if not self.training or collectives.is_single_process():
            return super().forward(input)
        x = input.float() if input.dtype in (torch.bfloat16, torch.float16) else input
        n, c = x.shape[:2]
        pixels = tuple(range(2, x.ndim))
        member = self._membership(n).to(x)[:, :, None]  # (n, splits, 1)

        def sum_by_part(x: Tensor, *further: Tensor) -> Tensor:
            """Sum x (n, c, …) over pixels, and then the rows of all processes by part: (splits, c), with gradient."""
            rows = torch.cat([x.sum(pixels) if pixels else x, *further], 1)
            return collectives.all_reduce_sum((member * rows[:, None]).sum(0))

        def of_rows(parts: Tensor) -> Tensor:
            """Return the values of each row's part, (splits, c) to (n, c, 1, …), beside its pixels."""
            return (member * parts).sum(1).view(-1, c, *[1] * len(pixels))

        sums = sum_by_part(x, x.new_full((n, 1), math.prod(x.shape[2:])))  # (splits, c + 1)
        count = sums[:, -1:].detach()  # (splits, 1)
        mean = sums[:, :-1] / count  # (splits, c)
        centered = x - of_rows(mean)
        variance = sum_by_part(centered.square()) / count
        self._update_running(mean.detach(), (variance * count / (count - 1).clamp_min(1)).detach())
        y = centered * of_rows((variance + self.eps).rsqrt())
        if self.affine:
            beside = (-1, *[1] * len(pixels))
            y = y * self.weight.view(beside) + self.bias.view(beside)
        return y.to(input.dtype)

    def _membership(self, n: int) -> Tensor:
        """Return (n, splits): which part of the global batch each of this process's rows is in."""
        if self.splits == 1:
            return torch.ones(n, 1)
        counts = [one for (one,) in collectives.all_gather_ints(n)]
        if sum(counts) < 2 * self.splits:
            return torch.ones(n, 1)
        parts = torch.arange(sum(counts)).tensor_split(self.splits)
        part = torch.cat([torch.full_like(rows, i) for i, rows in enumerate(parts)])
        start = sum(counts[: collectives.world().rank])
        return F.one_hot(part[start : start + n], self.splits)

    @torch.no_grad()
    def _update_running(self, mean: Tensor, variance: Tensor) -> None:
        """Update the running statistics with each part in turn."""
        if not self.track_running_stats or self.running_mean is None or self.running_var is None:
            return
        rate = 0.1 if self.momentum is None else self.momentum
        for part_mean, part_variance in zip(mean, variance, strict=True):
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)
            self.running_mean.lerp_(part_mean.to(self.running_mean.dtype), rate)
            self.running_var.lerp_(part_variance.to(self.running_var.dtype), rate)


def synchronize_norms(module: nn.Module) -> nn.Module:
    """Replace every BatchNorm by one over all processes: torch's on CUDA, unless it has parts. Names, state and the
    parameters stay the same."""
    norm: Any
    for norm in () if collectives.is_single_process() else module.modules():
        if type(norm) in (nn.BatchNorm1d, nn.BatchNorm2d, SplitBatchNorm):
            on_cuda = norm.running_mean is not None and norm.running_mean.is_cuda
            norm.__class__ = nn.SyncBatchNorm if on_cuda and type(norm) is not SplitBatchNorm else SyncBatchNorm
            norm.process_group = None  # all processes
    return module


# --- micro-batches ----------------------------------------------------------------------------------


def parts_of(batch: Batch, size: int, processes: int) -> list[Batch]:
    """Split a batch into micro-batches of about `size` images, equally many per process; [batch] if it fits."""
    most, least = math.ceil(batch.global_rows.total / processes), batch.global_rows.total // processes
    count = max(1, min(math.ceil(most / size), least // LEAST))
    if count == 1:
        return [batch]
    ends = np.cumsum([len(rows) for rows in np.array_split(np.arange(len(batch.images)), count)]).tolist()
    return [batch.part(start, stop) for start, stop in zip([0, *ends], ends, strict=False)]


def _cached(setup: TrainSetup, batch: Batch, parts: list[Batch], evaluate: Callable[[Pairs], StepLoss]) -> StepLoss:
    start, states, encoded = setup.generator.get_state(), [], []
    norms = [m for m in setup.method.modules() if isinstance(m, _BatchNorm) and m.training and m.track_running_stats]
    for norm in norms:  # the first pass uses a batch's statistics and keeps the running ones
        norm.track_running_stats = False
    try:
        with torch.no_grad():
            for part in parts:
                states.append(_random_states(setup.device))
                encoded.append(_encoded(setup, part, start))
    finally:
        for norm in norms:
            norm.track_running_stats = True
    rows = tuple(torch.cat(x) for x in zip(*encoded, strict=True))
    rows = tuple(x.requires_grad_() if x.is_floating_point() else x for x in rows)
    loss = evaluate(_related(setup, rows, batch))
    loss[2].backward()
    after, drawn = setup.generator.get_state(), _random_states(setup.device)
    places = [0] * len(rows)
    for part, state in zip(parts, states, strict=True):
        _restore(state, setup.device)
        again, gradients = [], []
        for i, y in enumerate(_encoded(setup, part, start)):
            gradient, stop = rows[i].grad, places[i] + len(y)
            if y.requires_grad and gradient is not None:
                again.append(y)
                gradients.append(gradient[places[i] : stop])
            places[i] = stop
        if part is parts[-1]:
            setup.buckets.start()
        torch.autograd.backward(again, gradients)
    setup.generator.set_state(after)
    _restore(drawn, setup.device)
    return loss


def backward(setup: TrainSetup, batch: Batch, parts: list[Batch], evaluate: Callable[[Pairs], StepLoss]) -> StepLoss:
    """Compute loss and gradients of a batch in parts: with a cache, or, if negatives come from a queue, by accumulating
    the gradients of Σ w·L part by part, divided by the Σ w of all parts and processes."""
    if not setup.method.negatives_in_queue or setup.loss.needs_whole_batch:
        return _cached(setup, batch, parts, evaluate)
    start, encoded, outputs = setup.generator.get_state(), [], []
    for part in parts:
        rows = _encoded(setup, part, start)
        _, output, _ = evaluate(_related(setup, rows, part))
        (output.weight * output.per_anchor).sum().backward()
        encoded.append([x.detach() for x in rows])
        outputs.append((output.per_anchor.detach(), output.weight.detach()))
    per_anchor, weight = (torch.cat(x) for x in zip(*outputs, strict=True))
    total = collectives.all_reduce_sum(weight.sum())
    total = torch.where(total > 0, total, 1.0)
    for p in setup.method.parameters():
        if p.grad is not None:
            p.grad.div_(total)
    pairs = setup.method.relate(tuple(torch.cat(x) for x in zip(*encoded, strict=True)), batch, setup.generator)
    return pairs, LossOutput(per_anchor, weight), (weight * per_anchor).sum() / total


def _encoded(setup: TrainSetup, part: Batch, start: Tensor) -> Rows:
    """Encode a part with the views that the whole batch would have."""
    setup.generator.set_state(start)
    with torch.autocast(setup.device.type, torch.bfloat16, enabled=bool(setup.config.amp)):
        return setup.method.rows(part, setup.generator)


def _related(setup: TrainSetup, rows: Rows, batch: Batch) -> Pairs:
    with torch.autocast(setup.device.type, torch.bfloat16, enabled=bool(setup.config.amp)):
        return setup.method.relate(rows, batch, setup.generator)


def _random_states(device: torch.device) -> tuple[Tensor, ...]:
    """Return the states of the random generators that dropout uses."""
    cpu = torch.get_rng_state()
    return (cpu, torch.cuda.get_rng_state(device)) if device.type == "cuda" else (cpu,)


def _restore(states: tuple[Tensor, ...], device: torch.device) -> None:
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state(states[1], device)

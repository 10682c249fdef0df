"""Batches beyond memory, by gradient caching (Gao et al. 2021, arXiv 2101.06983, "Scaling deep contrastive learning
batch size under memory limited setup").

Encode every micro-batch without a graph and keep its rows. Take the loss of all rows, and its gradient with respect to
them. Encode each micro-batch again, now with a graph, and pass the gradient of its rows on. Both passes see the same
views and the same dropout. Loss and gradients equal those of the whole batch in one pass, except that batch norms take
the statistics of one micro-batch at a time; the first pass leaves their running statistics alone.

Where negatives come from a queue, anchors do not meet: the gradients of the micro-batches add up, in one pass.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from contrastive_core.data.batch_loader import Batch
from contrastive_core.distributed.collectives import all_reduce_sum
from contrastive_core.losses._output import LossOutput
from contrastive_core.messages import N_
from contrastive_core.methods import Method
from contrastive_core.methods._base import Rows
from contrastive_core.pairs.types import Pairs

LEAST = 2  # images in a micro-batch: a batch norm has no statistics of one


class StepLoss(NamedTuple):
    """The loss of some pairs, of all processes, and this process's part of its value."""

    pairs: Pairs
    output: LossOutput
    value: Tensor


class StepScope(NamedTuple):
    """What a step needs besides its batch."""

    method: Method
    generator: torch.Generator
    device: torch.device
    amp: bool
    evaluate: Callable[[Pairs], StepLoss]
    before_last_backward: Callable[[], None]


def parts_of(batch: Batch, size: int, processes: int) -> list[Batch]:
    """A batch in micro-batches of about `size` images, as many on every process; [batch] where it has no more."""
    most, least = math.ceil(batch.global_rows.total / processes), batch.global_rows.total // processes
    count = max(1, min(math.ceil(most / size), least // LEAST))
    if count == 1:
        return [batch]
    ends = np.cumsum([len(rows) for rows in np.array_split(np.arange(len(batch.images)), count)]).tolist()
    return [batch.part(start, stop) for start, stop in zip([0, *ends], ends, strict=False)]


def misfit(method: Method) -> str | None:
    """Why a method cannot train in micro-batches, with the remedy; None if it can."""
    if method.batch_kind == "lifted":
        return N_(
            "lifted batches choose negatives from the whole batch before encoding; leave micro_batch out, or use "
            "--set method.batches=class_balanced"
        )
    if getattr(method.settings, "bn_splits", 1) > 1:
        return N_("micro_batch already splits the batch norm; use it with --set method.bn_splits=1")
    return None


def backward(scope: StepScope, batch: Batch, parts: list[Batch], whole: bool) -> StepLoss:
    """Loss and gradients of a batch by its parts. `whole`: the loss needs all rows even where anchors do not meet."""
    if scope.method.negatives_in_queue and not whole:
        return _accumulated(scope, batch, parts)
    return _cached(scope, batch, parts)


def _cached(scope: StepScope, batch: Batch, parts: list[Batch]) -> StepLoss:
    start, states, encoded = scope.generator.get_state(), [], []
    with torch.no_grad(), _running_statistics_kept(scope.method):
        for part in parts:
            states.append(_random_states(scope.device))
            encoded.append(_encoded(scope, part, start))
    rows = tuple(_leaf(torch.cat(x)) for x in zip(*encoded, strict=True))
    evaluation = _evaluated(scope, rows, batch)
    evaluation.value.backward()
    after, drawn = scope.generator.get_state(), _random_states(scope.device)
    places = [0] * len(rows)
    for part, state in zip(parts, states, strict=True):
        _restore(state, scope.device)
        again, gradients = [], []
        for i, y in enumerate(_encoded(scope, part, start)):
            gradient, stop = rows[i].grad, places[i] + len(y)
            if y.requires_grad and gradient is not None:
                again.append(y)
                gradients.append(gradient[places[i] : stop])
            places[i] = stop
        if part is parts[-1]:
            scope.before_last_backward()
        torch.autograd.backward(again, gradients)
    scope.generator.set_state(after)
    _restore(drawn, scope.device)
    return evaluation


def _accumulated(scope: StepScope, batch: Batch, parts: list[Batch]) -> StepLoss:
    """Gradients of Σ w·L, part by part, over Σ w of all parts and processes."""
    start, encoded, outputs = scope.generator.get_state(), [], []
    for part in parts:
        rows = _encoded(scope, part, start)
        output = _evaluated(scope, rows, part).output
        (output.weight * output.per_anchor).sum().backward()
        encoded.append([x.detach() for x in rows])
        outputs.append((output.per_anchor.detach(), output.weight.detach()))
    per_anchor, weight = (torch.cat(x) for x in zip(*outputs, strict=True))
    total = all_reduce_sum(weight.sum())
    total = torch.where(total > 0, total, 1.0)
    for p in scope.method.parameters():
        if p.grad is not None:
            p.grad.div_(total)
    pairs = scope.method.relate(tuple(torch.cat(x) for x in zip(*encoded, strict=True)), batch, scope.generator)
    return StepLoss(pairs, LossOutput(per_anchor, weight), (weight * per_anchor).sum() / total)


def _encoded(scope: StepScope, part: Batch, start: Tensor) -> Rows:
    """The rows of a part, with views drawn as for the whole batch."""
    scope.generator.set_state(start)
    with torch.autocast(scope.device.type, torch.bfloat16, enabled=scope.amp):
        return scope.method.rows(part, scope.generator)


def _evaluated(scope: StepScope, rows: Rows, batch: Batch) -> StepLoss:
    with torch.autocast(scope.device.type, torch.bfloat16, enabled=scope.amp):
        pairs = scope.method.relate(rows, batch, scope.generator)
    return scope.evaluate(pairs)


def _leaf(x: Tensor) -> Tensor:
    return x.requires_grad_() if x.is_floating_point() else x


@contextmanager
def _running_statistics_kept(module: nn.Module) -> Iterator[None]:
    """Batch norms in training take a batch's statistics and do not remember them."""
    norms = [m for m in module.modules() if isinstance(m, _BatchNorm) and m.training and m.track_running_stats]
    for norm in norms:
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True


def _random_states(device: torch.device) -> tuple[Tensor, ...]:
    """The states from which dropout draws."""
    cpu = torch.get_rng_state()
    return (cpu, torch.cuda.get_rng_state(device)) if device.type == "cuda" else (cpu,)


def _restore(states: tuple[Tensor, ...], device: torch.device) -> None:
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state(states[1], device)

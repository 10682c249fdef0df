"""Batches larger than memory, by gradient caching (Gao et al. 2021, arXiv 2101.06983, "Scaling deep contrastive
learning batch size under memory limited setup").

Encode every micro-batch without a graph and keep its rows. Compute the loss of all rows, and its gradient with respect
to them. Encode each micro-batch again, now with a graph, and backpropagate the gradient of its rows. Both passes see
the same views and the same dropout. Loss and gradients equal those of the whole batch in one pass, except that batch
norms use the statistics of one micro-batch at a time; the first pass leaves their running statistics unchanged.

If negatives come from a queue, anchors are not compared with each other, so the gradients of the micro-batches are
accumulated in one pass."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from contrastive_core.data.batch_loader import Batch
from contrastive_core.losses._output import LossOutput
from contrastive_core.methods._base import Rows
from contrastive_core.ops.collectives import all_reduce_sum
from contrastive_core.pairs.types import Pairs
from contrastive_core.train.setup import TrainSetup

LEAST = 2  # images in a micro-batch: a batch norm has no statistics of one


StepLoss = tuple[Pairs, LossOutput, Tensor]  # pairs of all processes, their loss, this process's part of its value


def parts_of(batch: Batch, size: int, processes: int) -> list[Batch]:
    """Split a batch into micro-batches of about `size` images, equally many per process; [batch] if it fits."""
    most, least = math.ceil(batch.global_rows.total / processes), batch.global_rows.total // processes
    count = max(1, min(math.ceil(most / size), least // LEAST))
    if count == 1:
        return [batch]
    ends = np.cumsum([len(rows) for rows in np.array_split(np.arange(len(batch.images)), count)]).tolist()
    return [batch.part(start, stop) for start, stop in zip([0, *ends], ends, strict=False)]


def backward(setup: TrainSetup, batch: Batch, parts: list[Batch], evaluate: Callable[[Pairs], StepLoss]) -> StepLoss:
    """Compute loss and gradients of a batch in parts."""
    if setup.method.negatives_in_queue and not setup.loss.needs_whole_batch:
        return _accumulated(setup, batch, parts, evaluate)
    return _cached(setup, batch, parts, evaluate)


def _cached(setup: TrainSetup, batch: Batch, parts: list[Batch], evaluate: Callable[[Pairs], StepLoss]) -> StepLoss:
    start, states, encoded = setup.generator.get_state(), [], []
    with torch.no_grad(), _running_statistics_kept(setup.method):
        for part in parts:
            states.append(_random_states(setup.device))
            encoded.append(_encoded(setup, part, start))
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


def _accumulated(
    setup: TrainSetup, batch: Batch, parts: list[Batch], evaluate: Callable[[Pairs], StepLoss]
) -> StepLoss:
    """Accumulate the gradients of Σ w·L part by part, divided by the Σ w of all parts and processes."""
    start, encoded, outputs = setup.generator.get_state(), [], []
    for part in parts:
        rows = _encoded(setup, part, start)
        _, output, _ = evaluate(_related(setup, rows, part))
        (output.weight * output.per_anchor).sum().backward()
        encoded.append([x.detach() for x in rows])
        outputs.append((output.per_anchor.detach(), output.weight.detach()))
    per_anchor, weight = (torch.cat(x) for x in zip(*outputs, strict=True))
    total = all_reduce_sum(weight.sum())
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


@contextmanager
def _running_statistics_kept(module: nn.Module) -> Iterator[None]:
    """Let training batch norms use a batch's statistics without updating their running statistics."""
    norms = [m for m in module.modules() if isinstance(m, _BatchNorm) and m.training and m.track_running_stats]
    for norm in norms:
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True


def _random_states(device: torch.device) -> tuple[Tensor, ...]:
    """Return the states of the random generators that dropout uses."""
    cpu = torch.get_rng_state()
    return (cpu, torch.cuda.get_rng_state(device)) if device.type == "cuda" else (cpu,)


def _restore(states: tuple[Tensor, ...], device: torch.device) -> None:
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state(states[1], device)

"""Where the time of a training step on a GPU goes: kernels, their launches, and the host's waits for the device."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from benchmarks._training import synchronize
from contrastive_core.data.batch_loader import Batch
from contrastive_core.train.loop import compute_step
from contrastive_core.train.optim import learning_rate, set_learning_rate
from contrastive_core.train.setup import TrainSetup

__all__ = ["MODES", "Event", "Shares", "Steps", "shares", "step_shares", "steps_in_a_row"]

LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cudaGraphLaunch", "cudaMemsetAsync")
WAITS = ("cudaStreamSynchronize", "cudaEventSynchronize")  # the profiler itself ends in cudaDeviceSynchronize


class Event(NamedTuple):
    """All calls of one name: microseconds of the host alone, or of the device."""

    name: str
    on_device: bool
    calls: int
    host: float
    device: float


class Shares(NamedTuple):
    """Per step: milliseconds of kernels, of launches and of waits, and how often the host waited."""

    work: float
    launches: float
    waits: float
    waited: float


def shares(events: Iterable[Event], steps: int) -> Shares:
    """The sums over `steps` steps, per step. Without a GPU `work` is the host's own operations."""
    events = list(events)
    has_device = any(e.on_device for e in events)
    work = sum(e.device for e in events if e.on_device) if has_device else sum(e.host for e in events)
    launches = sum(e.host for e in events if e.name in LAUNCHES)
    waits = [e for e in events if e.name in WAITS]
    each = 1e3 * steps
    return Shares(work / each, launches / each, sum(e.host for e in waits) / each, sum(e.calls for e in waits) / steps)


def step_shares(step: Callable[[], object], device: torch.device, steps: int) -> Shares:
    """`steps` steps under PyTorch's profiler, after one that is not counted."""
    step()
    synchronize(device)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device.type == "cuda" else [])
    with profile(activities=activities) as made:
        for _ in range(steps):
            step()
        synchronize(device)
    return shares(
        (
            Event(e.key, e.device_type == DeviceType.CUDA, e.count, e.self_cpu_time_total, e.self_device_time_total)
            for e in made.key_averages()
        ),
        steps,
    )


class Steps(NamedTuple):
    """Milliseconds of a step, the mean loss of the last half of them, and the seconds of the first, untimed ones."""

    ms: float
    loss: float
    first: float


def steps_in_a_row(setup: TrainSetup, steps: int, first: int) -> Steps:
    """`steps` steps of a training as the loop takes them, after `first` that are not timed."""
    config, total = setup.config, first + steps
    setup.method.train()
    losses, begun = [], time.perf_counter()
    for step, batch in enumerate(itertools.islice(_batches(setup), total)):
        if step == first:
            synchronize(setup.device)
            start = time.perf_counter()
        set_learning_rate(setup.optimizer, learning_rate(step, total, config.lr or 0, config.schedule or ""))
        made = compute_step(setup, batch, looks=False)
        setup.optimizer.step()
        setup.method.after_step(made.pairs)
        losses.append(made.loss)
    synchronize(setup.device)
    ms = 1e3 * (time.perf_counter() - start) / steps
    return Steps(ms, float(torch.stack(losses[-(steps // 2 or 1) :]).mean()), start - begun)


def _batches(setup: TrainSetup) -> Iterator[Batch]:
    for epoch in itertools.count():
        yield from setup.loader.batches(setup.loader.epoch(epoch))


def _captured(setup: TrainSetup) -> None:
    """Let the encoder's kernels be launched as two CUDA graphs, one each way."""
    encoder = setup.method.encoder
    batch = setup.loader.batch(setup.loader.epoch(0)[0])
    views = torch.rand(2 * len(batch.images), *batch.images.shape[1:], device=setup.device)
    with torch.autocast("cuda", torch.bfloat16, enabled=bool(setup.config.amp), cache_enabled=False):
        torch.cuda.make_graphed_callables(encoder.train(), (views,))


MODES: dict[str, Callable[[TrainSetup], object]] = {  # what is done to a step's encoder
    "plain": lambda setup: None,
    "captured": _captured,
    "compiled": lambda setup: setup.method.encoder.compile(),
    "compiled and captured": lambda setup: setup.method.encoder.compile(mode="reduce-overhead"),
}

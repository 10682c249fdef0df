"""Where the time of a training step on a GPU goes: kernels, their launches, and the host's waits for the device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from benchmarks._training import synchronize

__all__ = ["Event", "Shares", "shares", "step_shares"]

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

"""Small tasks side by side on CPU threads, each with one thread inside, so that they never wait
for each other's: a product of 512-row tiles is too small to be shared out well by one operation.

Deviation from torch's own threading: workers live as long as the process, flush denormal numbers,
and record no gradients.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from contrastive_core.progress import OnFraction, ignore_fraction

__all__ = ["num_threads", "run_rounds", "thread_buffer", "without_pool"]

_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}
_local = threading.local()
_lock = threading.Lock()

Round = list[tuple[int, int]]


def num_threads(like: Tensor) -> int:
    """How many tasks run side by side for tensors like this one."""
    return torch.get_num_threads() if like.device.type == "cpu" else 1


def run_rounds(
    rounds: Sequence[Round],
    task: Callable[[int, int], None],
    like: Tensor,
    in_turn: bool = False,
    on_fraction: OnFraction = ignore_fraction,
) -> None:
    """Run `task(i, j)` for all pairs; those of one round side by side, the rounds in turn.

    Args:
        like: a tensor of the device that the tasks work on.
        in_turn: one after the other in this thread, their operations threaded inside.
        on_fraction: called with the share done after every round; what it raises stops the work.
    """
    alone = in_turn or getattr(_local, "alone", False)
    number = 1 if alone else num_threads(like)
    pool = _pool(number) if number > 1 else None
    for finished, pairs in enumerate(rounds, 1):
        if pool is None:
            _run(task, pairs)
        else:
            parts = [pairs[k::number] for k in range(min(number, len(pairs)))]
            for future in [pool.submit(_run, task, part) for part in parts]:
                future.result()
        on_fraction(finished / len(rounds))


@contextmanager
def without_pool() -> Iterator[None]:
    """In this thread everything is done in turn: starting a pool sets torch's number of threads for
    a moment, which nobody may do beside a training that is to come out bit for bit."""
    before = getattr(_local, "alone", False)
    _local.alone = True
    try:
        yield
    finally:
        _local.alone = before


def _run(task: Callable[[int, int], None], pairs: Round) -> None:
    with torch.no_grad():
        for i, j in pairs:
            task(i, j)


def thread_buffer(rows: int, cols: int, like: Tensor, slot: int = 0) -> Tensor:
    """This thread's buffer (rows, cols) number `slot`: what it holds lasts until the next call.

    A new tensor of that size is given back to the system when it is freed, and taking its pages
    anew costs more than the work on them.
    """
    key, size = (like.dtype, like.device, slot), rows * cols
    held: dict[tuple[Any, ...], Tensor] = _local.__dict__.setdefault("held", {})
    if key not in held or held[key].numel() < size:
        held[key] = torch.empty(size, dtype=like.dtype, device=like.device)
    return held[key][:size].view(rows, cols)


def _pool(number: int) -> ThreadPoolExecutor:
    """This process's workers; a fork starts its own."""
    key = (os.getpid(), number)
    with _lock:
        if key not in _pools:
            _pools[key] = _started(number)
        return _pools[key]


def _started(number: int) -> ThreadPoolExecutor:
    """A pool whose threads all run, each with one thread inside, the caller's number unchanged.

    Torch keeps one number for threads that have not asked yet; a worker's own setting changes it
    too. So all workers set theirs before the number is put back.
    """
    before, ready = torch.get_num_threads(), threading.Barrier(number + 1)
    pool = ThreadPoolExecutor(number, "tiles", initializer=_one_thread)
    try:
        waits = [pool.submit(ready.wait) for _ in range(number)]
        ready.wait()
        for wait in waits:
            wait.result()
    finally:
        torch.set_num_threads(before)
    return pool


def _one_thread() -> None:
    torch.set_num_threads(1)
    torch.get_num_threads()  # a thread takes the process's number when it first asks: now it is 1
    torch.set_flush_denormal(True)

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

__all__ = ["num_threads", "run_rounds", "thread_buffer", "watched"]

_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}
_local = threading.local()
_lock = threading.Lock()

Round = list[tuple[int, int]]


def num_threads(like: Tensor) -> int:
    """How many tasks run side by side for tensors like this one."""
    return torch.get_num_threads() if like.device.type == "cpu" else 1


@contextmanager
def watched(tell: Callable[[float], None]) -> Iterator[None]:
    """Inside, this thread's `run_rounds` tells the share done after every round; what `tell`
    raises stops the work."""
    before, _local.tell = getattr(_local, "tell", None), tell
    try:
        yield
    finally:
        _local.tell = before


def run_rounds(
    rounds: Sequence[Round], task: Callable[[int, int], None], like: Tensor, alone: bool = False
) -> None:
    """Run `task(i, j)` for all pairs; those of one round side by side, the rounds in turn.

    With one lane, or `alone` (one task, its operations threaded inside), in this thread.
    """
    number, tell = 1 if alone else num_threads(like), getattr(_local, "tell", None)
    with torch.no_grad():
        if number == 1:
            for done, one in enumerate(rounds, 1):
                for i, j in one:
                    task(i, j)
                if tell:
                    tell(done / len(rounds))
            return
    pool = _pool(number)

    def share(jobs: Round) -> None:
        with torch.no_grad():
            for i, j in jobs:
                task(i, j)

    for done, one in enumerate(rounds, 1):
        parts = [one[k::number] for k in range(min(number, len(one)))]
        waiting = [pool.submit(share, part) for part in parts]
        for part in waiting:
            part.result()
        if tell:
            tell(done / len(rounds))


def thread_buffer(rows: int, cols: int, like: Tensor, which: int = 0) -> Tensor:
    """This thread's buffer (rows, cols) number `which`: what it holds lasts until the next call.

    A new tensor of that size is given back to the system when it is freed, and taking its pages
    anew costs more than the work on them.
    """
    key, size = (like.dtype, like.device, which), rows * cols
    held: dict[tuple[Any, ...], Tensor] = _local.__dict__.setdefault("held", {})
    if key not in held or held[key].numel() < size:
        held[key] = torch.empty(size, dtype=like.dtype, device=like.device)
    return held[key][:size].view(rows, cols)


def _pool(number: int) -> ThreadPoolExecutor:
    """This process's workers; a fork starts its own."""
    key = (os.getpid(), number)
    with _lock:
        if key not in _pools:
            ready = threading.Barrier(number + 1)
            pool = ThreadPoolExecutor(number, "tiles", initializer=_start)
            started = [pool.submit(ready.wait) for _ in range(number)]
            ready.wait()
            for one in started:
                one.result()
            torch.set_num_threads(number)  # a worker's own setting is also the process's default
            _pools[key] = pool
        return _pools[key]


def _start() -> None:
    torch.set_num_threads(1)
    torch.get_num_threads()  # a thread takes the process's number when it first asks: now it is 1
    torch.set_flush_denormal(True)

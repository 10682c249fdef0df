"""What the benchmarks share: alternating medians after a warm-up, extra memory, one line of JSON.

Ratios are taken between runs that alternate, so that a busy machine slows both sides alike.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["alternate", "extra_memory", "last_line"]


def alternate(repeats: int = 7, **work: Callable[[], Any]) -> dict[str, float]:
    """Median seconds of each function over `repeats` rounds, all of them in turn in each round."""
    for one in work.values():
        one()
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, one in work.items():
            start = time.perf_counter()
            one()
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def extra_memory(make: Callable[..., Callable[[], Any]], *args: Any) -> float:
    """Megabytes that `make(*args)()` needs at its peak beyond what stood before, in a new process.

    The function runs once at a small size to load what it needs: `make(None)()`.
    """
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=_peak, args=(queue, make, args))
    child.start()
    found = queue.get()
    child.join()
    return found


def _peak(queue: Any, make: Callable[..., Callable[[], Any]], args: tuple[Any, ...]) -> None:
    make(None)()
    work, stop, most = make(*args), threading.Event(), [0.0]
    before = _resident()

    def watch() -> None:
        while not stop.is_set():
            most[0] = max(most[0], _resident())
            time.sleep(0.001)

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    stop.set()
    watcher.join()
    queue.put(max(0.0, most[0] - before))


def _resident() -> float:
    """Megabytes of this process in memory now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def last_line(
    name: str, value: float, unit: str, peer: str, peer_value: float, goal: float
) -> None:
    """Print the benchmark's one JSON object: `ratio` is how many times better than the peer."""
    ratio = peer_value / value
    found = {
        "name": name,
        "value": value,
        "unit": unit,
        "peer": peer,
        "peer_value": peer_value,
        "ratio": ratio,
        "goal": goal,
        "met": ratio >= goal,
    }
    print(json.dumps(found))

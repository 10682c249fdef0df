"""What the benchmarks share: alternating runs after a warm-up, extra memory, one line of JSON.

Both sides take turns in each round, so that a busy machine slows them alike, and a ratio is taken
within a round. A goal is met only if the ratio of every round meets it.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import _machine

__all__ = ["Seconds", "alternate", "extra_memory", "figure", "limit", "resident", "summary"]


class Seconds(float):
    """A median of seconds that remembers its rounds."""

    rounds: tuple[float, ...]

    def __new__(cls, rounds: Sequence[float]) -> Seconds:
        made = super().__new__(cls, statistics.median(rounds))
        made.rounds = tuple(rounds)
        return made


def alternate(repeats: int = 7, **work: Callable[[], Any]) -> dict[str, Seconds]:
    """Seconds of each function over `repeats` rounds, all of them in turn in each round."""
    for one in work.values():
        one()
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, one in work.items():
            start = time.perf_counter()
            one()
            taken[name].append(time.perf_counter() - start)
    return {name: Seconds(times) for name, times in taken.items()}


def figure(name: str, ours: Seconds, peer: str, theirs: Seconds, goal: float, unit: str = "ms") -> dict[str, Any]:
    """A line of the table: `ratio` is how many times as long the peer takes, per round.

    Args: goal: what the ratio of every round must reach. unit: "ms" or "s".
    """
    ratios = [b / a for a, b in zip(ours.rounds, theirs.rounds, strict=True)]
    scale = {"ms": 1e3, "s": 1.0}[unit]
    return {
        "name": name,
        "value": scale * ours,
        "unit": unit,
        "peer": peer,
        "peer_value": scale * theirs,
        "ratio": statistics.median(ratios),
        "range": [min(ratios), max(ratios)],
        "goal": goal,
        "met": min(ratios) >= goal,
    }


def limit(name: str, value: float, unit: str, most: float, worst: float | None = None) -> dict[str, Any]:
    """A line for what has a limit and no peer: `ratio` is the limit over the value.

    Args: worst: the largest value that was seen; it decides.
    """
    worst = value if worst is None else worst
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "peer": "limit",
        "peer_value": most,
        "ratio": most / value if value > 0 else None,
        "goal": 1.0,
        "met": worst <= most,
    }


def summary(name: str, lines: Sequence[dict[str, Any]]) -> None:
    """Print the machine, then the one JSON object of a benchmark of several lines: the first line
    stands for all."""
    print(_machine.about())
    met = all(line["met"] for line in lines)
    first = lines[0] if lines else {}
    print(json.dumps({**first, "name": name, "met": met, "lines": list(lines)}))


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
    before = resident()

    def watch() -> None:
        while not stop.is_set():
            most[0] = max(most[0], resident())
            time.sleep(0.001)

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    stop.set()
    watcher.join()
    queue.put(max(0.0, most[0] - before))


def resident() -> float:
    """Megabytes of this process in memory now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6

"""How fast each way of exact search is on this machine: measured once, and kept in `data_home()`.

Which of two libraries multiplies faster differs from one processor to another (benchmarks/knn.py on
two of them: 0.5 and 1.9 times), so it is tried and not assumed. The unit is products: a search of
n queries among m rows of width d takes n·m·d.
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

import torch
from torch import Tensor

from contrastive_core.errors import Damaged
from contrastive_core.ops.index_search import Search
from contrastive_core.paths import data_home
from contrastive_core.storage import records
from contrastive_core.storage.shapes import fields, mapping_of, number

__all__ = ["Way", "rates"]

QUERIES, ROWS = 2048, 16_384  # of the trial: large enough that the rate is that of larger searches
WIDTHS, KS = (64, 256, 1024), (32, 256)  # that are tried; others are taken for the next larger
TURNS = 2  # the best counts: a busy machine slows a single one
RECORD = fields({"rates": mapping_of(number(1))})


@dataclass(frozen=True)
class Way:
    """A way to search: `make(b, k)` gives the search among rows b (m, d), which is asked for
    `queries` at a time."""

    make: Callable[[Tensor, int], Search]
    queries: int


def rates(ways: Mapping[str, Way], width: int, k: int) -> dict[str, float]:
    """Products per second of each way at about this width and k, by this many threads."""
    width = next((w for w in WIDTHS if w >= width), WIDTHS[-1])
    k = next((size for size in KS if size >= k), KS[-1])
    about = "; ".join([_machine(), f"{torch.get_num_threads()} threads", f"{width} wide, {k} near"])
    key = hashlib.sha256(about.encode()).hexdigest()[:24]
    path = data_home() / "search_rates" / f"{key}.json"
    measured = _read(path)
    if not measured.keys() >= ways.keys():
        measured = _measure(ways, width, k)
        with contextlib.suppress(OSError):  # a full disk: measured again the next time
            records.write_json(path, {"about": about, "rates": measured})
    return {name: measured[name] for name in ways}


def _read(path: Path) -> dict[str, float]:
    try:
        return dict(records.read_object(path, RECORD)["rates"])
    except (OSError, Damaged):
        return {}


def _measure(ways: Mapping[str, Way], width: int, k: int) -> dict[str, float]:
    draw = torch.Generator().manual_seed(0)
    q, b = (torch.randn(n, width, generator=draw) / width**0.5 for n in (QUERIES, ROWS))
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(TURNS):
        for name, way in ways.items():
            start, search = time.perf_counter(), way.make(b, k)
            for part in q.split(way.queries):
                search(part, None)
            best[name] = min(best[name], time.perf_counter() - start)
    return {name: QUERIES * ROWS * width / seconds for name, seconds in best.items()}


@cache
def _machine() -> str:
    """The processor, and the versions of what multiplies."""
    versions = []
    for package in ("torch", "faiss-cpu"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions.append(f"{package} {metadata.version(package)}")
    return "; ".join([_processor(), *versions])


def _processor() -> str:
    with contextlib.suppress(OSError):  # Linux, where platform does not name it
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()

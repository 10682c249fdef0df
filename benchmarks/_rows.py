"""Made rows of 256 numbers, and measurements of time and peak memory in processes of their own.

100 classes: centers that lie in families, within each class a spectrum that falls as learned ones
do, so that classes overlap. The vectors are mapped from a file, each measurement is a process of
its own, on as many threads as there are cores, and its peak is all that it has in memory, pages of
that file and the libraries among it (VmHWM).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._machine import cores
from benchmarks._timing import Seconds, figure, limit, summary

__all__ = ["BLOCK", "WIDTH", "Figures", "Work", "main", "sets_of"]

ROWS = (10_000, 100_000, 1_000_000)
WIDTH, CLASSES, FAMILIES, BLOCK = 256, 100, 10, 50_000
LIMIT_MB = 8000.0  # at a million rows: every peak but the peers'
PEERS = ("scikit-learn", "umap-learn", "faiss")  # how the names of their works begin
Figures = dict[str, Any]
Work = Callable[[Path], Figures]


def write_rows(folder: Path, n: int) -> None:
    """`features.npy` (n, 256), `labels.npy` (n) and `other.npy`, another encoder's (n, 256)."""
    draw = np.random.default_rng(0)
    families = draw.normal(size=(FAMILIES, WIDTH))
    centers = families[np.arange(CLASSES) % FAMILIES] + 0.7 * draw.normal(size=(CLASSES, WIDTH))
    turn = np.linalg.qr(draw.normal(size=(WIDTH, WIDTH)))[0] * np.arange(1, WIDTH + 1) ** -0.5
    turn, centers = (v.astype(np.float32) for v in (6 * turn.T, 0.25 * centers))
    mix = draw.normal(size=(WIDTH, WIDTH)).astype(np.float32) / 16
    labels = draw.integers(0, CLASSES, n)
    shape = (n, WIDTH)
    features, other = (
        np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.float32, shape) for name in ("features", "other")
    )
    for i in range(0, n, BLOCK):
        of = labels[i : i + BLOCK]
        x = (centers[of] + draw.standard_normal((len(of), WIDTH), np.float32)) @ turn
        features[i : i + BLOCK] = x
        other[i : i + BLOCK] = np.maximum(x @ mix, 0)
    np.save(folder / "labels.npy", labels)


def sets_of(folder: Path, mark: int | None = None) -> tuple[Any, Any]:
    """Training rows and rows to judge, mapped; mark: the first to judge (default: after 4/5)."""
    from contrastive_core.spaces.embedding_set import EmbeddingSet

    features = np.load(folder / "features.npy", mmap_mode="r")
    labels = np.load(folder / "labels.npy").astype(np.int64)
    at = len(labels) * 4 // 5 if mark is None else mark
    train = EmbeddingSet(features[:at], labels[:at]) if at else None
    return train, EmbeddingSet(features[at:], labels[at:])


def peak_mb() -> float:
    """The most that this process has had in memory (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(x.split()[1]) * 1024 / 1e6 for x in lines if x.startswith("VmHWM"))


def child(work: Work, folder: Path) -> None:
    """One measurement, as a line of JSON."""
    import torch

    import contrastive_core.compare.evaluate  # noqa: F401  imports are not timed

    torch.set_num_threads(cores())
    start = time.perf_counter()
    figures = work(folder)
    print(json.dumps({"s": time.perf_counter() - start, "mb": peak_mb(), **figures}))


def measure(script: str, work: str, folder: Path) -> Figures | None:
    """One measurement in a process of its own; None, and why on stderr, where it failed."""
    command = [sys.executable, "-m", f"benchmarks.{script}", "--child", work]
    done = subprocess.run([*command, "--folder", str(folder)], capture_output=True, text=True)
    if done.returncode:
        print(f"{work} failed ({done.returncode}):\n{done.stderr[-2000:]}", file=sys.stderr)
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


def told(figures: Figures) -> str:
    """The figures themselves, in a line."""
    parts = [(k, v) for k, v in figures.items() if k not in ("s", "mb") and v is not None]
    return ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in parts)


def main(
    script: str,
    works: Mapping[str, Work],
    most: Mapping[str, int],
    longest: Mapping[str, float],
    about: str,
    prepare: Callable[[Path], None] = lambda _: None,
    beside: Mapping[str, tuple[str, str]] = {},
) -> None:
    """Measure every work at every number of rows, as the command line says.

    Args: most: rows up to which a work runs; longest: its goal in seconds at the most rows;
        prepare: what is done in a folder of rows before, without being measured; beside: by work of
        a peer, ours that does the same, and the peer's name.
    """
    options = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, nargs="+", default=ROWS)
    options.add_argument("--only", nargs="+", choices=works, default=list(works))
    options.add_argument("--child", choices=works, help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.child:
        child(works[args.child], args.folder)
        return
    before: dict[str, Figures] = {}
    lines, failed = [], []
    for n in args.rows:
        with tempfile.TemporaryDirectory() as folder:
            write_rows(Path(folder), n)
            prepare(Path(folder))
            here: dict[str, Figures] = {}
            for work in args.only:
                if n > most.get(work, n):
                    continue
                found = measure(script, work, Path(folder))
                told_of(n, work, found, before.get(work))
                if found is None:
                    failed.append(f"{work}, {n:,} rows")
                    continue
                before[work] = here[work] = found
                own, peer = beside.get(work, ("", ""))
                if own in here:
                    times = Seconds([here[own]["s"]]), peer, Seconds([found["s"]])
                    lines.append(figure(f"{own}, {n:,} rows", *times, 1.0, "s"))
                if n == ROWS[-1] and not work.startswith(PEERS):
                    lines.append(limit(f"{work}, {n:,} rows, peak", found["mb"], "MB", LIMIT_MB))
                    if work in longest:
                        lines.append(limit(f"{work}, {n:,} rows", found["s"], "s", longest[work]))
    if failed:
        raise SystemExit(f"failed: {'; '.join(failed)}")
    summary(script, lines)


def told_of(n: int, work: str, found: Figures | None, before: Figures | None) -> None:
    """Print a measurement: its time, how many times that at fewer rows it is, and its peak."""
    start = f"{n:>9,}  {work:<28}"
    if found is None:
        print(f"{start}  failed", flush=True)
        return
    growth = f"{found['s'] / before['s']:5.1f}×" if before else " " * 6
    peak = f"{found['mb']:8,.0f} MB"
    print(f"{start}{found['s']:8.1f} s {growth}{peak}  {told(found)}", flush=True)

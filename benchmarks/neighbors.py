"""The 200 nearest of 10,000 queries among up to a million rows of 256 numbers, beside faiss's flat
(exact) search: seconds, of the clock and of all processors, peak memory of the process, and the
share of true neighbors.

    python -m benchmarks.neighbors [--rows 10000 100000 1000000] [--threads CORES]

Rows lie around 100 centers, in 16 directions of each and a little in all. Each search runs in a
process of its own that maps the rows from a file, as an embedding is. At a million rows faiss
searches for 1,000 of the queries, and ten times its time is told. Recall is of those 1,000.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._machine import cores
from benchmarks._timing import Seconds, figure, limit, summary

WIDTH, CLASSES, RANK, NOISE, K = 256, 100, 16, 0.5, 200
QUERIES, TRUE = 10_000, 1_000
LARGE = 1_000_000


def some(n: int, seed: int) -> np.ndarray:
    """Rows (n, 256) float32 with structure."""
    about, draw = np.random.default_rng(0), np.random.default_rng(seed)
    centers = about.normal(size=(CLASSES, WIDTH)).astype(np.float32)
    spans = about.normal(size=(CLASSES, RANK, WIDTH)).astype(np.float32) / RANK**0.5
    labels = draw.integers(0, CLASSES, n)
    x = NOISE * draw.standard_normal((n, WIDTH), np.float32)
    for c in range(CLASSES):
        at = np.flatnonzero(labels == c)
        x[at] += centers[c] + draw.standard_normal((len(at), RANK), np.float32) @ spans[c]
    return x


def one_side(side: str, folder: Path, threads: int) -> dict[str, Any]:
    """Seconds and peak megabytes of one search; its neighbors go into the folder."""
    import torch

    from contrastive_core.base.device import memory_bytes
    from contrastive_core.spaces.neighbor_graphs import Approximation, nearest, unit_rows

    torch.set_num_threads(threads)
    q, b = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("queries", "rows"))
    recall = None
    nearest(some(2000, 3), None, K, device="cpu")  # what is loaded at the first call
    start, worked = time.perf_counter(), time.process_time()
    if side == "ours":
        found = nearest(q, b, K, device="cpu", approximate=Approximation())
        index, recall = found.index, found.recall
    else:
        import faiss

        faiss.omp_set_num_threads(threads)
        flat = faiss.IndexFlatIP(WIDTH)
        flat.add(unit_rows(b).numpy())
        index = flat.search(unit_rows(q[: TRUE if len(b) >= LARGE else None]).numpy(), K)[1]
    seconds, work = time.perf_counter() - start, time.process_time() - worked
    np.save(folder / f"{side}.npy", index[:TRUE])
    megabytes = memory_bytes(torch.device("cpu")) / 1e6
    return {"seconds": seconds, "work": work, "megabytes": megabytes, "recall": recall}


def measured(n: int, threads: int, rounds: int) -> dict[str, Any]:
    """Both sides among n rows, in turn: seconds of each round, megabytes, recall."""
    sides: dict[str, list[dict[str, Any]]] = {"ours": [], "faiss": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "queries.npy", some(QUERIES, 1))
        np.save(folder / "rows.npy", some(n, 2))
        for _ in range(rounds):
            for side, records in sides.items():
                command = [sys.executable, "-m", "benchmarks.neighbors", "--side", side]
                command += ["--folder", name, "--threads", str(threads)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                records.append(json.loads(done.stdout.splitlines()[-1]))
        found, truth = (np.load(folder / f"{side}.npy") for side in sides)
    hits = [len(np.intersect1d(a, b)) for a, b in zip(found, truth, strict=True)]
    scale = QUERIES / TRUE if n >= LARGE else 1
    return {
        "ours": Seconds([r["seconds"] for r in sides["ours"]]),
        "faiss": Seconds([scale * r["seconds"] for r in sides["faiss"]]),
        "work": [sides["ours"][-1]["work"], scale * sides["faiss"][-1]["work"]],
        "megabytes": [max(r["megabytes"] for r in records) for records in sides.values()],
        "told": sides["ours"][-1]["recall"],
        "recall": sum(hits) / truth.size,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, LARGE])
    options.add_argument("--threads", type=int, default=cores())
    options.add_argument("--side", choices=["ours", "faiss"], help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.side:
        print(json.dumps(one_side(args.side, args.folder, args.threads)))
        return
    lines = []
    print(f"{args.threads} threads; {K} neighbors of {QUERIES:,} queries, {WIDTH} wide")
    for n in args.rows:
        got = measured(n, args.threads, rounds=1 if n >= LARGE else 3)
        (ours, theirs), work = got["megabytes"], got["work"]
        told = "exact" if got["told"] is None else f"lists, recall told {got['told']:.4f}"
        print(
            f"{n:>9,} rows: ours {got['ours']:.1f} s ({work[0]:.1f} of processors), {ours:,.0f} MB,"
            f" recall {got['recall']:.4f} ({told}); "
            f"faiss flat {got['faiss']:.1f} s ({work[1]:.1f}), {theirs:,.0f} MB"
        )
        name = f"{K} neighbors, {QUERIES:,} × {n:,} × {WIDTH}"
        lines.append(figure(name, got["ours"], "faiss flat", got["faiss"], 1 / 1.2, "s"))
        lines.append(limit(f"{name}, neighbors missed", 100 * (1 - got["recall"]), "%", 1.0))
        if n >= LARGE:
            lines.append(limit(name, float(got["ours"]), "s", 60.0))
            lines.append(limit(f"{name}, peak memory", ours, "MB", 8000.0))
    summary("neighbors", lines)


if __name__ == "__main__":
    main()

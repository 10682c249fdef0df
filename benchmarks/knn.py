"""Exact weighted kNN, beside faiss, lightly and the bare matrix product.

    python -m benchmarks.knn [--queries 10000] [--rows 50000] [--threads CORES] [--repeats 7]

128 columns, k = 200, ten classes that overlap. The neighbors are compared with faiss's first.
faiss finds the neighbors only, so ours is timed without and with the vote.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks._machine import cores
from benchmarks._timing import alternate, extra_memory, figure, limit, summary
from contrastive_core.metrics.knn import vote
from contrastive_core.ops.neighbors import nearest

WIDTH, K, CLASSES, TEMPERATURE = 128, 200, 10, 0.07


def some(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit rows (n, 128) float32 around ten centers, and their classes (n)."""
    draw = np.random.default_rng(seed)
    centers = np.random.default_rng(0).normal(size=(CLASSES, WIDTH))
    labels = draw.integers(0, CLASSES, n)
    x = centers[labels] + 2 * draw.normal(size=(n, WIDTH))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32), labels


def works(queries: int, rows: int) -> dict[str, Callable[[], Any]]:
    """What is timed, on the same arrays."""
    import faiss
    from lightly.utils.benchmarking import knn_predict

    (q, _), (b, labels) = some(queries, 1), some(rows, 2)
    tq, tb, ty = torch.from_numpy(q), torch.from_numpy(b), torch.from_numpy(labels)

    def with_faiss() -> np.ndarray:
        index = faiss.IndexFlatIP(WIDTH)
        index.add(b)
        return np.asarray(index.search(q, K)[1])

    def by_lightly() -> list[torch.Tensor]:
        parts = tq.split(1000)
        return [knn_predict(p, tb.T, ty, CLASSES, K, TEMPERATURE) for p in parts]

    return {
        "neighbors": lambda: nearest(q, b, K),
        "with vote": lambda: vote(nearest(q, b, K), labels, TEMPERATURE),
        "faiss": with_faiss,
        "lightly": by_lightly,
        "bare product": lambda: [p @ tb.T for p in tq.split(1000)],
    }


def ours(size: tuple[int, int] | None) -> Callable[[], Any]:
    """The search alone, for the watch on memory."""
    queries, rows = size or (300, 300)
    q, b = some(queries, 1)[0], some(rows, 2)[0]
    return lambda: nearest(q, b, K)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--queries", type=int, default=10_000)
    options.add_argument("--rows", type=int, default=50_000)
    options.add_argument("--threads", type=int, default=cores())
    options.add_argument("--repeats", type=int, default=7)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    import faiss

    faiss.omp_set_num_threads(args.threads)
    work = works(args.queries, args.rows)
    mine, theirs = work["neighbors"]().index, work["faiss"]()
    pairs = zip(mine, theirs, strict=True)
    same = float(np.mean([len(np.intersect1d(a, b)) / K for a, b in pairs]))
    assert same > 0.999, f"neighbors differ from faiss: {same:.4f} in common"
    found = alternate(args.repeats, **work)
    memory = extra_memory(ours, (args.queries, args.rows))
    for name, seconds in found.items():
        print(f"{name:<14}{seconds:8.2f} s  {seconds / found['bare product']:5.1f}× the product")
    print(f"neighbors in common with faiss {same:.5f}; ours needs {memory:.0f} MB")
    mine, name = found["neighbors"], f"{K} neighbors, {args.queries:,} × {args.rows:,}"
    lines = [
        figure(name, mine, "faiss", found["faiss"], 1 / 1.1, "s"),
        figure(f"{name}, with vote", found["with vote"], "lightly", found["lightly"], 1.0, "s"),
        limit(f"{name}, extra memory", memory, "MB", 150.0),
    ]
    summary("knn", lines)


if __name__ == "__main__":
    main()

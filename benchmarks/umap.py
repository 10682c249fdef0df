"""The time to a UMAP map from the exact graph, beside umap-learn as it comes; first call and warm.

    python -m benchmarks.umap [--rows 10000] [--threads CORES]

Each side runs in a process of its own, since the first call compiles. Ours is warmed in a worker
by the app; "first" is what a user waits for after that, "cold" is without it. The maps are judged
by trustworthiness and continuity at k = 15.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import numpy as np

from benchmarks._machine import cores
from benchmarks._timing import Seconds, figure, limit, summary

WIDTH, GROUPS = 128, 10


def some(n: int) -> np.ndarray:
    """Rows (n, 128) float32 around ten centers."""
    draw = np.random.default_rng(0)
    centers = 2 * draw.normal(size=(GROUPS, WIDTH))
    x = centers[draw.integers(0, GROUPS, n)] + draw.normal(size=(n, WIDTH))
    return x.astype(np.float32)


def one_side(side: str, n: int, threads: int) -> dict[str, float]:
    """Seconds of PCA, of the first map and of the next, and how good the last one is."""
    import torch

    torch.set_num_threads(threads)
    from contrastive_core.compare import projection
    from contrastive_core.compare.projection import judge
    from contrastive_core.spaces.space import pca

    x, taken = some(n), {}
    start = time.perf_counter()
    pca(x)
    taken["pca"] = time.perf_counter() - start
    if side == "ours":
        start = time.perf_counter()
        projection.umap(np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32), neighbors=5)
        taken["warming"] = time.perf_counter() - start
    for call in ("first", "warm"):
        start = time.perf_counter()
        if side == "ours":
            xy = projection.umap(x, seed=0)
        else:
            from umap import UMAP

            xy = UMAP(metric="cosine", random_state=0, n_jobs=1).fit_transform(x)
        taken[call] = time.perf_counter() - start
    return {**taken, **judge(x, np.asarray(xy, np.float32))}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=10_000)
    options.add_argument("--threads", type=int, default=cores())
    options.add_argument("--side", choices=["ours", "umap-learn"], help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.side:
        print(json.dumps(one_side(args.side, args.rows, args.threads)))
        return
    found = {}
    for side in ("umap-learn", "ours"):
        argv = ["--side", side, "--rows", str(args.rows), "--threads", str(args.threads)]
        command = [sys.executable, "-m", "benchmarks.umap", *argv]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[side] = json.loads(done.stdout.splitlines()[-1])
        print(side, {k: round(v, 3) for k, v in found[side].items()})
    mine, peer = found["ours"], found["umap-learn"]
    print(f"warm: {peer['warm'] / mine['warm']:.1f}×; PCA after {mine['pca']:.2f} s")
    cold = mine["warming"] + mine["first"]
    print(f"cold, compiling included: {cold:.1f} s, {peer['first'] / cold:.1f}×")
    once = {k: (Seconds([mine[k]]), Seconds([peer[k]])) for k in ("first", "warm")}
    about = f"UMAP, {args.rows:,} × {WIDTH}"
    worse = peer["trustworthiness"] - mine["trustworthiness"]
    lines = [
        figure(f"{about}, first map", once["first"][0], "umap-learn", once["first"][1], 3.0, "s"),
        figure(f"{about}, warm", once["warm"][0], "umap-learn", once["warm"][1], 1.5, "s"),
        limit(f"{about}, trustworthiness lost", worse, "", 0.005),
        limit(f"PCA of {args.rows:,} × {WIDTH}", mine["pca"], "s", 0.3),
    ]
    summary("umap", lines)


if __name__ == "__main__":
    main()

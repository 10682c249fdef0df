"""What differs between two spaces: is a removed factor named, and is nothing named between two seeds?

    python -m benchmarks.differences [--only planted seeds speed]

- planted: each factor with at least 5 % of a shipped encoder's variance on `shapes` is erased from its test images
  (least squares erasure, arXiv 2306.03819); it is found if it is the main content of one of the first three groups,
  of those together in the whole space (the goal is 90 %);
- seeds: two trainings on digits that differ by their seed alone, 20 pairs of seven runs, of h and z each, without
  another seed to raise the bar (the goal is no group);
- speed: seconds and memory of 10,000 × 128 (60 s) and 100,000 × 256 (5 min, 3 GB) in a process of two threads.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np

from benchmarks._training import trained
from contrastive_core import runs
from contrastive_core.compare.differences import find_differences
from contrastive_core.compare.embed import embed_run
from contrastive_core.metrics.factors import _regression_target
from contrastive_core.spaces.embedding_set import EmbeddingSet

SHARE, FIRST, FOUND, PAIRS, SEEDS = 0.05, 3, 0.9, 20, 7
LIMITS = {(10_000, 128): 60, (100_000, 256): 300}  # seconds
GIGABYTES = 3


def erased(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The rows x (n, d) changed as little as possible until no linear model reads z (n, t) off them."""
    x, z = x.astype(np.float64), z - z.mean(0)
    centered = x - x.mean(0)
    s, v = np.linalg.eigh(centered.T @ centered / len(x))
    s, v = s[s > 1e-8 * s[-1]], v[:, s > 1e-8 * s[-1]]
    whiten, back = v / np.sqrt(s) @ v.T, v * np.sqrt(s) @ v.T
    u, singular, _ = np.linalg.svd(whiten @ centered.T @ z, full_matrices=False)
    u = u[:, singular > 1e-8 * singular[0]]
    return (x - centered @ whiten @ u @ u.T @ back).astype(np.float32)


def variance_share(x: np.ndarray, z: np.ndarray) -> float:
    """The share of the variance of centered unit rows that a linear model of z explains."""
    rows, z = x - x.mean(0), z - z.mean(0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return float(np.square(z @ np.linalg.lstsq(z, rows)[0]).sum() / np.square(rows).sum())


def planted() -> None:
    found = []
    for run in runs.list_runs():
        if not run.shipped or run.config.get("dataset") != "shapes":
            continue
        rows = embed_run(run, "test", "h", "cpu")
        assert rows.labels is not None
        for factor, values in {"class": rows.labels, **rows.columns}.items():
            target = _regression_target(factor, values, values)
            assert target is not None
            if variance_share(rows.features, target[0]) < SHARE:
                continue
            result = find_differences([rows, replace(rows, features=erased(rows.features, target[0]))])
            named = [group.facts[0].factor if group.facts else "–" for group in result.groups if group.near == 0]
            found.append(factor in named[:FIRST])
            print(f"  {run.name} without {factor}: {', '.join(named[:FIRST]) or 'nothing stands out'}")
    share = float(np.mean(found))
    print(f"named {sum(found)} of {len(found)} removed factors ({share:.0%})  {'ok' if share >= FOUND else 'MISSED'}")


def seeds() -> None:
    settings = ("--dataset", "digits", "--epochs", "20")
    own = [trained(f"differences-s{seed}", *settings, "--seed", str(seed)) for seed in range(SEEDS)]
    for layer in ("h", "z"):
        rows = [embed_run(run, "test", layer, "cpu") for run in own]
        pairs = list(itertools.combinations(rows, 2))[:PAIRS]
        claimed = sum(bool(find_differences(pair).groups) for pair in pairs)
        print(f"{layer}: groups named in {claimed} of {len(pairs)} pairs of seeds  {'MISSED' if claimed else 'ok'}")


def one_size(n: int, width: int) -> None:
    draw = np.random.default_rng(0)
    content, color = draw.standard_normal((n, 16), np.float32), draw.integers(0, 8, n)
    mixed = [content @ draw.standard_normal((16, width), np.float32) for _ in range(2)]
    mixed[0] += 3 * draw.standard_normal((8, width), np.float32)[color]
    began = time.perf_counter()
    found = find_differences([EmbeddingSet(x, color) for x in mixed])
    seconds, memory = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    is_met = seconds <= LIMITS[n, width] and memory <= GIGABYTES
    print(
        f"{n:,} × {width}: {seconds:.1f} s, {memory:.2f} GB, {len(found.groups)} groups  {'ok' if is_met else 'MISSED'}"
    )


def speed() -> None:
    for n, width in LIMITS:
        command = [sys.executable, "-m", "benchmarks.differences", "--size", str(n), str(width)]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "2"})


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"planted": planted, "seeds": seeds, "speed": speed}
    options.add_argument("--only", nargs="+", choices=parts, default=list(parts))
    options.add_argument("--size", nargs=2, type=int, help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.size:
        one_size(*args.size)
    else:
        for part in args.only:
            parts[part]()

"""The exact loss of every sample of a whole set, beside the bare matrix products.

    python -m benchmarks.dataset_losses [--samples 50000] [--threads CORES] [--repeats 3]

Two views of each sample, 128 columns, NT-Xent at τ = 0.2, progress told: 100,000 × 100,000 pairs,
none of which is kept. The bare products give all the scores once, in blocks of rows, and do nothing
with them. `half` is what symmetry leaves of them: the blocks on and right of the diagonal. Values
are checked on some rows against the formula in float64.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks._machine import cores
from benchmarks._timing import alternate, extra_memory, figure, limit, summary
from contrastive_core.samples.losses import LossInputs, per_sample
from contrastive_core.spaces.embedding_set import EmbeddingSet

WIDTH, TEMPERATURE, BLOCK, CHECKED = 128, 0.2, 1024, 32
KNOBS = {"temperature": TEMPERATURE}


def some(samples: int) -> np.ndarray:
    """Unit rows (n, 2, 128) float32: two views near each other, samples around ten centers."""
    draw = np.random.default_rng(0)
    centers = draw.normal(size=(10, 1, WIDTH))
    own = centers[draw.integers(0, 10, samples)] + 2 * draw.normal(size=(samples, 1, WIDTH))
    z = own + 0.5 * draw.normal(size=(samples, 2, WIDTH))
    return (z / np.linalg.norm(z, axis=2, keepdims=True)).astype(np.float32)


def exact(samples: int | None) -> Callable[[], Any]:
    views = some(samples or 2000)
    rows = EmbeddingSet(np.ascontiguousarray(views[:, 0]))
    return lambda: per_sample(LossInputs(rows, "nt_xent", KNOBS, views))


def bare(samples: int, half: bool) -> Callable[[], Any]:
    """All products of rows, in one buffer."""
    z = torch.from_numpy(some(samples)).flatten(0, 1)
    out = torch.empty(BLOCK, len(z))

    def work() -> None:
        for start in range(0, len(z), BLOCK):
            a, c = z[start : start + BLOCK], z[start if half else 0 :]
            torch.mm(a, c.mT, out=out.view(-1)[: len(a) * len(c)].view(len(a), len(c)))

    return work


def furthest(value: np.ndarray, samples: int) -> float:
    """Largest relative error among some samples, against the formula in float64."""
    z = some(samples).astype(np.float64)
    z /= np.linalg.norm(z, axis=2, keepdims=True)
    flat, worst = z.reshape(-1, WIDTH), 0.0
    for i in np.linspace(0, samples - 1, CHECKED).astype(int):
        of_views = []
        for v in (0, 1):
            logits = flat @ z[i, v] / TEMPERATURE
            logits[2 * i + v] = -np.inf
            of_views.append(np.logaddexp.reduce(logits) - logits[2 * i + 1 - v])
        worst = max(worst, abs(float(np.mean(of_views)) / float(value[i]) - 1))
    return worst


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--samples", type=int, default=50_000)
    options.add_argument("--threads", type=int, default=cores())
    options.add_argument("--repeats", type=int, default=3)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    value, _ = exact(args.samples)()
    error = furthest(value, args.samples)
    assert error < 1e-5, f"a loss is off by {error:.1e}"
    found = alternate(
        args.repeats, exact=exact(args.samples), products=bare(args.samples, False), half=bare(args.samples, True)
    )
    memory = extra_memory(exact, args.samples)
    for name, seconds in found.items():
        print(f"{name:<10}{seconds:8.2f} s  {seconds / found['products']:5.2f}× the products")
    print(f"largest relative error {error:.1e}; {memory:.0f} MB beyond the rows (at most 100)")
    name = f"exact losses, {args.samples:,} × 2 views"
    lines = [
        figure(name, found["exact"], "bare products", found["products"], 1 / 1.5, "s"),
        limit(f"{name}, extra memory", memory, "MB", 100.0),
    ]
    summary("dataset_losses", lines)


if __name__ == "__main__":
    main()

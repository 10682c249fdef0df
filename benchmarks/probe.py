"""The linear probe's fit to the same objective as scikit-learn's L-BFGS.

    python -m benchmarks.probe [--rows 50000] [--width 512] [--threads CORES] [--repeats 7]

Two sets of features: independent columns, and columns that go together as learned ones do (their
deviations span four powers of ten before each is brought to deviation 1, mixed by a rotation).
float32 on both sides, C = 1. Timed to the first fit whose objective is at most 1e-5 (relative)
above the lowest known: both sides use the loosest tolerance that reaches it, or the peer the one that comes closest.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks._machine import cores
from benchmarks._timing import Seconds, alternate, figure, summary
from contrastive_core.metrics.linear_probe import Logistic

CLASSES, C, CLOSE = 10, 1.0, 1e-5
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def some(n: int, d: int, learned: bool) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, d) float32, of mean 0 and deviation 1 per column, and noisy classes (n)."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(n, d))
    logits = x[:, : min(d, 64)] @ draw.normal(size=(min(d, 64), CLASSES)) / 4
    if learned:
        turn, _ = np.linalg.qr(draw.normal(size=(d, d)))
        x = (x * np.logspace(0, -4, d)) @ turn
    labels = (logits + draw.gumbel(size=logits.shape)).argmax(1)
    return ((x - x.mean(0)) / x.std(0)).astype(np.float32), labels


def objective(weight: torch.Tensor, x: torch.Tensor, target: torch.Tensor, c: float) -> torch.Tensor:
    """The mean cross-entropy + ‖W‖²/(2Cn): weight (d+1, classes), bias last."""
    penalty = weight[:-1].square().sum() / (2 * c * len(x))
    return torch.nn.functional.cross_entropy(x @ weight[:-1] + weight[-1], target) + penalty


def fits(x: np.ndarray, y: np.ndarray) -> dict[str, Callable[[float], torch.Tensor]]:
    """Each side: weights (d+1, classes) at a tolerance."""
    from sklearn.linear_model import LogisticRegression

    tx, ty = torch.from_numpy(x), torch.from_numpy(y)

    def peer(tolerance: float) -> torch.Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LogisticRegression(C=C, tol=tolerance, max_iter=2000).fit(x, y)
        return torch.from_numpy(np.vstack([model.coef_.T, model.intercept_]))

    return {"ours": lambda t: Logistic(tx, ty, CLASSES).fit(C, None, t), "scikit-learn": peer}


def loosest(fit: Callable[[float], torch.Tensor], excess: Callable[[Any], float]) -> tuple[float, float]:
    """The largest tolerance whose objective comes close enough to the lowest, and how far above it it is (relative).
    If none does, the tolerance that comes closest: in float32 the peer stops where no step seems to help."""
    tried = []
    for tolerance in TOLERANCES:
        tried.append((excess(fit(tolerance)), tolerance))
        if tried[-1][0] <= CLOSE:
            break
    above, tolerance = min(tried)
    return tolerance, above


def measure(n: int, d: int, learned: bool, repeats: int) -> dict[str, Seconds]:
    """Median seconds of both sides to the same objective."""
    x, y = some(n, d, learned)
    sides, exact = fits(x, y), torch.from_numpy(x).double()

    def cost(weight: torch.Tensor) -> float:
        return float(objective(weight.double(), exact, torch.from_numpy(y), C))

    best = min(cost(sides["ours"](1e-7)), cost(sides["scikit-learn"](1e-5)))
    at = {k: loosest(fit, lambda weight: cost(weight) / best - 1) for k, fit in sides.items()}
    reached = ", ".join(f"{k} {above:.0e} above it at tolerance {t:.0e}" for k, (t, above) in at.items())
    print(f"lowest objective {best:.7f}; {reached}")
    assert at["ours"][1] <= CLOSE, "ours stops too far above the lowest objective"
    return alternate(repeats, **{k: lambda k=k: sides[k](at[k][0]) for k in sides})  # type: ignore[misc]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=50_000)
    options.add_argument("--width", type=int, default=512)
    options.add_argument("--threads", type=int, default=cores())
    options.add_argument("--repeats", type=int, default=7)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    lines = []
    for learned in (False, True):
        found = measure(args.rows, args.width, learned, args.repeats)
        a, b = found["ours"], found["scikit-learn"]
        kind = "columns that go together" if learned else "independent columns"
        print(f"{kind}: {a:.2f} s, scikit-learn {b:.2f} s: {b / a:.1f}×")
        lines.append(figure(f"linear probe, {kind}", a, "scikit-learn", b, 6.0, "s"))
    summary("probe", lines)


if __name__ == "__main__":
    main()

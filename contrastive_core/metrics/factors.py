"""Factor readout: what else than its class can be read off a sample's features?

For data whose factors are known (`shapes`: hue, position, texture, ...) a ridge regression is
fitted on training rows and judged on test rows. A number gives R²; a factor of few whole values
gives (accuracy − share of the commonest) / (1 − that share); a hue is read as a point on a circle.
1 is read off exactly, 0 is chance. The penalty is chosen on a held-out fifth of the training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.errors import CannotScore
from contrastive_core.metrics._base import Metric, MetricResult
from contrastive_core.metrics.linear_probe import standardize
from contrastive_core.ops.neighbors import pick_device

__all__ = ["Factors", "ridge"]

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)  # per training row, columns standardized
FEW = 10  # a factor of at most this many whole values is a kind, not a size


@dataclass(frozen=True)
class Factors(Metric):
    title = "Factor readout"
    reading = (
        "How well each known factor can be read off linearly (1 exactly, 0 not at all): what is "
        "near 0 here and high for raw pixels, the augmentations taught the encoder to ignore."
    )
    needs_train = True
    unit_rows = False
    higher_is_better = None
    spreads = False

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        assert train is not None
        names = [
            k for k, v in test.columns.items() if v.dtype.kind in "fiub" and k in train.columns
        ]
        if not names:
            raise CannotScore("Factor readout needs data whose factors are known, such as shapes")
        device = pick_device(graphs.device)
        x, x_test = (v.double() for v in standardize(train.features, test.features, device))
        targets = {
            k: v for k in names if (v := _regression_target(k, train.columns[k], test.columns[k]))
        }
        guesses = ridge(x, {k: v[0] for k, v in targets.items()}, x_test)
        skill = {k: _skill(guesses[k], *targets[k][1:]) for k in targets}
        defined = {k: v for k, v in skill.items() if v is not None}
        if not defined:
            raise CannotScore("Factor readout needs a factor that varies, and there is none")
        value = float(np.mean([max(0.0, v) for v in defined.values()]))
        return MetricResult(value, extras={**defined, "n": len(test)})


def _regression_target(
    name: str, train_values: np.ndarray, truth: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None] | None:
    """Targets (n, t) to learn, what is to be met (m, …), and the kinds; None if nothing varies."""
    kinds = np.unique(train_values)
    if len(kinds) < 2 or not (np.isfinite(train_values).all() and np.isfinite(truth).all()):
        return None
    if len(kinds) <= FEW and (kinds == np.round(kinds)).all():
        return (train_values[:, None] == kinds).astype(np.float64), truth, kinds
    return _targets(name, train_values), _targets(name, truth), None


def _skill(guess: np.ndarray, truth: np.ndarray, kinds: np.ndarray | None) -> float | None:
    """1 for every kind or number right, 0 for what a constant answer reaches."""
    if kinds is not None:
        common = max(float((truth == k).mean()) for k in kinds)
        right = float((kinds[guess.argmax(1)] == truth).mean())
        return (right - common) / (1 - common) if common < 1 else None
    all_of_it = np.square(truth - truth.mean(0)).sum()
    return float(1 - np.square(truth - guess).sum() / all_of_it) if all_of_it > 0 else None


def _targets(name: str, values: np.ndarray) -> np.ndarray:
    """What a factor is regressed on, (n, 1), or (n, 2) on a circle for a hue in 0..1."""
    if name.endswith("hue"):
        turn = 2 * np.pi * values.astype(np.float64)
        return np.stack([np.cos(turn), np.sin(turn)], 1)
    return values.astype(np.float64)[:, None]


def ridge(
    x: torch.Tensor, targets: dict[str, np.ndarray], x_test: torch.Tensor
) -> dict[str, np.ndarray]:
    """Ridge predictions (m, t) of each target (n, t) from centerd features (n, d).

    All are solved together, each with the penalty that serves it best on a held-out fifth.
    """
    if not targets:
        return {}
    ends = np.cumsum([0, *(v.shape[1] for v in targets.values())])
    columns_of = {k: slice(a, b) for k, a, b in zip(targets, ends[:-1], ends[1:], strict=True)}
    y = torch.from_numpy(np.hstack([*targets.values()])).to(x)
    out = torch.arange(len(x), device=x.device) % 5 == 4
    tried = _fits(x[~out], y[~out], x[out], PENALTIES)
    away = {p: (y[out] - guess).square().sum(0) for p, guess in tried.items()}  # (t) each
    best = {k: min(PENALTIES, key=lambda p: float(away[p][c].sum())) for k, c in columns_of.items()}
    fits = _fits(x, y, x_test, sorted(set(best.values())))
    return {k: fits[best[k]][:, c].cpu().numpy() for k, c in columns_of.items()}


def _fits(
    x: torch.Tensor, y: torch.Tensor, new: torch.Tensor, penalties: Sequence[float]
) -> dict[float, torch.Tensor]:
    """Closed form with a free bias, for each penalty: over d×d products, or n×n where d > n."""
    mean, middle = x.mean(0), y.mean(0)
    x, new, y = x - mean, new - mean, y - middle
    wide = x.shape[1] > len(x)
    gram, right = (x @ x.mT, y) if wide else (x.mT @ x, x.mT @ y)
    new_design = new @ x.mT if wide else new
    fits = {}
    for penalty in penalties:
        held = gram.clone()
        held.diagonal().add_(penalty * len(x))
        fits[penalty] = (
            new_design @ torch.cholesky_solve(right, torch.linalg.cholesky(held)) + middle
        )
    return fits

"""Factor readout: what else than its class can be read off a sample's features?

For data whose factors are known (`shapes`: hue, position, texture, ...) a ridge regression is
fitted on training rows and judged on test rows. A number gives R²; a factor of few whole values
gives (accuracy − share of the commonest) / (1 − that share); a hue is read as a point on a circle.
1 is read off exactly, 0 is chance. The penalty is chosen on a held-out fifth of the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from contrastive_core.embedding_set import EmbeddingSet
from contrastive_core.metrics._base import CannotScore, Metric, MetricResult
from contrastive_core.metrics.linear_probe import standardise
from contrastive_core.neighbours import Graphs, pick_device

__all__ = ["Factors", "ridge"]

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)  # per training row, columns standardised
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
        x, x_test = (v.double() for v in standardise(train.features, test.features, device))
        skill = {k: self._one(k, x, x_test, train.columns[k], test.columns[k]) for k in names}
        found = {k: v for k, v in skill.items() if v is not None}
        if not found:
            raise CannotScore("Factor readout needs a factor that varies, and there is none")
        value = float(np.mean([max(0.0, v) for v in found.values()]))
        return MetricResult(value, extras={**found, "n": len(test)})

    @staticmethod
    def _one(
        name: str, x: torch.Tensor, x_test: torch.Tensor, known: np.ndarray, truth: np.ndarray
    ) -> float | None:
        """The skill on one factor; None if it does not vary."""
        kinds = np.unique(known)
        if len(kinds) < 2 or not (np.isfinite(known).all() and np.isfinite(truth).all()):
            return None
        if len(kinds) <= FEW and (kinds == np.round(kinds)).all():
            guess = ridge(x, (known[:, None] == kinds).astype(np.float64), x_test)
            common = max(float((truth == k).mean()) for k in kinds)
            right = float((kinds[guess.argmax(1)] == truth).mean())
            return (right - common) / (1 - common) if common < 1 else None
        y, y_test = _targets(name, known), _targets(name, truth)
        left = np.square(y_test - ridge(x, y, x_test)).sum()
        all_of_it = np.square(y_test - y_test.mean(0)).sum()
        return float(1 - left / all_of_it) if all_of_it > 0 else None


def _targets(name: str, values: np.ndarray) -> np.ndarray:
    """What a factor is regressed on, (n, 1), or (n, 2) on a circle for a hue in 0..1."""
    if name.endswith("hue"):
        turn = 2 * np.pi * values.astype(np.float64)
        return np.stack([np.cos(turn), np.sin(turn)], 1)
    return values.astype(np.float64)[:, None]


def ridge(x: torch.Tensor, y: np.ndarray, x_test: torch.Tensor) -> np.ndarray:
    """Ridge predictions (m, t) from centred features (n, d) and targets (n, t)."""
    target = torch.from_numpy(y).to(x)
    out = torch.arange(len(x), device=x.device) % 5 == 4  # a fifth, held out
    away = {p: (target[out] - _fit(x[~out], target[~out], x[out], p)).square().sum()
            for p in PENALTIES}  # fmt: skip
    best = min(away, key=lambda p: float(away[p]))
    return _fit(x, target, x_test, best).cpu().numpy()


def _fit(x: torch.Tensor, y: torch.Tensor, new: torch.Tensor, penalty: float) -> torch.Tensor:
    """Closed form, with a free bias, over the d×d Gram matrix."""
    mean, middle = x.mean(0), y.mean(0)
    x = x - mean
    gram = x.mT @ x
    gram.diagonal().add_(penalty * len(x))
    return (new - mean) @ torch.linalg.solve(gram, x.mT @ (y - middle)) + middle

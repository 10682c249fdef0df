"""Factor readout: how well a linear model reads factors other than the class from the features.

For data with known factors (`shapes`: hue, position, texture, ...) a ridge regression is fitted on training rows and
evaluated on test rows. A number gives R². A factor with a few integer values gives (accuracy − share of the commonest)
/ (1 − that share). A hue is predicted as a point on a circle. 1 is exact, 0 is chance. The penalty is chosen on a
held-out fifth of the training rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from contrastive_core.base.device import pick_device
from contrastive_core.base.errors import CannotScore
from contrastive_core.base.messages import N_
from contrastive_core.metrics._base import Metric, MetricResult
from contrastive_core.metrics._standardized import Moments, Standardized
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs

BLOCK = 1 << 22  # numbers in float64 at a time
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)  # per training row, columns standardized
FEW = 10  # a factor of at most this many whole values is a kind, not a size


@dataclass(frozen=True)
class Factors(Metric):
    title = N_("Factor readout")
    reading = N_(
        "How well a linear model reads each known factor: 1 exactly, 0 not at all. If a factor is near 0 here and "
        "high for raw pixels, the augmentations taught the encoder to ignore it."
    )
    needs_train = True
    unit_rows = False
    higher_is_better = None

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        assert train is not None
        names = [k for k, v in test.columns.items() if v.dtype.kind in "fiub" and k in train.columns]
        if not names:
            raise CannotScore(N_("Factor readout needs data with known factors, such as shapes"))
        device = pick_device(graphs.device)
        moments = Moments(train.features)
        x_test = Standardized(test.features, moments, device)
        targets = {k: v for k in names if (v := _regression_target(k, train.columns[k], test.columns[k]))}
        guesses = _ridge(train.features, moments, {k: v[0] for k, v in targets.items()}, x_test)
        skill = {k: _skill(guesses[k], *targets[k][1:]) for k in targets}
        defined = {k: v for k, v in skill.items() if v is not None}
        if not defined:
            raise CannotScore(N_("Factor readout needs a factor that varies"))
        value = float(np.mean([max(0.0, v) for v in defined.values()]))
        return MetricResult(value, extras={**defined, "n": len(test)})


def _regression_target(
    name: str, train_values: np.ndarray, truth: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None] | None:
    """Return targets (n, t), the true values (m, …) and the distinct values; None if the factor does not vary."""
    kinds = np.unique(train_values)
    if len(kinds) < 2 or not (np.isfinite(train_values).all() and np.isfinite(truth).all()):
        return None
    if len(kinds) <= FEW and (kinds == np.round(kinds)).all():
        return (train_values[:, None] == kinds).astype(np.float64), truth, kinds
    target, wanted = (v.astype(np.float64)[:, None] for v in (train_values, truth))
    if name.endswith("hue"):  # 0..1, on a circle
        target, wanted = (np.hstack([np.cos(2 * np.pi * v), np.sin(2 * np.pi * v)]) for v in (target, wanted))
    return target, wanted, None


def _skill(guess: np.ndarray, truth: np.ndarray, kinds: np.ndarray | None) -> float | None:
    """Return 1 for perfect predictions and 0 for those of a constant; None if the truth does not vary."""
    if kinds is not None:
        common = max(float((truth == k).mean()) for k in kinds)
        right = float((kinds[guess.argmax(1)] == truth).mean())
        return (right - common) / (1 - common) if common < 1 else None
    all_of_it = np.square(truth - truth.mean(0)).sum()
    return float(1 - np.square(truth - guess).sum() / all_of_it) if all_of_it > 0 else None


def _ridge(
    features: np.ndarray, moments: Moments, targets: dict[str, np.ndarray], x_test: Standardized
) -> dict[str, np.ndarray]:
    """Return ridge predictions (m, t) of each target (n, t) from features (n, d), read in blocks. All targets are
    solved together, each with the penalty that predicts a held-out fifth best."""
    if not targets:
        return {}
    ends = np.cumsum([0, *(v.shape[1] for v in targets.values())])
    columns_of = {k: slice(a, b) for k, a, b in zip(targets, ends[:-1], ends[1:], strict=True)}
    y = torch.from_numpy(np.hstack([*targets.values()])).to(x_test.device).double()
    out = np.arange(len(y)) % 5 == 4
    kept, held = (Standardized(features, moments, x_test.device, np.flatnonzero(side)) for side in (~out, out))
    tried = _fits(kept, y[~out], held, PENALTIES)
    away = {p: (y[out] - guess).square().sum(0) for p, guess in tried.items()}  # (t) each
    best = {k: min(PENALTIES, key=lambda p: float(away[p][c].sum())) for k, c in columns_of.items()}
    fits = _fits(Standardized(features, moments, x_test.device), y, x_test, sorted(set(best.values())))
    return {k: fits[best[k]][:, c].cpu().numpy() for k, c in columns_of.items()}


def _blocks64(x: Standardized) -> Iterator[tuple[slice, Tensor]]:
    """Yield each block's slice and its rows in float64."""
    step = max(1, BLOCK // x.shape[1])
    for i in range(0, len(x), step):
        part = slice(i, min(i + step, len(x)))
        yield part, x[part].double()


def _fits(rows: Standardized, y: Tensor, new: Standardized, penalties: Sequence[float]) -> dict[float, Tensor]:
    """Predict `new` rows with closed-form ridge regressions, by penalty: from d×d products, or n×n if d > n."""
    mean = sum(x.sum(0) for _, x in _blocks64(rows)) / len(rows)
    middle = y.mean(0)
    y = y - middle
    few = None  # all rows (n, d), where they are fewer than their numbers
    if rows.shape[1] > len(rows):
        few = torch.cat([x for _, x in _blocks64(rows)]) - mean
        gram, right = few @ few.mT, y
    else:
        d = rows.shape[1]
        gram, right = y.new_zeros(d, d), y.new_zeros(d, y.shape[1])
        for at, x in _blocks64(rows):
            gram += (x - mean).mT @ (x - mean)
            right += (x - mean).mT @ y[at]
    weights = {}
    for penalty in penalties:
        held = gram.clone()
        held.diagonal().add_(penalty * len(rows))
        solved = torch.cholesky_solve(right, torch.linalg.cholesky(held))
        weights[penalty] = solved if few is None else few.mT @ solved  # (d, t)
    guesses: dict[float, list[Tensor]] = {penalty: [] for penalty in penalties}
    for _, x in _blocks64(new):
        for penalty, weight in weights.items():
            guesses[penalty].append((x - mean) @ weight + middle)
    return {penalty: torch.cat(parts) for penalty, parts in guesses.items()}

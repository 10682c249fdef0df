"""Factor readout: how well a linear model reads factors other than the class from the features.

For data with known factors (`shapes`: hue, position, texture, ...) a ridge regression is fitted on training rows and
evaluated on test rows. A number gives R². A factor with a few integer values gives (accuracy − share of the commonest)
/ (1 − that share). A hue is predicted as a point on a circle. 1 is exact, 0 is chance. The penalty is chosen on a
held-out fifth of the training rows, of which at most MOST are drawn."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.memory import rows_of_sample, sample_text
from contrastive_core.base.messages import N_, message
from contrastive_core.metrics._base import Metric, MetricResult
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs

MOST = 50_000  # training rows that are fitted, and test rows that are predicted
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
    most = MOST
    unit_rows = False
    higher_is_better = None

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        from sklearn.linear_model import Ridge
        from sklearn.preprocessing import StandardScaler

        assert train is not None
        names = [k for k, v in test.columns.items() if v.dtype.kind in "fiub" and k in train.columns]
        if not names:
            raise CannotScore(N_("Factor readout needs data with known factors, such as shapes"))
        drawn = rows_of_sample(len(train), MOST)
        scaler = StandardScaler()
        x = scaler.fit_transform(train.features[drawn].astype(np.float64))  # (n, d)
        new = scaler.transform(test.features.astype(np.float64))  # (m, d)
        out = np.arange(len(x)) % 5 == 4
        targets = {
            name: target
            for name in names
            if (target := _regression_target(name, train.columns[name][drawn], test.columns[name])) is not None
        }
        if not targets:
            raise CannotScore(N_("Factor readout needs a factor that varies"))
        y = np.hstack([y for y, _, _ in targets.values()])  # (n, t), of all factors
        widths = [y.shape[1] for y, _, _ in targets.values()]
        starts = np.cumsum([0, *widths[:-1]])

        def predicted(penalty: Any, rows: np.ndarray, at: np.ndarray) -> np.ndarray:
            fit = Ridge(penalty * rows.sum(), solver="cholesky").fit(x[rows], y[rows])
            return fit.predict(at).reshape(len(at), -1)  # (…, t)

        errors = [np.square(predicted(p, ~out, x[out]) - y[out]).sum(0) for p in PENALTIES]
        best = np.add.reduceat(errors, starts, axis=1).argmin(0)  # of each factor
        guesses = predicted(np.repeat(np.array(PENALTIES)[best], widths), out | ~out, new)
        parts = zip(targets.items(), np.split(guesses, starts[1:], axis=1), strict=True)
        skills = {name: _skill(guess, truth, kinds) for (name, (_, truth, kinds)), guess in parts}
        value = float(np.mean([max(0.0, v) for v in skills.values()]))
        extras: JsonObject = {**skills, "n": len(test)}
        if fitted := sample_text(len(drawn), len(train), N_("training rows")):
            extras["sample"] = message("fitted on {sample}", sample=fitted)
        return MetricResult(value, extras=extras)


def _regression_target(
    name: str, train_values: np.ndarray, truth: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None] | None:
    """Return targets (n, t), the true values (m, …) and the distinct values; None if the factor does not vary."""
    kinds = np.unique(train_values)
    varies = len(kinds) > 1 and len(np.unique(truth)) > 1
    if not varies or not (np.isfinite(train_values).all() and np.isfinite(truth).all()):
        return None
    if len(kinds) <= FEW and (kinds == np.round(kinds)).all():
        return (train_values[:, None] == kinds).astype(np.float64), truth, kinds
    target, wanted = (v.astype(np.float64)[:, None] for v in (train_values, truth))
    if name.endswith("hue"):  # 0..1, on a circle
        target, wanted = (np.hstack([np.cos(2 * np.pi * v), np.sin(2 * np.pi * v)]) for v in (target, wanted))
    return target, wanted, None


def _skill(guess: np.ndarray, truth: np.ndarray, kinds: np.ndarray | None) -> float:
    """Return 1 for perfect predictions and 0 for those of a constant."""
    if kinds is not None:
        common = max(float((truth == k).mean()) for k in kinds)
        right = float((kinds[guess.argmax(1)] == truth).mean())
        return (right - common) / (1 - common)
    return float(1 - np.square(truth - guess).sum() / np.square(truth - truth.mean(0)).sum())

"""The curve through the scores of one number: values side by side score about the same.

A Gaussian process (Rasmussen and Williams 2006, chapter 2) over the number's logarithm, with fixed length. Its noise
is that of one run: the binomial's, or the spread of the seeds at one value where that is larger. Its height follows the
scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from contrastive_core.advice.candidates import Candidate
from contrastive_core.evaluation.paired_tests import Z95

FEWEST = 3  # places that a curve needs
LENGTH = float(np.log(4))  # of the logarithm, over which scores stay alike
AMPLITUDE = 2.0  # of the curve at least, in standard deviations of one run's score


@dataclass(frozen=True, eq=False)
class Curve:
    """What a score is expected to be at each value."""

    process: GaussianProcessRegressor
    mean: float
    low: float  # the values that were tried lie between
    high: float

    def at(self, values: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """Expected score and half its 95 % interval: (n), (n)."""
        x = np.log(np.asarray(values, dtype=np.float64))[:, None]
        mean, sd = self.process.predict(x, return_std=True)
        return mean + self.mean, Z95 * sd

    def sampled(self, points: int = 41) -> list[dict[str, float]]:
        """The curve with its interval at evenly spaced places between the values that were tried."""
        values = np.geomspace(self.low, self.high, points)
        mean, half = self.at(values.tolist())
        rows = zip(values, mean, mean - half, mean + half, strict=True)
        return [dict(zip(("value", "score", "low", "high"), map(float, r), strict=True)) for r in rows]


def fit_curve(points: Sequence[tuple[float, float, np.ndarray | None]]) -> Curve | None:
    """The curve of runs.
    Args: points: of each run its value, its score, and whether each held-out image was named right (n), or None.
    Returns: None where fewer than `FEWEST` values have a score."""
    runs = [(v, s, right) for v, s, right in points if np.isfinite(s)]
    values = np.array([v for v, _, _ in runs])
    if len(np.unique(values)) < FEWEST:
        return None
    scores = np.array([s for _, s, _ in runs])
    mean = float(scores.mean())
    noise = max(_noise(scores, runs[0][2]), _spread_of_seeds(values, scores))
    amplitude = max(AMPLITUDE * noise, float(scores.std()))
    kernel = ConstantKernel(amplitude**2, "fixed") * RBF(LENGTH, "fixed")
    process = GaussianProcessRegressor(kernel, alpha=noise**2, optimizer=None)
    process.fit(np.log(values)[:, None], scores - mean)
    return Curve(process, mean, float(values.min()), float(values.max()))


def _noise(scores: np.ndarray, right: np.ndarray | None) -> float:
    """Standard deviation of one run's score: of a share, the binomial's; else a guess."""
    if right is None:
        return max(float(scores.std()) / AMPLITUDE, 1e-6)
    share = float(np.clip(scores.mean(), 0.02, 0.98))
    return float(np.sqrt(share * (1 - share) / max(1, len(right))))


def _spread_of_seeds(values: np.ndarray, scores: np.ndarray) -> float:
    """Standard deviation between seeds, pooled over the values that were trained more than once; 0 where none was."""
    groups = [scores[values == v] for v in np.unique(values)]
    freedom = sum(len(group) - 1 for group in groups)
    return float(np.sqrt(sum(((group - group.mean()) ** 2).sum() for group in groups) / freedom)) if freedom else 0.0


def spread(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The first, then always the one that lies farthest from those before it."""
    left, chosen = list(candidates[1:]), [candidates[0]]
    while left:
        far = max(left, key=lambda c: min(abs(np.log(_value(c) / _value(other))) for other in chosen))
        left.remove(far)
        chosen.append(far)
    return chosen


def _value(candidate: Candidate) -> float:
    assert candidate.value is not None
    return candidate.value

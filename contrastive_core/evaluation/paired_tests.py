"""Paired tests between spaces of the same samples, for every score that has a value per sample.

Right or wrong: McNemar's exact test (1947, Psychometrika 12, 153). Others: a t test on the paired differences of what
each sample moves the score by (`Score.influence`), because values of samples depend on each other where these are
neighbors or pairs. All p values of a table are corrected together by Holm's step-down (1979, Scand. J. Stat. 6, 65).
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from contrastive_core.records.score import Z95
from contrastive_core.storage.json_files import JsonObject

__all__ = ["Z95", "difference", "holm", "mcnemar", "paired_tests", "t_test"]

DRAWS = 2000  # of the bootstrap
RIGHT = ("knn", "linear_probe")
TESTED = (*RIGHT, "purity", "silhouette", "alignment", "tolerance", "uniformity")


def mcnemar(a: np.ndarray, b: np.ndarray) -> float:
    """The exact two-sided p of two vectors of right and wrong (n); 1 where they agree."""
    from scipy.special import bdtr  # scipy.stats takes 50 MB more, and pages test too

    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    return min(1.0, 2 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5)))


def holm(p: Sequence[float]) -> list[float]:
    """p values corrected for their number, in their order."""
    corrected, so_far = [0.0] * len(p), 0.0
    for rank, q in enumerate(np.argsort(p, kind="stable")):
        corrected[q] = so_far = max(so_far, min(1.0, p[q] * (len(p) - rank)))
    return corrected


def difference(a: np.ndarray, b: np.ndarray, seed: int = 0) -> tuple[float, tuple[float, float]]:
    """Mean of a − b over paired samples (n), with its 95 % bootstrap interval."""
    d, rng = a.astype(np.float64) - b.astype(np.float64), np.random.default_rng(seed)
    counts = np.array([(d == v).sum() for v in (-1, 0, 1)])
    if counts.sum() == len(d):  # correctness: resample the three outcomes
        drawn = rng.multinomial(len(d), counts / len(d), DRAWS)
        means = (drawn[:, 2] - drawn[:, 0]) / len(d)
    else:
        means = np.array([d[rng.integers(0, len(d), len(d))].mean() for _ in range(DRAWS)])
    low, high = np.quantile(means, [0.025, 0.975])
    return float(d.mean()), (float(low), float(high))


def t_test(d: np.ndarray, value: float) -> float:
    """Two-sided p of the mean `value` with the spread of d (n); 1 where nothing differs."""
    from scipy.special import stdtr  # as above

    spread = float(d.std(ddof=1)) / np.sqrt(len(d)) if len(d) > 1 else 0.0
    if spread == 0:
        return 1.0 if abs(value) < 1e-12 else 0.0
    return float(2 * stdtr(len(d) - 1, -abs(value) / spread))


def paired_tests(names: Sequence[str], scores: Sequence[Mapping[str, tuple[float, np.ndarray]]]) -> list[JsonObject]:
    """A row for each score and pair of runs: difference, 95 % interval, p as it is and corrected.

    Args: scores: for each run, score → (value, influence (n)); NaN where a sample has none.
    """
    tests = [
        {"score": name, "a": names[i], "b": names[j], **_test(name, scores[i][name], scores[j][name])}
        for name in TESTED
        if all(name in of_run for of_run in scores)
        for i, j in itertools.combinations(range(len(names)), 2)
    ]
    corrected = holm([row["p"] for row in tests])
    return [{**row, "p_corrected": p} for row, p in zip(tests, corrected, strict=True)]


def _test(name: str, a: tuple[float, np.ndarray], b: tuple[float, np.ndarray]) -> JsonObject:
    first, second = (np.asarray(influence, np.float64) for _, influence in (a, b))
    both = np.isfinite(first) & np.isfinite(second)
    d, n = (first - second)[both], int(both.sum())
    value = a[0] - b[0]
    half = Z95 * float(d.std(ddof=1)) / np.sqrt(n) if n > 1 else float("nan")
    p = mcnemar(first[both] > 0.5, second[both] > 0.5) if name in RIGHT else t_test(d, value)
    return {"value": value, "low": value - half, "high": value + half, "p": p, "n": n}

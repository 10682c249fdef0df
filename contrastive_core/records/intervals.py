"""95 % intervals of a share, and of a mean over seeds; without scipy.stats, which takes long to import."""

from __future__ import annotations

import math
from collections.abc import Sequence

Z95 = 1.959963984540054  # the two-sided 95 % point of the normal distribution
SEEDS = 3  # so many are needed before their spread says anything


def wilson(right: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share. Source: Wilson 1927, J. Am. Stat. Assoc. 22, 209."""
    if not n:
        return 0.0, 1.0
    share, z = right / n, Z95**2 / n
    center = (share + z / 2) / (1 + z)
    half = math.sqrt(z * share * (1 - share) + z * z / 4) / (1 + z)
    return 0.0 if not right else center - half, 1.0 if right == n else center + half


def over_seeds(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of the mean of runs that differ in their seed, by Student's t; None for fewer than three."""
    from scipy.special import stdtrit

    n = len(values)
    if n < SEEDS:
        return None
    mean = math.fsum(values) / n
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    half = float(stdtrit(n - 1, 0.975)) * spread / math.sqrt(n)
    return mean - half, mean + half

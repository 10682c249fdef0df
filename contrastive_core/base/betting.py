"""Tests and confidence intervals for the mean of bounded values that hold after every observation. Torch-free.

A bettor starts with a capital of 1. The hypothesis is that the mean is m. After each observation x, a bet λ multiplies
the capital by 1 + λ(x − m). If m is the mean, the expected capital stays 1. It therefore ever reaches 1 / α with
probability at most α (Ville 1939), whenever one looks and stops. The capital here is the mean of fixed bets, so it
depends only on the counts of the values. It is convex in m, and at most 1 at the mean of the sample: the values of m
whose capital stays below 1 / α are an interval.

Source: Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting", arXiv 2010.09686. Deviation:
the mixture of bets is uniform over all that cannot lose the whole capital. For values −1, 0 and 1 and m = 0, it is the
mixture of sign tests on the values that are not 0."""

import numpy as np

BETS, WEIGHTS = np.polynomial.legendre.leggauss(64)  # of all bets that are possible, from −1 to 1
EDGE, STEPS = 1e-9, 50  # distance of m from the ends; halvings of the interval in which an end lies


def log_capital(
    values: np.ndarray, counts: np.ndarray, mean: float, low: float, high: float, bets: tuple[float, float] = (-1, 1)
) -> float:
    """Return the log capital of bets against a mean. Args: values: (k) within `low` and `high`; counts: (k) of each;
    bets: range of the bets; (-1, 0) tests whether the mean is at least `mean`, (0, 1) at most."""
    share = bets[0] + (bets[1] - bets[0]) * (1 + BETS) / 2
    stake = share / np.where(share > 0, mean - low, high - mean)
    gains = np.log1p(stake[:, None] * (np.asarray(values) - mean)) @ counts  # (bets)
    return float(np.logaddexp.reduce(gains + np.log(WEIGHTS / 2)))


def mean_interval(
    values: np.ndarray, counts: np.ndarray, low: float, high: float, alpha: float = 0.05
) -> tuple[float, float]:
    """Return the interval of the mean that holds with probability 1 − α at all numbers of observations together.
    Args: values: (k) within `low` and `high`; counts: (k) of each."""
    if not np.sum(counts):
        return low, high
    center = float(np.clip(np.average(values, weights=counts), low + EDGE, high - EDGE))
    ends = []
    for end, inside in ((low, low + EDGE), (high, high - EDGE)):
        inner, outer = center, inside
        for _ in range(STEPS):
            middle = (inner + outer) / 2
            is_plausible = log_capital(values, counts, middle, low, high) < -np.log(alpha)
            inner, outer = (middle, outer) if is_plausible else (inner, middle)
        ends.append(end if outer == inside else outer)
    return ends[0], ends[1]


def lower_bound(values: np.ndarray, counts: np.ndarray, low: float, high: float, alpha: float = 0.05) -> float:
    """Return a lower bound of the mean that holds with probability 1 − α at all numbers of observations together.
    Args: values: (k) within `low` and `high`; counts: (k) of each."""
    if not np.sum(counts):
        return low
    outer, inner = low + EDGE, float(np.clip(np.average(values, weights=counts), low + EDGE, high - EDGE))
    for _ in range(STEPS):
        middle = (outer + inner) / 2
        is_refuted = log_capital(values, counts, middle, low, high, (0, 1)) >= -np.log(alpha)
        outer, inner = (middle, inner) if is_refuted else (outer, middle)
    return low if outer == low + EDGE else outer

"""Intervals beside scipy's."""

import numpy as np
import pytest
from scipy import stats

from contrastive_core.base.score import mcnemar, over_seeds, wilson


@pytest.mark.parametrize(("right", "n"), [(0, 20), (20, 20), (81, 263), (1, 2), (9_999, 10_000)])
def test_wilson_is_that_of_scipy(right: int, n: int) -> None:
    theirs = stats.binomtest(right, n).proportion_ci(0.95, "wilson")
    assert wilson(right, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_nothing_is_known_of_no_images() -> None:
    assert wilson(0, 0) == (0, 1)


def test_the_interval_over_seeds_is_that_of_student() -> None:
    values = [0.81, 0.84, 0.79, 0.83]
    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert over_seeds(values) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert over_seeds(values[:2]) is None


@pytest.mark.parametrize(("a", "b"), [(3, 9), (0, 7), (5, 5), (0, 0), (40, 22)])
def test_mcnemar_is_the_exact_binomial_test(a: int, b: int) -> None:
    first = np.r_[np.ones(a, bool), np.zeros(b, bool), np.ones(4, bool)]
    second = np.r_[np.zeros(a, bool), np.ones(b, bool), np.ones(4, bool)]
    theirs = stats.binomtest(a, a + b).pvalue if a + b else 1.0
    assert mcnemar(first, second) == pytest.approx(theirs, rel=1e-9)

"""The interval of a mean by betting: it holds at all sample sizes together, and its ends are where the capital says."""

import numpy as np
import pytest
from scipy.special import betaln

from contrastive_core.base.score import log_capital, mean_interval

VALUES = np.array([-1.0, 0.0, 1.0])


def test_against_zero_it_is_the_mixture_of_sign_tests() -> None:
    for lost, won in ((0, 8), (3, 20), (40, 60)):
        exact = betaln(won + 1, lost + 1) + (won + lost) * np.log(2)
        assert log_capital(VALUES, np.array([lost, 17, won]), 0, -1, 1) == pytest.approx(exact)
        assert log_capital(np.array([0.0, 1.0]), np.array([lost, won]), 0.5, 0, 1) == pytest.approx(exact)


@pytest.mark.parametrize("shares", [(0.05, 0.9, 0.05), (0.01, 0.94, 0.05), (0.3, 0.2, 0.5)])
def test_the_interval_ever_misses_the_mean_in_at_most_5_of_100_sequences(shares: tuple[float, float, float]) -> None:
    rng, mean, missed, most = np.random.default_rng(0), shares[2] - shares[0], 0, 0.0
    for _ in range(400):
        counts = np.cumsum(np.eye(3)[rng.choice(3, 600, p=shares)], 0)
        stakes = [log_capital(VALUES, now, mean, -1, 1) for now in counts[::3]]
        missed += max(stakes) >= np.log(20)
        most += np.exp(stakes[-1]) / 400
    assert missed <= 0.05 * 400 + 2 * np.sqrt(0.05 * 0.95 * 400)
    assert most < 1.5  # the mean capital is 1


def test_the_ends_are_where_the_capital_reaches_20_and_all_that_is_possible_without_values() -> None:
    for counts in ([2, 380, 20], [0, 0, 3], [5, 0, 0], [0, 30, 0]):
        low, high = mean_interval(VALUES, np.array(counts), -1, 1)
        assert low <= np.average(VALUES, weights=counts) <= high
        for end in (low, high):
            if abs(end) < 0.999:
                assert log_capital(VALUES, np.array(counts), end, -1, 1) == pytest.approx(np.log(20), abs=1e-3)
    assert mean_interval(VALUES, np.zeros(3), -1, 1) == (-1, 1)

"""What a temperature trades: written out for a few rows, and at both ends."""

import math

import numpy as np
import pytest

from contrastive_core.lab.view import TEMPERATURES, trade


def test_it_is_the_softmax_over_negatives_written_out() -> None:
    scores = np.array([[9.0, 0.5, 0.2, -0.1]])
    negative = np.array([[False, True, True, True]])  # what is positive does not count
    same = np.array([[True, True, False, False]])
    (found,) = trade(scores, negative, same, (0.3,))
    e = [math.exp(s / 0.3) for s in (0.5, 0.2, -0.1)]
    p = [x / sum(e) for x in e]
    assert found.own_class == pytest.approx(p[0])
    assert found.hardest == pytest.approx(p[0])
    assert found.spread == pytest.approx(math.exp(-sum(x * math.log(x) for x in p)) / 3)


def test_a_low_temperature_pushes_the_own_class_and_a_high_one_all_alike() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 5
    x = np.eye(5, 16)[labels] + 0.5 * rng.normal(size=(60, 16))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    negative, same = ~np.eye(60, dtype=bool), labels[:, None] == labels
    found = trade(x @ x.T, negative, same)
    spread = [f.spread for f in found]
    own = [f.own_class for f in found]
    assert spread == sorted(spread)
    assert own == sorted(own, reverse=True)
    assert own[-1] < 0.3 < own[0]
    assert [f.temperature for f in found] == list(TEMPERATURES)
    # at any τ: no overflow, and shares that are shares
    extreme = trade(1e4 * (x @ x.T), negative, same, (1e-4, 1e4))
    assert all(0 < f.spread <= 1 and 0 <= f.own_class <= 1 for f in extreme)


def test_without_labels_or_negatives() -> None:
    scores, none = np.zeros((2, 3)), np.zeros((2, 3), bool)
    assert trade(scores, ~none, None)[0].own_class is None
    with pytest.raises(ValueError, match="no anchor"):
        trade(scores, none, None)

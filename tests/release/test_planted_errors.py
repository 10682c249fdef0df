"""Planted errors among real images, found as well as by cleanlab."""

import numpy as np
import pytest

from benchmarks import planted_errors
from contrastive_core import runs
from contrastive_core.compare import embed
from contrastive_core.data import datasets
from contrastive_core.runs.train_config import from_dict


def test_planted_errors_come_first_as_with_the_peer() -> None:
    """Real digits with 5 % flips, 1 % copies of test images and 1 % noise."""
    pytest.importorskip("cleanlab")
    run, digits = runs.load("simclr-digits"), datasets.load("digits", "train")
    method, random = embed.load_model(run, digits, "cpu"), embed.untrained(from_dict(run.config), digits)
    outcome = planted_errors.outcome("digits", 0, method, random, hard=False)
    found = outcome.precision
    assert found["mislabeled"]["ours"] > 0.95
    assert found["duplicate"]["ours"] > 0.99
    assert found["outlier"]["ours"] > 0.99
    table = planted_errors.best_of([found])
    mine, theirs = (np.mean([row[i] for row in table.values()]) for i in (0, 1))
    assert mine >= theirs - planted_errors.SLACK

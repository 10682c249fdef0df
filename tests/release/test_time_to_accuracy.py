"""Seconds until an accuracy is reached: read off a curve, put beside the peer's, with an interval over seeds."""

import math
from pathlib import Path

import pytest

from benchmarks import time_to_accuracy as bench
from contrastive_core.base.json_files import write_json


def write(folder: Path, side: str, seed: int, seconds: float, right: float = 41.0) -> None:
    curve = [(seconds / 2, 30.0), (seconds, right), (2 * seconds, right + 5)]
    write_json(folder / f"{side}-{seed}.json", {"curve": curve, "target": 40.0})


def test_the_first_epoch_at_the_target_counts() -> None:
    assert bench.time_to([(1.0, 39.9), (2.0, 40.0), (3.0, 50.0)], 40.0) == 2.0
    assert bench.time_to([(1.0, 39.9)], 40.0) == math.inf


def test_the_ratio_is_a_geometric_mean_with_students_interval() -> None:
    ratio, low, high = bench.ratio_of([(1.0, 4.0), (1.0, 4.0), (1.0, 4.0)])
    assert (ratio, low, high) == pytest.approx((4.0, 4.0, 4.0))
    ratio, low, high = bench.ratio_of([(1.0, 2.0), (1.0, 8.0)])
    assert ratio == pytest.approx(4.0)
    assert low < 1e-2 < 1e2 < high  # two seeds a factor of two away: t is 12.7 at one degree of freedom


def test_a_goal_is_reached_by_the_lower_end_of_the_interval(tmp_path: Path) -> None:
    for seed, theirs in enumerate((500.0, 520.0, 510.0)):
        write(tmp_path, "ours", seed, 100.0)
        write(tmp_path, "lightly", seed, theirs)
    assert "lightly takes 5.1 times as long, [4.9, 5.4]; goal 4 times: reached" in bench.report(tmp_path)
    write(tmp_path, "lightly", 2, 300.0)
    assert "goal 4 times: not shown" in bench.report(tmp_path)


def test_a_seed_that_does_not_reach_it_is_said(tmp_path: Path) -> None:
    write(tmp_path, "ours", 0, 100.0)
    write(tmp_path, "lightly", 0, 100.0, right=20.0)
    assert "| 0 | 100 s | not reached |" in bench.report(tmp_path)
    assert "No seed reached" in bench.report(tmp_path)

"""Which setting is better: three seeds of each, and intervals over images and seeds."""

from __future__ import annotations

import numpy as np
import pytest

from contrastive_core.evaluation.best_setting import best_setting
from contrastive_core.evaluation.verdicts import SettingScores, better_pairs, compare_methods, contrast, interval_of


def tried(label: str, *wrong: int, n: int = 400) -> SettingScores:
    """A setting whose run of each seed has so many images wrong, always the first ones."""
    right = {seed: (np.arange(n) >= w).astype(float) for seed, w in enumerate(wrong)}
    return SettingScores(label, {s: float(r.mean()) for s, r in right.items()}, right)


def drawn(rng: np.random.Generator, label: str, n: int, deviation: float, hard: np.ndarray) -> SettingScores:
    """A setting of 80 % accuracy whose seeds deviate; images are `hard` for every setting alike."""
    made = SettingScores(label)
    for seed in range(3):
        share = np.clip(0.8 + deviation * rng.normal(), 0.02, 0.98)
        right = (rng.normal(size=n) / 2 + hard < np.quantile(hard, share)).astype(float)
        made.scores[seed], made.right[seed] = float(right.mean()), right
    return made


@pytest.mark.parametrize(("n", "deviation"), [(2000, 0.035), (10_000, 0.02), (2000, 0.005)])
def test_equal_settings_are_rarely_told_apart(n: int, deviation: float) -> None:
    """At most 16 of 150 sets; at 6 % false the chance of more is below 1 %."""
    rng, false = np.random.default_rng(0), 0
    for _ in range(150):
        hard = rng.normal(size=n)
        settings = [drawn(rng, str(i), n, deviation, hard) for i in range(4)]
        false += bool(better_pairs(settings))
    assert false <= 16


def test_a_clear_difference_is_found() -> None:
    best = best_setting("τ", [tried("0.1", 80, 82, 81), tried("0.2", 40, 41, 39), tried("0.5", 42, 41, 42)])
    assert (
        best[0] == "τ 0.2 scored highest, but not significantly higher than 0.5. It is significantly better than 0.1."
    )
    assert best[1] == "95 % intervals over images and seeds, from 3 seeds or more of each, corrected for 3 pairs."
    assert (
        best_setting("τ", [tried("0.1", 80, 82, 81), tried("0.2", 40, 41, 39)])[0] == "τ 0.2 is better than the other."
    )


def test_fewer_than_three_seeds_show_nothing() -> None:
    said, why = best_setting("τ", [tried("0.1", 40, 41), tried("0.2", 200, 201, 202)])
    assert said == "No winner yet."
    assert why == "Train 3 seeds of each setting to compare them; so far the fewest are 2."
    found = contrast(tried("a", 40), tried("b", 200))
    assert (found.interval, found.sign, found.shown) == (None, 0, "not repeated")
    assert interval_of(tried("a", 40, 41)) is None
    assert best_setting("τ", [tried("a", 10)]) == ("", "")


def test_seeds_that_differ_hide_a_small_difference() -> None:
    said, _ = best_setting("", [tried("a", 20, 40, 60), tried("b", 30, 50, 70)])
    assert said == "No significant difference between these two settings: a and b."


def test_the_seeds_of_other_settings_say_how_much_seeds_vary() -> None:
    a, b = tried("a", 40, 41, 40), tried("b", 50, 50, 51)
    assert contrast(a, b).shown == "better"
    wild = [tried(str(i), 20, 60, 100) for i in range(3)]
    assert contrast(a, b, wild).shown == "no difference shown"
    assert contrast(b, a).shown == "worse"
    again = [tried("a", 40, 41, 40), tried("b", 50, 50, 51)]  # the same settings count once
    assert contrast(a, b, again).interval == contrast(a, b).interval


def test_scores_alone_are_compared_by_their_seeds() -> None:
    a = SettingScores("a", {0: 0.9, 1: 0.91, 2: 0.9})
    assert contrast(a, SettingScores("b", {0: 0.5, 1: 0.52, 2: 0.49})).shown == "better"
    assert contrast(a, SettingScores("b", {0: 0.88, 1: 0.93, 2: 0.9})).shown == "no difference shown"


def test_methods_need_three_seeds_and_the_sentence_has_the_interval() -> None:
    one, two = tried("simclr", 40, 41, 39), tried("moco", 80, 82, 81)
    groups = [("simclr", s) for s in range(3)] + [("moco", s) for s in range(3)]
    right = np.stack([*one.right.values(), *two.right.values()]) > 0.5
    said = compare_methods(groups, right)
    assert said.startswith("simclr scores 10.3 points higher than moco with 3 seeds of each (95 % CI")
    assert compare_methods(groups[:5], right[:5]) == ""
    assert compare_methods(groups, right[[0, 1, 2, 0, 1, 2]]).startswith("3 seeds show no difference")

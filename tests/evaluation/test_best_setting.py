"""Which setting is best: never more than the paired tests show."""

from __future__ import annotations

import numpy as np

from contrastive_core.evaluation.best_setting import best_setting
from contrastive_core.evaluation.verdicts import SettingScores


def tried(label: str, *wrong: int, n: int = 400) -> SettingScores:
    """A setting whose run of each seed has so many images wrong, always the first ones."""
    right = {seed: (np.arange(n) >= w).astype(float) for seed, w in enumerate(wrong)}
    return SettingScores(label, {s: float(r.mean()) for s, r in right.items()}, right)


def test_what_is_not_shown_is_not_said() -> None:
    said, rests_on = best_setting("τ", [tried("0.1", 40), tried("0.2", 42), tried("0.5", 41)])
    assert said == "These three values of τ cannot be told apart: 0.1, 0.2 and 0.5."
    assert "same 400 test images, corrected for 3 pairs" in rests_on
    assert "another seed may say otherwise" in rests_on


def test_the_best_and_those_beside_it() -> None:
    said, _ = best_setting("τ", [tried("0.1", 80), tried("0.2", 40), tried("0.5", 42)])
    assert said == "τ 0.2 came out highest and cannot be told apart from 0.5; it is better than 0.1."
    assert best_setting("τ", [tried("0.1", 80), tried("0.2", 40)])[0] == ("τ 0.2 is better than the other.")


def test_every_seed_has_to_show_it() -> None:
    agree = [tried("a", 40, 40, 40), tried("b", 80, 80, 80)]
    assert best_setting("", agree)[0] == "a is better than the other."
    agree[1] = tried("b", 80, 80, 41)
    said, rests_on = best_setting("", agree)
    assert said == "These two settings cannot be told apart: a and b."
    assert "each of 3 seeds" in rests_on


def test_many_pairs_are_corrected_for() -> None:
    """Six more errors alone are p = 0.03: shown of two, not of five."""
    pair = [tried("a", 40), tried("b", 46)]
    assert best_setting("τ", pair)[0] == "τ a is better than the other."
    more = [*pair, *(tried(name, 40) for name in "cde")]
    assert best_setting("τ", more)[0] == "These five values of τ cannot be told apart."


def test_without_images_three_seeds_are_needed() -> None:
    one = [SettingScores("a", {0: 0.9}), SettingScores("b", {0: 0.5})]
    said, why = best_setting("τ", one)
    assert said == "Which is better cannot be said yet."
    assert "score the runs on the test images" in why
    three = [SettingScores("a", {0: 0.9, 1: 0.91, 2: 0.9}), SettingScores("b", {0: 0.5, 1: 0.52, 2: 0.49})]
    said, why = best_setting("τ", three)
    assert said == "τ a is better than the other."
    assert why == "A paired t test over 3 seeds; p below 0.05."
    three[1] = SettingScores("b", {0: 0.88, 1: 0.93, 2: 0.9})
    assert "cannot be told apart" in best_setting("τ", three)[0]


def test_other_images_are_not_paired() -> None:
    said, _ = best_setting("τ", [tried("a", 10, n=300), tried("b", 90, n=400)])
    assert said == "Which is better cannot be said yet."
    assert best_setting("τ", [tried("a", 10)]) == ("", "")

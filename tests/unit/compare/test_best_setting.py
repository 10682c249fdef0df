"""Which setting is better: three seeds of each, and intervals over images and seeds."""

import dataclasses

import numpy as np
import pytest

from contrastive_core.compare.verdicts import (
    Contrast,
    SettingScores,
    best_setting,
    compare_methods,
    contrast,
    contrasts_of_best,
    interval_and_basis,
)


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
        false += any(one.sign for one in contrasts_of_best(settings))
    assert false <= 16


def test_a_clear_difference_is_found() -> None:
    best = best_setting("τ", [tried("0.1", 80, 82, 81), tried("0.2", 40, 41, 39), tried("0.5", 42, 41, 42)])
    assert best == (
        "No significant difference between τ 0.2 and τ 0.5: 0.4 points (95 % CI over images and 3 seeds, corrected "
        "for 3 comparisons: −0.4 to 1.3). τ 0.2 is significantly better than τ 0.1.",
        "",
    )
    assert best_setting("τ", [tried("0.1", 80, 82, 81), tried("0.2", 40, 41, 39)])[0] == (
        "τ 0.2 is better than τ 0.1 by 10.3 points (95 % CI over images and 3 seeds: 7.3 to 13.2)."
    )
    three = [tried("0.1", 80, 82, 81), tried("0.2", 40, 41, 39), tried("0.5", 120, 121, 119)]
    assert best_setting("τ", three)[0].endswith(" τ 0.2 is significantly better than τ 0.5.")
    level = [tried("0.2", 40, 41, 39), tried("0.5", 42, 41, 42), tried("0.7", 42, 42, 42)]
    assert best_setting("τ", level)[0].endswith(" It does not differ significantly from τ 0.7.")


def test_fewer_than_three_seeds_show_nothing() -> None:
    said, why = best_setting("τ", [tried("0.1", 40, 41), tried("0.2", 200, 201, 202)])
    assert said == "No winner yet."
    assert why == "Train 3 seeds of each setting to compare them; one setting has only 2 so far."
    found = contrast(tried("a", 40), tried("b", 200))
    assert (found.interval, found.sign) == (None, 0)
    assert interval_and_basis(tried("a", 40, 41))[1] == "images, 2 seeds"
    assert best_setting("τ", [tried("a", 10)]) == ("", "")


def test_the_seeds_of_other_settings_say_how_much_seeds_vary() -> None:
    a, b = tried("a", 40, 41, 40), tried("b", 50, 50, 51)
    assert contrast(a, b).sign == 1
    wild = [tried(str(i), 20, 60, 100) for i in range(3)]
    assert contrast(a, b, wild).sign == 0
    assert contrast(b, a).sign == -1
    again = [tried("a", 40, 41, 40), tried("b", 50, 50, 51)]  # the same settings count once
    assert contrast(a, b, again).interval == contrast(a, b).interval


def test_scores_alone_are_compared_by_their_seeds() -> None:
    a = SettingScores("a", {0: 0.9, 1: 0.91, 2: 0.9})
    assert contrast(a, SettingScores("b", {0: 0.5, 1: 0.52, 2: 0.49})).sign == 1
    assert contrast(a, SettingScores("b", {0: 0.88, 1: 0.93, 2: 0.9})).sign == 0


def test_methods_need_three_seeds_and_the_sentence_has_the_interval() -> None:
    one, two = tried("simclr", 40, 41, 39), tried("moco", 80, 82, 81)
    groups = [("simclr", s) for s in range(3)] + [("moco", s) for s in range(3)]
    right = np.stack([*one.right.values(), *two.right.values()]) > 0.5
    said = compare_methods(groups, right)
    assert said.startswith("simclr is better than moco by 10.3 points (95 % CI over images and 3 seeds: ")
    assert compare_methods(groups[:5], right[:5]) == ""
    assert compare_methods(groups, right[[0, 1, 2, 0, 1, 2]]).startswith(
        "No significant difference between simclr and moco: 0.0 points"
    )


def test_a_difference_reads_as_what_is_claimed() -> None:
    made = Contrast("a", "b", 0.021, (0.003, 0.039), "samples")
    assert made.sentence == "a is better than b by 2.1 points (95 % CI over samples: 0.3 to 3.9)."
    assert made.of("b").sentence == made.sentence  # the higher one first
    assert made.of("b").sign == -1
    # an interval that excludes zero is no contradiction: the sentence says why nothing is claimed
    doubtful = dataclasses.replace(made, p=0.06)
    assert doubtful.sign == 0
    assert doubtful.sentence == (
        "a scored higher than b by 2.1 points (95 % CI over samples: 0.3 to 3.9), but that is not significant: the "
        "corrected p value is 0.06."
    )
    assert dataclasses.replace(made, interval=(-0.003, 0.045)).sentence == (
        "No significant difference between a and b: 2.1 points (95 % CI over samples: −0.3 to 4.5)."
    )
    assert contrast(tried("a", 40), tried("b", 80)).sentence == (
        "a scored higher than b by 10.0 points, but fewer than three seeds cannot show a difference."
    )

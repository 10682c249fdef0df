"""Which of several settings is best by an accuracy, as far as paired tests show.

Where it is recorded which test images each run has right, two settings are compared as on Compare,
seed by seed: McNemar's exact test, and a paired bootstrap of the difference. A difference counts as
shown if every seed that both have shows it: each interval excludes zero on the same side, and the
largest of the p values (an intersection-union test), corrected by Holm for the number of pairs, is
below 0.05. Where only the accuracies are known, three seeds of each are needed for a paired t test.
Torch-free.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from contrastive_core.evaluation.paired_tests import difference, holm, mcnemar
from contrastive_core.ops.intervals import SEEDS, over_seeds

__all__ = ["Setting", "best_setting"]

ALPHA = 0.05
NAMED = 4  # settings that are listed by name; more are counted
WORDS = ("", "", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True, eq=False)
class Setting:
    """A value that was tried. By seed: its accuracy (a share), and whether each test image was
    right (n), NaN where that is not known; no entry where it is not recorded."""

    label: str
    accuracy: dict[int, float] = field(default_factory=dict)
    right: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        return math.fsum(self.accuracy.values()) / len(self.accuracy)


def best_setting(name: str, tried: Sequence[Setting]) -> tuple[str, str]:
    """What paired tests show of several settings: a sentence or two, and what these rest on; both
    "" for fewer than two.

    Args: name: what varies, such as "τ"; "" where that is more than one thing.
    """
    tried = [s for s in tried if s.accuracy]
    if len(tried) < 2:
        return "", ""
    pairs = list(itertools.combinations(range(len(tried)), 2))
    by_images = all(_images(tried[i], tried[j]) for i, j in pairs)
    least = min(len(_seeds(tried[i], tried[j])) for i, j in pairs)
    if not least or (not by_images and least < SEEDS):
        return "Which is better cannot be said yet.", _lacks(least)
    tests = [(_of_images if by_images else _of_seeds)(tried[i], tried[j]) for i, j in pairs]
    corrected = holm([p for _, p in tests])
    better = {  # of each pair that is shown to differ, the better one and the worse one
        (i, j) if sign > 0 else (j, i)
        for (i, j), (sign, _), p in zip(pairs, tests, corrected, strict=True)
        if sign and p < ALPHA
    }
    return _sentence(name, tried, better), _rests_on(tried, by_images, least, len(pairs))


def _seeds(a: Setting, b: Setting) -> list[int]:
    return sorted(a.accuracy.keys() & b.accuracy.keys())


def _images(a: Setting, b: Setting) -> bool:
    """Whether it is known of the same images whether both have them right."""
    both = _seeds(a, b)
    known = all(s in a.right and s in b.right for s in both)
    return bool(both) and known and all(a.right[s].shape == b.right[s].shape for s in both)


def _of_images(a: Setting, b: Setting) -> tuple[int, float]:
    """Which is better with every seed (1: a, −1: b, 0: neither), and the largest p."""
    lows, highs, p = [], [], []
    for seed in _seeds(a, b):
        known = np.isfinite(a.right[seed]) & np.isfinite(b.right[seed])
        one, two = a.right[seed][known] > 0.5, b.right[seed][known] > 0.5
        low, high = difference(one, two)[1]
        lows.append(low)
        highs.append(high)
        p.append(mcnemar(one, two))
    return int(min(lows) > 0) - int(max(highs) < 0), max(p)


def _of_seeds(a: Setting, b: Setting) -> tuple[int, float]:
    """The same by a paired t test over the seeds."""
    from scipy.special import stdtr

    d = [a.accuracy[s] - b.accuracy[s] for s in _seeds(a, b)]
    low, high = over_seeds(d) or (0.0, 0.0)
    mean, spread = float(np.mean(d)), float(np.std(d, ddof=1)) / math.sqrt(len(d))
    if not spread:
        return 0, 1.0  # all alike to the last digit: nothing that a spread could judge
    p = 2 * float(stdtr(len(d) - 1, -abs(mean) / spread))
    return int(low > 0) - int(high < 0), p


def _sentence(name: str, tried: Sequence[Setting], better: set[tuple[int, int]]) -> str:
    many = _number(len(tried))
    if not better:
        listed = f": {_listed([s.label for s in tried])}" if len(tried) <= NAMED else ""
        what = f"{many} values of {name}" if name else f"{many} settings"
        return f"These {what} cannot be told apart{listed}."
    best = max(range(len(tried)), key=lambda i: tried[i].mean)
    beaten = [i for i in range(len(tried)) if (best, i) in better]
    level = [tried[i].label for i in range(len(tried)) if i != best and i not in beaten]
    top = f"{name} {tried[best].label}".strip()
    if not beaten:
        i, j = max(better, key=lambda pair: tried[pair[0]].mean - tried[pair[1]].mean)
        return (
            f"{top} came out highest, and is not shown to be better than any other; "
            f"{tried[i].label} is better than {tried[j].label}."
        )
    if not level:
        return f"{top} is better than {'each of the others' if len(tried) > 2 else 'the other'}."
    also = _listed(level) if len(level) <= NAMED else f"{_number(len(level))} others"
    than = [tried[i].label for i in beaten]
    worse = _listed(than) if len(than) <= NAMED else f"the other {_number(len(than))}"
    return (
        f"{top} came out highest and cannot be told apart from {also}; it is better than {worse}."
    )


def _rests_on(tried: Sequence[Setting], by_images: bool, seeds: int, pairs: int) -> str:
    corrected = f", corrected for {pairs} pairs" if pairs > 1 else ""
    if not by_images:
        return f"A paired t test over {seeds} seeds{corrected}; p below 0.05."
    n = int(np.isfinite(next(iter(tried[0].right.values()))).sum())
    if seeds == 1:
        return (
            f"McNemar's test and a paired bootstrap on the same {n:,} test images{corrected}; one "
            "seed of each: another seed may say otherwise."
        )
    return (
        f"McNemar's test and a paired bootstrap on the same {n:,} test images{corrected}; each of "
        f"{seeds} seeds or more has to show it."
    )


def _lacks(seeds: int) -> str:
    if not seeds:
        return "No seed was trained with all of these settings."
    return (
        "It is not recorded which images each run has right: score the runs on the test images, "
        f"or train {_number(SEEDS)} seeds of each."
    )


def _number(n: int) -> str:
    return WORDS[n] if 1 < n < len(WORDS) else f"{n:,}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

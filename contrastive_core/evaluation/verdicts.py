"""Whether setting A is better than setting B: the only place where that is decided.

The adviser, sweeps, the curves on Compare and the comparison of runs all ask here. Three rules:

- On the same images (`compare_on_images`): McNemar's exact test and a paired bootstrap, seed by seed. A difference
  counts if every seed that both have shows it: each interval excludes zero on the same side, and the largest of the
  p values (an intersection-union test), corrected by Holm, is below 0.05.
- From the scores alone (`compare_over_seeds`): a paired t test over three seeds or more.
- Of single runs (`compare_runs`): the same tests for every pair and accuracy, corrected together.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from contrastive_core.evaluation.paired_tests import difference, holm, mcnemar, t_test
from contrastive_core.messages import N_, message
from contrastive_core.records.comparison import Difference
from contrastive_core.records.intervals import SEEDS, Z95, over_seeds, wilson

__all__ = ["Contrast", "SettingScores", "better_pairs", "compare_methods", "compare_runs", "contrast", "interval_of"]

ALPHA = 0.05


@dataclass(frozen=True, eq=False)
class SettingScores:
    """What a setting scored, by seed: its score, and whether each image was right (n), NaN where that is unknown; no
    entry where it was not recorded."""

    label: str
    scores: dict[int, float] = field(default_factory=dict)
    right: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        return math.fsum(self.scores.values()) / len(self.scores)


@dataclass(frozen=True)
class Contrast:
    """A setting less the default, on the same images and seeds."""

    difference: float
    interval: tuple[float, float] | None
    per_seed: tuple[tuple[float, float], ...]  # the interval of each seed, where images are known
    shown: str


def shared_seeds(a: SettingScores, b: SettingScores) -> list[int]:
    return sorted(a.scores.keys() & b.scores.keys())


def has_same_images(a: SettingScores, b: SettingScores) -> bool:
    """Whether it is known of the same images whether both have them right."""
    both = shared_seeds(a, b)
    known = all(s in a.right and s in b.right for s in both)
    return bool(both) and known and all(a.right[s].shape == b.right[s].shape for s in both)


def better_pairs(settings: Sequence[SettingScores], by_images: bool) -> set[tuple[int, int]]:
    """Of each pair of settings that differ, the number of the better one and of the worse one."""
    pairs = list(itertools.combinations(range(len(settings)), 2))
    compare = compare_on_images if by_images else compare_over_seeds
    tests = [compare(settings[i], settings[j]) for i, j in pairs]
    corrected = holm([p for _, p in tests])
    return {
        (i, j) if sign > 0 else (j, i)
        for (i, j), (sign, _), p in zip(pairs, tests, corrected, strict=True)
        if sign and p < ALPHA
    }


def compare_on_images(a: SettingScores, b: SettingScores) -> tuple[int, float]:
    """Which is better with every seed (1: a, −1: b, 0: neither), and the largest p."""
    intervals, p = [], []
    for seed in shared_seeds(a, b):
        known = np.isfinite(a.right[seed]) & np.isfinite(b.right[seed])
        one, two = a.right[seed][known] > 0.5, b.right[seed][known] > 0.5
        intervals.append(difference(one, two)[1])
        p.append(mcnemar(one, two))
    return _sign(intervals), max(p)


def compare_over_seeds(a: SettingScores, b: SettingScores) -> tuple[int, float]:
    """The same by a paired t test over the seeds."""
    d = np.array([a.scores[s] - b.scores[s] for s in shared_seeds(a, b)])
    if not d.std(ddof=1):
        return 0, 1.0  # all alike to the last digit: nothing that a spread could judge
    return _sign([over_seeds(d.tolist()) or (0.0, 0.0)]), t_test(d, float(d.mean()))


def _sign(intervals: Sequence[tuple[float, float]]) -> int:
    """1 where all intervals lie above zero, −1 where all lie below, 0 otherwise."""
    return int(all(low > 0 for low, _ in intervals)) - int(all(high < 0 for _, high in intervals))


def contrast(mine: SettingScores, usual: SettingScores) -> Contrast | None:
    """A setting against the default; None where no seed was trained with both."""
    both = shared_seeds(mine, usual)
    if not both:
        return None
    differences = [mine.scores[s] - usual.scores[s] for s in both]
    pairs = [(mine.right[s], usual.right[s]) for s in both if s in mine.right and s in usual.right]
    per_seed = tuple(difference(a, b)[1] for a, b in pairs)
    value, interval = float(np.mean(differences)), over_seeds(differences)
    sign = _sign([interval]) if interval else 0
    if len(pairs) == len(both):
        means = np.mean([a - b for a, b in pairs], 0)
        half = Z95 * float(np.nanstd(means, ddof=1)) / math.sqrt(max(1, np.isfinite(means).sum()))
        half = math.hypot(half, (interval[1] - interval[0]) / 2) if interval else half
        interval, sign = (value - half, value + half), _sign(per_seed)
    if len(both) >= SEEDS:
        shown = {1: "better", -1: "worse", 0: N_("no difference shown")}[sign]
    else:
        shown = N_("worse so far") if sign < 0 else N_("not repeated")
    return Contrast(value, interval, per_seed, shown)


def interval_of(setting: SettingScores) -> tuple[float, float] | None:
    """The 95 % interval of a setting's mean: over its images, and over its seeds where there are three."""
    between, first = over_seeds([*setting.scores.values()]), next(iter(setting.scores))
    n = len(setting.right.get(first, ()))
    if not n:
        return between
    right = np.mean([np.nan_to_num(v) for v in setting.right.values()], 0)
    low, high = wilson(round(float(right.sum())), n)
    if between is None:
        return low, high
    half = math.hypot((high - low) / 2, (between[1] - between[0]) / 2)
    mean = float(np.mean([*setting.scores.values()]))
    return mean - half, mean + half


def compare_runs(names: Sequence[str], correct: Mapping[str, np.ndarray], seed: int = 0) -> list[Difference]:
    """All pairs of runs by all accuracies (runs, n), their p values corrected together."""
    differences = []
    for metric, right in correct.items():
        for i, j in itertools.combinations(range(len(names)), 2):
            only_a, only_b = int((right[i] & ~right[j]).sum()), int((right[j] & ~right[i]).sum())
            value, interval = difference(right[i], right[j], seed)
            p = mcnemar(right[i], right[j])
            differences.append(Difference(metric, names[i], names[j], value, interval, p, p, only_a, only_b))
    corrected = holm([d.p for d in differences])
    return [dataclasses.replace(d, p_corrected=p) for d, p in zip(differences, corrected, strict=True)]


def compare_methods(groups: Sequence[tuple[str, int]], right: np.ndarray) -> str:
    """What two methods of three seeds or more show together; "" where there are not so many.

    Args: groups: method and seed of each run; right: (runs, n), who is right.
    """
    methods, at = sorted({name for name, _ in groups}), {group: row for row, group in enumerate(groups)}
    if len(methods) != 2:
        return ""
    a, b = methods
    seeds = sorted(s for name, s in groups if name == a and (b, s) in at)
    if len(seeds) < SEEDS:
        return ""
    differences = [difference(right[at[a, s]], right[at[b, s]]) for s in seeds]
    values = [100 * abs(value) for value, _ in differences]
    span = message("{low} to {high} points", low=f"{min(values):.1f}", high=f"{max(values):.1f}")
    sign = _sign([interval for _, interval in differences])
    if not sign:
        return message(
            "Between {first} and {second} the {seeds} seeds do not all show a difference.",
            first=a,
            second=b,
            seeds=len(seeds),
        )
    better, worse = (a, b) if sign > 0 else (b, a)
    return message(
        "{better} is better than {worse} with each of {seeds} seeds, by {span}.",
        better=better,
        worse=worse,
        seeds=len(seeds),
        span=span,
    )

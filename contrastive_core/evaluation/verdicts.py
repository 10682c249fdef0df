"""Whether setting A is better than setting B: the only place where that is decided.

The adviser, sweeps, Compare and its curves all ask here. Two kinds of statement:

- **Settings and methods** (`contrast`, `better_pairs`, `compare_methods`) need three seeds of each. The interval
  contains both variations: over images, and between seeds. The variance between seeds is pooled over all settings
  that were trained more than once, because three seeds alone say little about it. Student's t with the pooled degrees
  of freedom and Bonferroni's correction give the half-width. A difference counts if its interval excludes zero.
- **Single runs** (`compare_runs`): McNemar's exact test and a paired bootstrap over images, corrected by Holm. That
  says nothing about other seeds.

`python -m benchmarks.coverage` measures how often a difference is claimed where there is none.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri, stdtrit

from contrastive_core.evaluation.paired_tests import difference, holm, mcnemar
from contrastive_core.messages import N_, message
from contrastive_core.records.comparison import Difference
from contrastive_core.records.score import SEEDS, over_seeds, wilson

__all__ = [
    "Contrast",
    "SettingScores",
    "better_pairs",
    "compare_methods",
    "compare_runs",
    "contrast",
    "interval_and_basis",
    "interval_of",
]

ALPHA = 0.05


@dataclass(frozen=True, eq=False)
class SettingScores:
    """What a setting scored, by seed: its score, and whether each image was right (n), NaN where that is unknown; no
    entry where it was not recorded."""

    label: str
    scores: dict[int, float] = field(default_factory=dict)
    right: dict[int, np.ndarray] = field(default_factory=dict)
    is_fixed: bool = False  # made without chance, as pixels and frozen encoders are: one score stands for all seeds

    @property
    def mean(self) -> float:
        return math.fsum(self.scores.values()) / len(self.scores)

    @property
    def is_repeated(self) -> bool:
        return len(self.scores) >= SEEDS or (self.is_fixed and bool(self.scores))

    @property
    def mean_right(self) -> np.ndarray | None:
        """(n) the share of seeds that have each image right; None where some are unknown."""
        if self.right.keys() != self.scores.keys() or len({v.shape for v in self.right.values()}) != 1:
            return None
        return np.mean(list(self.right.values()), 0)


@dataclass(frozen=True)
class Contrast:
    """A setting less another."""

    difference: float
    interval: tuple[float, float] | None  # over images and seeds; None with fewer than three seeds of either
    shown: str

    @property
    def sign(self) -> int:
        """1 or −1 where a difference is shown, else 0."""
        low, high = self.interval or (0.0, 0.0)
        return int(low > 0) - int(high < 0)


def contrast(a: SettingScores, b: SettingScores, pool: Iterable[SettingScores] = (), tests: int = 1) -> Contrast:
    """Compare setting a with b.

    Args: pool: further settings whose seeds say how much seeds vary; tests: comparisons that are made together.
    """
    value = a.mean - b.mean
    if not (a.is_repeated and b.is_repeated):
        return Contrast(value, None, N_("not repeated"))
    half = math.hypot(_image_half(a, b, tests), _seed_half(a, b, pool, tests))
    made = Contrast(value, (value - half, value + half), "")
    shown = {1: N_("better"), -1: N_("worse"), 0: N_("no difference shown")}[made.sign]
    return dataclasses.replace(made, shown=shown)


def better_pairs(settings: Sequence[SettingScores]) -> set[tuple[int, int]]:
    """Of each pair of settings that differ, the number of the better one and of the worse one."""
    pairs = list(itertools.combinations(range(len(settings)), 2))
    signs = [contrast(settings[i], settings[j], settings, len(pairs)).sign for i, j in pairs]
    return {(i, j) if sign > 0 else (j, i) for (i, j), sign in zip(pairs, signs, strict=True) if sign}


def _image_half(a: SettingScores, b: SettingScores, tests: int) -> float:
    """Half of the interval over images of the difference between the seeds' means; 0 where it is unknown."""
    one, two = a.mean_right, b.mean_right
    if one is None or two is None or one.shape != two.shape:
        return 0.0
    d = (one - two)[np.isfinite(one - two)]
    return float(-ndtri(ALPHA / 2 / tests) * d.std(ddof=1) / math.sqrt(len(d))) if len(d) > 1 else 0.0


def _seed_half(a: SettingScores, b: SettingScores, pool: Iterable[SettingScores], tests: int) -> float:
    """Half of the interval over seeds, from the variance that all settings share; 0 between two fixed ones."""
    if a.is_fixed and b.is_fixed:
        return 0.0
    repeated = {s.label: list(s.scores.values()) for s in (*pool, a, b) if len(s.scores) > 1}.values()  # each once
    freedom = sum(len(values) - 1 for values in repeated)
    variance = sum((len(values) - 1) * float(np.var(values, ddof=1)) for values in repeated) / freedom
    share = sum(1 / len(one.scores) for one in (a, b) if not one.is_fixed)
    return float(-stdtrit(freedom, ALPHA / 2 / tests)) * math.sqrt(variance * share)


def interval_of(setting: SettingScores) -> tuple[float, float] | None:
    """The 95 % interval of a setting's mean over images and seeds; None with fewer than three seeds."""
    between, right = over_seeds([*setting.scores.values()]), setting.mean_right
    if between is None or right is None:
        return between
    low, high = _over_images(right)
    half = math.hypot((high - low) / 2, (between[1] - between[0]) / 2)
    return setting.mean - half, setting.mean + half


def interval_and_basis(setting: SettingScores) -> tuple[tuple[float, float] | None, str]:
    """The 95 % interval of a setting's mean and what it contains, "" without one: images and seeds as of `interval_of`;
    with fewer than three seeds the images alone (Wilson's), which says nothing about other seeds."""
    seeds, right = len(setting.scores), setting.mean_right
    if (found := interval_of(setting)) is not None:
        template = N_("{seeds} seeds") if right is None else N_("images and {seeds} seeds")
        return found, message(template, seeds=seeds)
    if right is None or not np.isfinite(right).any():
        return None, ""
    basis = message("images")
    if not setting.is_fixed:
        basis = message("images, one seed") if seeds == 1 else message("images, {seeds} seeds", seeds=seeds)
    return _over_images(right), basis


def _over_images(right: np.ndarray) -> tuple[float, float]:
    """Wilson's interval of the share of images that are right; right (n): NaN where that is unknown."""
    return wilson(round(float(np.nansum(right))), int(np.isfinite(right).sum()))


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
    methods: dict[str, SettingScores] = {}
    for (name, seed), row in zip(groups, right, strict=True):
        method = methods.setdefault(name, SettingScores(name))
        method.scores[seed], method.right[seed] = float(row.mean()), row.astype(float)
    if len(methods) != 2 or not all(method.is_repeated for method in methods.values()):
        return ""
    a, b = sorted(methods.values(), key=lambda method: -method.mean)
    found = contrast(a, b)
    assert found.interval is not None
    texts = {
        "first": a.label,
        "second": b.label,
        "seeds": min(len(a.scores), len(b.scores)),
        "points": f"{100 * found.difference:.1f}",
        "low": f"{100 * found.interval[0]:.1f}",
        "high": f"{100 * found.interval[1]:.1f}",
    }
    if found.sign:
        return message(
            "{first} scores {points} points higher than {second} with {seeds} seeds of each (95 % CI over images and "
            "seeds: {low} to {high}).",
            **texts,
        )
    return message(
        "{seeds} seeds show no difference between {first} and {second}: {points} points (95 % CI over images and "
        "seeds: {low} to {high}).",
        **texts,
    )

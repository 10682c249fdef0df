"""The verdict whether A is better than B: the only module that decides it and words it.

The adviser, sweeps, Compare and its curves use it. There are two kinds of statement:

- **Settings and methods** (`contrast`, `contrasts_of_best`, `compare_methods`) need three seeds of each. The interval
  covers two sources of variation: images and seeds. The variance between seeds is pooled over all settings
  that were trained more than once, because three seeds alone estimate it poorly. Student's t with the pooled degrees
  of freedom and Bonferroni's correction give the half-width. A difference counts if its interval excludes zero.
- **Single runs** (`compare_runs`, `paired_tests`), without a statement about other seeds. Correctness: McNemar's
  exact test (1947, Psychometrika 12, 153) and a paired bootstrap over images. Metrics of queries: a permutation test
  that flips the signs of paired differences, and the same bootstrap. Other scores: a t-test on the paired differences
  of each sample's influence on the score (`Score.influence`), because values per sample depend on each other if
  they are computed from neighbors or pairs. All p values of a table are corrected together by Holm's step-down method
  (1979, Scand. J. Stat. 6, 65).

`python -m benchmarks.coverage` measures how often a difference is claimed where there is none."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from contrastive_core.base.messages import N_, Message, join, message
from contrastive_core.base.score import (
    SEEDS,
    Z95,
    Scores,
    difference,
    holm,
    mcnemar,
    over_seeds,
    paired_p,
    t_test,
    wilson,
)

ACCURACIES = {"knn": N_("kNN accuracy"), "linear_probe": N_("linear probe accuracy")}
ALPHA = 0.05
LISTED = 4  # maximum number of listed names
FEW_SEEDS = N_("fewer than three seeds cannot show a difference")
POINTS = N_("points")
TESTED = (*ACCURACIES, "purity", "silhouette", "alignment", "tolerance", "uniformity")


@dataclass(frozen=True)
class Contrast:
    """The score of `first` minus that of `second`, with its interval."""

    first: str
    second: str
    difference: float
    interval: tuple[float, float] | None  # None with fewer than three seeds of either
    basis: str = ""  # of the interval, such as "images and 3 seeds"
    p: float | None = None  # of a test on the same samples, corrected; None: the interval decides
    unit: str = POINTS  # of 100 times the difference

    @property
    def sign(self) -> int:
        """1 or −1 for a significant difference, else 0."""
        low, high = self.interval or (0.0, 0.0)
        return 0 if self.p is not None and self.p >= ALPHA else int(low > 0) - int(high < 0)

    def of(self, first: str) -> "Contrast":
        """Return this contrast with the given name as `first`."""
        if first == self.first:
            return self
        interval = self.interval and (-self.interval[1], -self.interval[0])
        return replace(self, first=self.second, second=self.first, difference=-self.difference, interval=interval)

    @property
    def sentence(self) -> Message:
        """A sentence on the difference, its interval and basis, with the higher score first."""
        if self.difference < 0:
            return self.of(self.second).sentence
        values = {"first": self.first, "second": self.second, "unit": self.unit}
        values["difference"] = f"{100 * self.difference:.1f}"
        if self.interval is None:
            template = N_("{first} scored higher than {second} by {difference} {unit}, but {reason}.")
            return message(template, **values, reason=FEW_SEEDS)
        low, high = (f"{100 * end:.1f}".replace("-", "−") for end in self.interval)
        values |= {"basis": self.basis, "low": low, "high": high}
        if self.sign:
            template = N_(
                "{first} is better than {second} by {difference} {unit} (95 % CI over {basis}: {low} to {high})."
            )
        elif self.interval[0] > 0:  # the interval excludes zero, but the test is not significant
            template = N_(
                "{first} scored higher than {second} by {difference} {unit} (95 % CI over {basis}: {low} to {high}), "
                "but that is not significant: the corrected p value is {p}."
            )
            values["p"] = f"{self.p:.2g}"
        else:
            template = N_(
                "No significant difference between {first} and {second}: {difference} {unit} (95 % CI over {basis}: "
                "{low} to {high})."
            )
        return message(template, **values)

    def against(self, margin: float) -> Message:
        """Describe whether the difference matters. Args: margin: the smallest one that matters, as a share above 0."""
        low, high = self.interval or (-1.0, 1.0)
        names = self.first, self.second
        if low + high < 0:  # the higher one comes first
            low, high, names = -high, -low, names[::-1]
        if low > margin and self.sign:
            text = N_("{first} is better than {second} by more than {margin} {unit}.")
        elif low > -margin and high < margin:
            text = N_("{first} and {second} differ by less than {margin} {unit}.")
        elif low > -margin:
            text = N_("{first} is not worse than {second} by more than {margin} {unit}.")
        else:
            text = N_("Either {first} or {second} may be worse by more than {margin} {unit}.")
        values = {"first": names[0], "second": names[1], "unit": self.unit, "margin": f"{100 * margin:g}"}
        return message(text, **values)


def say_best(found: Sequence[Contrast]) -> Message:
    """Describe the lead of the highest score. Args: found: its contrasts with all others, the next highest first."""
    level, beaten = ([one for one in found if (one.sign > 0) is is_beaten] for is_beaten in (False, True))
    said = [(level or beaten)[0].sentence]
    if rest := level[1:]:
        said.append(message("It does not differ significantly from {names}.", names=_listed(rest)))
    if rest := beaten if level else beaten[1:]:
        text = N_("{best} is significantly better than {names}.")
        said.append(message(text, best=found[0].first, names=_listed(rest)))
    return join(" ", said)


def _listed(found: Sequence[Contrast]) -> str:
    if len(found) > LISTED:
        return message("{number} others", number=len(found))
    *first, last = (one.second for one in found)
    return message("{names} and {last}", names=", ".join(first), last=last) if first else last


@dataclass(frozen=True, eq=False)
class SettingScores:
    """The scores of a setting by seed, and the correctness (n) on each image by seed, NaN if unknown; `right` has no
    entry for seeds without a record."""

    label: str
    scores: dict[int, float] = field(default_factory=dict)
    right: dict[int, np.ndarray] = field(default_factory=dict)
    is_fixed: bool = False  # deterministic, such as pixels and frozen encoders: one score for all seeds

    @property
    def mean(self) -> float:
        return math.fsum(self.scores.values()) / len(self.scores)

    @property
    def is_repeated(self) -> bool:
        return len(self.scores) >= SEEDS or (self.is_fixed and bool(self.scores))

    @property
    def mean_right(self) -> np.ndarray | None:
        """Share (n) of seeds that classify each image correctly; None if some are unknown."""
        if self.right.keys() != self.scores.keys() or len({v.shape for v in self.right.values()}) != 1:
            return None
        return np.mean(list(self.right.values()), 0)


def contrast(a: SettingScores, b: SettingScores, pool: Iterable[SettingScores] = (), tests: int = 1) -> Contrast:
    """Compare setting a with b.

    Args: pool: further settings that contribute to the variance between seeds; tests: number of simultaneous
    comparisons."""
    from scipy.special import ndtri, stdtrit  # scipy.stats needs 50 MB more, also in pages

    value = a.mean - b.mean
    if not (a.is_repeated and b.is_repeated):
        return Contrast(first=a.label, second=b.label, difference=value, interval=None)
    one, two, of_images, of_seeds = a.mean_right, b.mean_right, 0.0, 0.0
    if one is not None and two is not None and one.shape == two.shape:
        d = (one - two)[np.isfinite(one - two)]
        if len(d) > 1:
            of_images = float(-ndtri(ALPHA / 2 / tests) * d.std(ddof=1) / math.sqrt(len(d)))
    if seeds := [len(one.scores) for one in (a, b) if not one.is_fixed]:
        repeated = {s.label: list(s.scores.values()) for s in (*pool, a, b) if len(s.scores) > 1}.values()  # each once
        freedom = sum(len(values) - 1 for values in repeated)
        variance = sum((len(values) - 1) * float(np.var(values, ddof=1)) for values in repeated) / freedom
        share = sum(1 / count for count in seeds)
        of_seeds = float(-stdtrit(freedom, ALPHA / 2 / tests)) * math.sqrt(variance * share)
    parts = [N_("images")] if of_images or not of_seeds else []
    parts += [message("{seeds} seeds", seeds=min(seeds))] if seeds else []
    basis = message("{images} and {seeds}", images=parts[0], seeds=parts[1]) if len(parts) == 2 else parts[0]
    if tests > 1:
        basis = message("{basis}, corrected for {tests} comparisons", basis=basis, tests=tests)
    half = math.hypot(of_images, of_seeds)
    interval = value - half, value + half
    return Contrast(first=a.label, second=b.label, difference=value, interval=interval, basis=basis)


def contrasts_of_best(settings: Sequence[SettingScores]) -> list[Contrast]:
    """Compare the highest-scoring setting with each other one, the next highest first. The intervals are corrected for
    all pairs of settings, because the scores selected the best."""
    best, *others = sorted(settings, key=lambda one: -one.mean)
    return [contrast(best, other, settings, len(settings) * len(others) // 2) for other in others]


def best_setting(name: str, settings: Sequence[SettingScores]) -> tuple[str, str]:
    """Return the verdict on several settings, and what is missing for a verdict; both "" for fewer than two.

    Args: name: the varied setting, such as "τ"; "" if several vary."""
    settings = sorted((s for s in settings if s.scores), key=lambda one: -one.mean)
    if len(settings) < 2:
        return "", ""
    if not all(s.is_repeated for s in settings):
        least = min(len(s.scores) for s in settings)
        return N_("No winner yet."), message(
            "Train {number} seeds of each setting to compare them; one setting has only {least} so far.",
            number=SEEDS,
            least=least,
        )
    label = "{name} {label}" if name else "{label}"
    named = [replace(s, label=label.format(name=name, label=s.label)) for s in settings]
    return say_best(contrasts_of_best(named)), ""


def interval_and_basis(setting: SettingScores) -> tuple[tuple[float, float] | None, str]:
    """Return the 95 % interval of a setting's mean and its basis, "" without one: images and seeds; with fewer than
    three seeds, images alone (Wilson's), without a statement about other seeds."""
    seeds, right, between = len(setting.scores), setting.mean_right, over_seeds([*setting.scores.values()])
    if right is None or not np.isfinite(right).any():
        return between, message("{seeds} seeds", seeds=seeds) if between else ""
    low, high = wilson(round(float(np.nansum(right))), int(np.isfinite(right).sum()))
    if between:
        half = math.hypot((high - low) / 2, (between[1] - between[0]) / 2)
        return (setting.mean - half, setting.mean + half), message("images and {seeds} seeds", seeds=seeds)
    basis = message("images")
    if not setting.is_fixed:
        basis = message("images, one seed") if seeds == 1 else message("images, {seeds} seeds", seeds=seeds)
    return (low, high), basis


def compare_methods(groups: Sequence[tuple[str, int]], right: np.ndarray) -> str:
    """Compare two methods over at least three seeds, in words; "" with fewer seeds.

    Args: groups: method and seed of each run; right: (runs, n), correctness."""
    methods: dict[str, SettingScores] = {}
    for (name, seed), row in zip(groups, right, strict=True):
        method = methods.setdefault(name, SettingScores(name))
        method.scores[seed], method.right[seed] = float(row.mean()), row.astype(float)
    if len(methods) != 2 or not all(method.is_repeated for method in methods.values()):
        return ""
    a, b = methods.values()
    return contrast(a, b).sentence


# --- single runs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """A score of run `a` minus that of `b` on the same samples, with its 95 % interval and p values."""

    metric: str
    title: str  # of the metric
    a: str
    b: str
    value: float
    interval: tuple[float, float]
    p: float
    p_corrected: float

    @property
    def contrast(self) -> Contrast:
        """The difference as a `Contrast`, for sentences."""
        return Contrast(
            first=self.a,
            second=self.b,
            difference=self.value,
            interval=self.interval,
            basis=N_("the samples") if self.metric in ACCURACIES else N_("the queries"),
            p=self.p_corrected,
            unit=message("points of {accuracy}", accuracy=self.title),
        )

    @property
    def claimed(self) -> bool:
        """Whether the difference is significant."""
        return bool(self.contrast.sign)


def paired_tests(names: Sequence[str], scores: Sequence[Scores]) -> list[Difference]:
    """Test each score that all runs have, with an influence of each sample, for each pair of runs. The p values are
    corrected together. Samples without a value in both are left out."""
    tests = []
    for metric in TESTED:
        known = [
            (name, score.title, score.value, np.asarray(score.influence, np.float64))
            for name, of_run in zip(names, scores, strict=True)
            if (score := of_run.get(metric)) is not None and score.value is not None and score.influence is not None
        ]
        pairs = itertools.combinations(known, 2) if len(known) == len(names) else ()
        for (a, title, first, of_a), (b, _, second, of_b) in pairs:
            both, value = np.isfinite(of_a) & np.isfinite(of_b), first - second
            d = (of_a - of_b)[both]
            half = Z95 * float(d.std(ddof=1)) / math.sqrt(len(d)) if len(d) > 1 else math.nan
            p = mcnemar(of_a[both] > 0.5, of_b[both] > 0.5) if metric in ACCURACIES else t_test(d, value)
            ends = value - half, value + half
            made = Difference(metric=metric, title=title, a=a, b=b, value=value, interval=ends, p=p, p_corrected=p)
            tests.append(made)
    return _corrected(tests)


def compare_runs(
    names: Sequence[str],
    correct: Mapping[str, np.ndarray],
    titles: Mapping[str, str] = ACCURACIES,
    groups: Mapping[str, np.ndarray] | None = None,
) -> list[Difference]:
    """Compare all pairs of runs by all metrics (runs, n), with p values that are corrected together. Args: groups: by
    metric: (n), of samples that depend on each other."""
    differences = []
    for metric, right in correct.items():
        of = (groups or {}).get(metric)
        for i, j in itertools.combinations(range(len(names)), 2):
            value, ends = difference(right[i], right[j], groups=of)
            p = paired_p(right[i], right[j], of)
            title, a, b = titles[metric], names[i], names[j]
            made = Difference(metric=metric, title=title, a=a, b=b, value=value, interval=ends, p=p, p_corrected=p)
            differences.append(made)
    return _corrected(differences)


def _corrected(differences: Sequence[Difference]) -> list[Difference]:
    corrected = holm([one.p for one in differences])
    return [replace(one, p_corrected=p) for one, p in zip(differences, corrected, strict=True)]

"""Scores as shown on pages, stored in files and printed by commands, and the tests and intervals that judge them.
Torch-free.

Files are checked when they are read: a record that does not match becomes a score without a value, with the reason, so
pages keep working.

Intervals by betting hold after every observation. A bettor starts with a capital of 1. The hypothesis is that the mean
is m. After each observation x, a bet λ multiplies the capital by 1 + λ(x − m). If m is the mean, the expected capital
stays 1. It therefore ever reaches 1 / α with probability at most α (Ville 1939), whenever one looks and stops. The
capital here is the mean of fixed bets, so it depends only on the counts of the values. It is convex in m, and at most 1
at the mean of the sample: the values of m whose capital stays below 1 / α are an interval. Source: Waudby-Smith &
Ramdas, "Estimating means of bounded random variables by betting", arXiv 2010.09686. Deviation: the mixture of bets is
uniform over all that cannot lose the whole capital. For values −1, 0 and 1 and m = 0, it is the mixture of sign tests
on the values that are not 0."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated, Any

import numpy as np

from contrastive_core.base.json_files import JsonObject, fields, list_of, number, optional, plain, problem, schema_of
from contrastive_core.base.messages import N_, join, message

LONGEST = 500  # maximum characters of a text
MOST = 100  # maximum number of scores
UNREADABLE = N_("its record cannot be read")

NUMBER = optional(number())
INTERVAL = optional(list_of(NUMBER, 2))
COUNT, COUNTS = schema_of(int), schema_of(list[int])
CLASS = fields({"class": schema_of(str), "n": COUNT, "taken_for": COUNTS}, {"value": NUMBER, "interval": INTERVAL})
EXTRAS = fields(
    allowed={
        **dict.fromkeys(("curve", "log_loss"), schema_of(dict[str, float | None])),
        **dict.fromkeys(("n", "k", "rank", "width", "folds"), optional(COUNT)),
        **dict.fromkeys(("temperature", "c", "t"), NUMBER),
        "spectrum": list_of(NUMBER),
        "per_class": list_of(CLASS),
        "sample": schema_of(str),
    }
)
INFLUENCE = "influence"  # array with each sample's influence on a score whose values are dependent
Z95 = 1.959963984540054  # the two-sided 95 % point of the normal distribution
DRAWS = 2000  # of the bootstrap
FLIPS, AT_ONCE = 10_000, 200  # permutations of the test, and how many per batch
SEEDS = 3  # minimum number of seeds for an interval


@dataclass(frozen=True)
class ClassShare:
    """A class: its number of rows, the share classified correctly, and the counts of the predicted classes."""

    name: str
    n: int
    value: float | None
    interval: tuple[float, float] | None
    taken_for: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Score:
    """One score of one embedding; without a value, `missing` gives the reason.

    `interval` is the 95 % confidence interval; `unit` is "share" (0 to 1), "nats", "dimensions" or another unit;
    `extras` are further plain values; `arrays` hold values per sample, such as `per_sample` (n), NaN where
    undefined. Arrays are not written to JSON."""

    title: str
    reading: str = ""
    value: float | None = None
    interval: Annotated[tuple[float, float] | None, INTERVAL] = None
    unit: str = ""
    higher_is_better: bool | None = None
    settings: JsonObject = field(default_factory=dict)
    extras: Annotated[JsonObject, EXTRAS] = field(default_factory=dict)
    missing: str = ""
    arrays: Annotated[dict[str, np.ndarray], plain] = field(default_factory=dict, repr=False)

    @property
    def influence(self) -> np.ndarray | None:
        """Influence of each sample on the score (n), for intervals and paired tests."""
        return self.arrays.get(INFLUENCE, self.per_sample)

    @property
    def per_sample(self) -> np.ndarray | None:
        """Values per sample (n), usually with the score as their mean."""
        return self.arrays.get("per_sample")

    def number(self, name: str) -> float | None:
        """Return a number among the extras; None if there is none."""
        value = self.extras.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return None
        return float(value)

    @property
    def sample(self) -> str:
        """The sample of rows that the score was computed from, in words; "" for all rows."""
        return str(self.extras.get("sample", ""))

    @property
    def approximation(self) -> str:
        """A note on sampling and approximate search, shown next to the score; "" for all rows and exact neighbors."""
        return join(", ", filter(None, [self.sample, recall_text(self.number("recall"))]))

    @property
    def curve(self) -> dict[int, float]:
        """The score by k, if recorded."""
        values = {str(k): v for k, v in self.extras.get("curve", {}).items() if v is not None}
        return {int(k): v for k, v in values.items() if k.isascii() and k.isdigit() and len(k) < 10}

    @property
    def spectrum(self) -> list[float]:
        """Singular values relative to the largest, if recorded."""
        return [v for v in self.extras.get("spectrum", ()) if v is not None]

    @property
    def per_class(self) -> list[ClassShare]:
        """The scores of the classes; [] if the record is incomplete."""
        classes = [
            ClassShare(c["class"], c["n"], c.get("value"), _pair(c.get("interval")), tuple(c["taken_for"]))
            for c in self.extras.get("per_class", ())
        ]
        return classes if all(len(c.taken_for) == len(classes) for c in classes) else []

    def to_json(self) -> JsonObject:
        """Return plain values without the arrays; `from_json` is the inverse."""
        if self.value is None:
            return {"title": self.title, "reading": self.reading, "missing": self.missing}
        values = {name: value for name, value in vars(self).items() if name not in ("arrays", "missing")}
        return values | {"interval": self.interval and list(self.interval)}

    @classmethod
    def from_json(cls, record: Any, name: str = "") -> Score:
        """Read a score from a record. Never raises: an invalid record gives a score without a value."""
        if problem(record, SCORE):
            return cls(name[:LONGEST], missing=UNREADABLE)
        values = {k: v for k, v in record.items() if k in SCORE.keys and k != "arrays" and v is not None}
        values |= {k: v[:LONGEST] for k, v in values.items() if isinstance(v, str) and len(v) > LONGEST}
        score = cls(**{"title": name[:LONGEST], **values, "interval": _pair(values.get("interval"))})
        if score.value is None:
            return cls(score.title, score.reading, missing=score.missing or UNREADABLE)
        return score


SCORE = schema_of(Score)
Scores = dict[str, Score]


def recall_text(recall: float | None) -> str:
    """Describe the recall of an approximate neighbor search; "" for an exact one. Rounded down, so
    100 % means that no neighbor is missing."""
    if recall is None or not 0 <= recall <= 1:
        return ""
    return message("approximate neighbors, recall {recall} %", recall=f"{math.floor(1000 * recall) / 10:.1f}")


def scores_to_json(scores: Mapping[str, Score]) -> dict[str, JsonObject]:
    """Return the scores of one embedding as plain values, by metric."""
    return {name: score.to_json() for name, score in scores.items()}


def scores_from_json(record: object, arrays: Mapping[str, np.ndarray] | None = None) -> Scores:
    """Read the scores of one embedding, by metric; {} if the record is not an object. Args: arrays: values per sample,
    by "metric:name"."""
    items = record.items() if isinstance(record, dict) else ()
    scores = {name: Score.from_json(value, name) for name, value in islice(items, MOST)}
    for key, array in (arrays or {}).items():
        name, _, part = key.partition(":")
        if name in scores:
            scores[name].arrays[part] = array
    return scores


def _pair(ends: Sequence[float | None] | None) -> tuple[float, float] | None:
    low, high = ends or (None, None)
    return None if low is None or high is None else (low, high)


def wilson(right: float, n: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share. Source: Wilson 1927, J. Am. Stat. Assoc. 22, 209."""
    if not n:
        return 0.0, 1.0
    share, z = right / n, Z95**2 / n
    center = (share + z / 2) / (1 + z)
    half = math.sqrt(z * share * (1 - share) + z * z / 4) / (1 + z)
    return 0.0 if not right else center - half, 1.0 if right == n else center + half


def paired_interval(differences: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the mean of differences (n) between right (1) and wrong (0): Agresti and Min 2005,
    Stat. Med. 24, 729, which adds half a sample to each of the four outcomes."""
    n = len(differences) + 2
    middle = float(differences.sum()) / n
    half = Z95 * math.sqrt(((float(np.square(differences).sum()) + 1) / n - middle**2) / n)
    return max(-1.0, middle - half), min(1.0, middle + half)


def over_seeds(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean over seeds, by Student's t; None for fewer than three values."""
    from scipy.special import stdtrit

    n = len(values)
    if n < SEEDS:
        return None
    mean = math.fsum(values) / n
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    half = float(stdtrit(n - 1, 0.975)) * spread / math.sqrt(n)
    return mean - half, mean + half


def mcnemar(a: np.ndarray, b: np.ndarray) -> float:
    """Return the exact two-sided p of McNemar's test for two boolean vectors (n); 1 if they are equal."""
    from scipy.special import bdtr

    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    return min(1.0, 2 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5)))


def paired_p(a: np.ndarray, b: np.ndarray, groups: np.ndarray | None = None) -> float:
    """Return the two-sided p of paired samples (n): McNemar's test for booleans, else the permutation test.
    Args: groups: (n), from 0; samples of a group depend on each other, so the signs of their sum are permuted."""
    if groups is not None:
        return permutation(np.bincount(groups, a.astype(np.float64) - b))
    return mcnemar(a, b) if a.dtype == b.dtype == np.bool_ else permutation(a.astype(np.float64) - b)


def permutation(d: np.ndarray) -> float:
    """Return the two-sided p of the mean of paired differences d (n): the share of random sign flips with a mean as far
    from 0; 1 if all differences are 0."""
    d, rng, count = d[d != 0].astype(np.float64), np.random.default_rng(0), 0
    if not len(d):
        return 1.0
    least = abs(d.sum()) - 1e-9 * np.abs(d).sum()
    for _ in range(0, FLIPS, AT_ONCE):
        flipped = rng.integers(0, 2, (AT_ONCE, len(d)), np.int8).astype(np.float64) @ d  # sum of unflipped ones
        count += int((np.abs(2 * flipped - d.sum()) >= least).sum())
    return (1 + count) / (1 + FLIPS)


def holm(p: Sequence[float]) -> list[float]:
    """Return p values corrected for multiple tests by Holm's method, in the same order."""
    corrected, so_far = [0.0] * len(p), 0.0
    for rank, q in enumerate(np.argsort(p, kind="stable")):
        corrected[q] = so_far = max(so_far, min(1.0, p[q] * (len(p) - rank)))
    return corrected


def difference(a: np.ndarray, b: np.ndarray, groups: np.ndarray | None = None) -> tuple[float, tuple[float, float]]:
    """Return the mean of a − b over paired samples (n) and its 95 % bootstrap interval. Args: groups: (n), from 0;
    whole groups are drawn (cluster bootstrap)."""
    d, rng = a.astype(np.float64) - b.astype(np.float64), np.random.default_rng(0)
    counts = np.array([(d == v).sum() for v in (-1, 0, 1)])
    if groups is not None:
        sums, sizes = np.bincount(groups, d), np.bincount(groups)
        chosen = (rng.integers(0, len(sums), len(sums)) for _ in range(DRAWS))
        means = np.array([sums[at].sum() / max(1, sizes[at].sum()) for at in chosen])
    elif counts.sum() == len(d):  # correctness: resample the three outcomes
        drawn = rng.multinomial(len(d), counts / len(d), DRAWS)
        means = (drawn[:, 2] - drawn[:, 0]) / len(d)
    else:
        means = np.array([d[rng.integers(0, len(d), len(d))].mean() for _ in range(DRAWS)])
    low, high = np.quantile(means, [0.025, 0.975])
    return float(d.mean()), (float(low), float(high))


def mean_intervals(d: np.ndarray) -> np.ndarray:
    """Return the 95 % bootstrap interval (c, 2) of the mean of each column of d (n, c), with the same draws for all."""
    n, rng = len(d), np.random.default_rng(0)
    means = np.concatenate([rng.multinomial(n, np.full(n, 1 / n), AT_ONCE) @ d / n for _ in range(DRAWS // AT_ONCE)])
    return np.quantile(means, [0.025, 0.975], axis=0).T


def t_test(d: np.ndarray, value: float) -> float:
    """Return the two-sided p of the mean `value`, with the spread of d (n); 1 if nothing differs."""
    from scipy.special import stdtr

    spread = float(d.std(ddof=1)) / np.sqrt(len(d)) if len(d) > 1 else 0.0
    if spread == 0:
        return 1.0 if abs(value) < 1e-12 else 0.0
    return float(2 * stdtr(len(d) - 1, -abs(value) / spread))


# --- intervals by betting ---


BETS, WEIGHTS = np.polynomial.legendre.leggauss(64)  # of all bets that are possible, from −1 to 1
EDGE, STEPS = 1e-9, 50  # distance of m from the ends; halvings of the interval in which an end lies


def log_capital(
    values: np.ndarray, counts: np.ndarray, mean: float, low: float, high: float, bets: tuple[float, float] = (-1, 1)
) -> float:
    """Return the log capital of bets against a mean. Args: values: (k) within `low` and `high`; counts: (k) of each;
    bets: range of the bets; (-1, 0) tests whether the mean is at least `mean`, (0, 1) at most."""
    share = bets[0] + (bets[1] - bets[0]) * (1 + BETS) / 2
    stake = share / np.where(share > 0, mean - low, high - mean)
    gains = np.log1p(stake[:, None] * (np.asarray(values) - mean)) @ counts  # (bets)
    return float(np.logaddexp.reduce(gains + np.log(WEIGHTS / 2)))


def mean_interval(values: np.ndarray, counts: np.ndarray, low: float, high: float) -> tuple[float, float]:
    """Return the interval of the mean that holds with probability 95 % at all numbers of observations together.
    Args: values: (k) within `low` and `high`; counts: (k) of each."""
    if not np.sum(counts):
        return low, high
    center = float(np.clip(np.average(values, weights=counts), low + EDGE, high - EDGE))
    ends = []
    for end, inside in ((low, low + EDGE), (high, high - EDGE)):
        inner, outer = center, inside
        for _ in range(STEPS):
            middle = (inner + outer) / 2
            is_plausible = log_capital(values, counts, middle, low, high) < -np.log(0.05)
            inner, outer = (middle, outer) if is_plausible else (inner, middle)
        ends.append(end if outer == inside else outer)
    return ends[0], ends[1]


def lower_bound(values: np.ndarray, counts: np.ndarray, low: float, high: float, alpha: float = 0.05) -> float:
    """Return a lower bound of the mean that holds with probability 1 − α at all numbers of observations together.
    Args: values: (k) within `low` and `high`; counts: (k) of each."""
    if not np.sum(counts):
        return low
    outer, inner = low + EDGE, float(np.clip(np.average(values, weights=counts), low + EDGE, high - EDGE))
    for _ in range(STEPS):
        middle = (outer + inner) / 2
        is_refuted = log_capital(values, counts, middle, low, high, (0, 1)) >= -np.log(alpha)
        outer, inner = (middle, inner) if is_refuted else (outer, middle)
    return low if outer == low + EDGE else outer

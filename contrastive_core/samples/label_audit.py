"""How many labels are wrong, from a person's decisions: an estimate with an interval, and a stop rule. Torch-free.

No estimate from a model alone can promise coverage, because wrong labels and ambiguous classes look alike. A few
decisions on random rows can. Let p be the model's probability that a label is wrong.

- **Draws.** Every third row comes in turn from strata of equal Σ √(p(1−p)), where few checks tell most. The others are
  drawn uniformly: they find wrong labels that the model does not see.
- **Estimate.** Each stratum has a Beta posterior. Its prior is worth `PRIOR` checks at the mean of the recalibrated p.
  Rows that nobody checked are drawn from the posterior. Each end of the interval has a prior of its own, nearer to the
  exact (Clopper-Pearson) one, because p may miss wrong labels.
- **Stop rule.** `bound` is the share of labels that is still wrong at most, once all decisions are applied. It inverts
  the prior-posterior ratio of the uniform draws, a martingale under sampling without replacement (Waudby-Smith &
  Ramdas 2020, arXiv 2006.04347). It holds with 95 % however often somebody looks.
- **Recalibration.** The share of wrong labels among the decided rows of similar p, shrunk towards p.

`python -m benchmarks.coverage` measures all three. NumPy alone, because the app imports it: SciPy takes a second.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import lgamma, log

import numpy as np

from contrastive_core.storage.json_files import JsonObject

__all__ = [
    "CLEAN",
    "Audit",
    "audit",
    "bounds",
    "calibrate",
    "draw",
    "is_wrong",
    "plain_bound",
    "recalibrate",
    "strata_of",
]

STRATA = 6
TURN = 3  # of so many rows the first is drawn from a stratum, the others uniformly
FLOOR = 1e-3  # of p, so that rows of which the model is certain are sampled too
PRIOR = 2.0  # checks that a stratum's prior is worth
EXTRA = {"number": (0.05, 0.25), "low": (1e-3, 0.75), "high": (0.15, 0.25)}  # wrong and right ones added to the prior
LEVEL = 0.95
DRAWS = 4000  # from the posterior
GRID = 4000  # counts that the bound tries
RANKED = 0.9  # decided share of the top of the list, down to which it counts as worked through
NEAR_ZERO = 0.05  # of the bound's prior Beta(0.05, 1): few wrong labels are expected where one thinks of stopping
CLEAN = 0.01  # share of wrong labels below which a person may stop
LABEL_LISTS = ("", "mislabeled", "random", "ambiguous", "loss")  # where to keep or drop a sample judges its label
BELIEVED, WIDTH = (
    4.0,
    1.0,
)  # decisions that the model is worth where it is corrected; logits within which rows are alike
POINTS, TINY = 200, 1e-9  # of the correction; p that is still told from 0


@dataclass(frozen=True)
class Audit:
    """The estimate from the decisions on a data set."""

    number: float  # wrong labels of all, those already decided included
    interval: tuple[float, float]  # 95 %
    bound: float  # share of labels still wrong at most (95 %, at any time); 1 before the first uniform draw
    checked: int  # random rows that were decided
    found: int  # of these, wrong
    probability: np.ndarray  # (n) recalibrated; 0 or 1 where decided
    remaining: int | None  # random checks until the bound is below CLEAN, if all are right; None: more than there are


@dataclass(frozen=True)
class _Evidence:
    """The inputs of the bound: the rows below the reviewed top, and a random sample of them."""

    labels: int
    open_top: int  # undecided rows of the top, which count as wrong
    size: int  # rows below the top
    known: int  # of these, decided
    wrong: int  # of these, wrong
    n: int  # of the sample, decided
    k: int  # of these, wrong

    def bound(self, more: int = 0) -> float:
        """The share of labels that is still wrong at most, `more` right rows from now."""
        most = _most(self.size, self.n + more, self.k, self.wrong, self.known + more)
        return (most + self.open_top) / max(1, self.labels)

    def remaining(self) -> int | None:
        """Random checks, all right, until the bound is below CLEAN."""
        low, high = -1, self.size - self.known
        if self.bound(high) >= CLEAN:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.bound(max(0, middle)) < CLEAN else (middle, high)
        checks = -(-high * TURN // (TURN - 1))
        return checks if checks <= self.size - self.known + self.open_top else None


def is_wrong(mark: JsonObject) -> float:
    """Return whether a decision says that the label is wrong: 1, 0, or NaN where it says nothing of the label."""
    what, judges = mark.get("what"), str(mark.get("list") or "") in LABEL_LISTS
    if what == "relabel":
        return float(mark.get("label") != mark.get("given"))
    return {"keep": 0.0, "drop": 1.0}.get(str(what), np.nan) if judges else np.nan


def strata_of(p: np.ndarray, count: int = STRATA) -> np.ndarray:
    """Return the stratum (n) of each row, 0 the least suspicious; −1 where p is NaN."""
    stratum, known = np.full(len(p), -1), np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    clipped = np.clip(p[order], FLOOR, 1 - FLOOR)
    total = np.cumsum(np.sqrt(clipped * (1 - clipped)))
    if len(total):
        stratum[order] = np.minimum((count * total / total[-1] - 1e-9).astype(int), count - 1)
    return stratum


def draw(p: np.ndarray, size: int, seed: int = 0) -> np.ndarray:
    """Return random rows to check, in the order to show them. A larger size starts with the rows of a smaller one."""
    stratum, shuffled, rows = strata_of(p), _shuffled(p, [seed, 0]), dict[int, None]()
    turn = np.empty(len(p), int)  # of each row within its stratum
    for h in range(STRATA):
        members = shuffled[stratum[shuffled] == h]
        turn[members] = np.arange(len(members))
    by_stratum = iter(shuffled[np.lexsort((stratum[shuffled], turn[shuffled]))])
    uniform = iter(_shuffled(p, [seed, 1]))
    for place in range(min(size, len(shuffled))):
        rows[next(int(r) for r in (uniform if place % TURN else by_stratum) if r not in rows)] = None
    return np.array([*rows], int)


def _shuffled(p: np.ndarray, seed: list[int]) -> np.ndarray:
    return np.random.default_rng(seed).permutation(np.flatnonzero(np.isfinite(p)))


def audit(p: np.ndarray, wrong: np.ndarray, drawn: np.ndarray, seed: int = 0) -> Audit:
    """Estimate the number of wrong labels, and bound the share that is left.

    Args: p: (n) the model's probability that a label is wrong, NaN without a label; wrong: (n) 1 where a person found
        the label wrong, 0 right, NaN undecided; drawn: rows of `draw` in their order, decided or not; seed: of `draw`.
    """
    rng, decided = np.random.default_rng(seed), np.isfinite(wrong)
    hits, is_drawn = np.nan_to_num(wrong) > 0.5, _mask(len(p), drawn)
    top, probability = _worked_through(p, decided, is_drawn), recalibrate(p, wrong)
    part = 2 * strata_of(p) + (np.nan_to_num(p) > 0.5)  # a stratum of both kinds would hide what p tells
    part[top] = 2 * STRATA  # the top of the list is a part of its own
    known = float((hits & np.isfinite(p)).sum())
    number, ends = known, {end: np.full(DRAWS, known) for end in ("low", "high")}
    for h in range(2 * STRATA + 1):
        rows = part == h
        checks, left = rows & decided & (is_drawn | top), int((rows & ~decided).sum())
        if left:
            n, k, mean = checks.sum(), (checks & hits).sum(), probability[rows & ~decided].mean()
            a, b = PRIOR * mean + k, PRIOR * (1 - mean) + n - k
            number += left * (a + EXTRA["number"][0]) / (a + b + sum(EXTRA["number"]))
            for end, draws in ends.items():
                draws += rng.binomial(left, rng.beta(a + EXTRA[end][0], b + EXTRA[end][1], DRAWS))
    low, high = np.quantile(ends["low"], (1 - LEVEL) / 2), np.quantile(ends["high"], (1 + LEVEL) / 2)
    random = is_drawn & decided
    evidence = _evidence(p, wrong, is_drawn, top, _shuffled(p, [seed, 1]))
    return Audit(
        *(number, (float(low), float(high)), evidence.bound(), int(random.sum()), int((random & hits).sum())),
        *(probability, evidence.remaining()),
    )


def bounds(p: np.ndarray, wrong: np.ndarray, drawn: np.ndarray, sizes: list[int], seed: int = 0) -> list[float]:
    """Return the bound after each number of random checks, with all other decisions as they are."""
    found, uniform = [], _shuffled(p, [seed, 1])
    top = _worked_through(p, np.isfinite(wrong), _mask(len(p), drawn))
    for size in sizes:
        then, later = wrong.copy(), drawn[size:]
        then[later[~top[later]]] = np.nan
        found.append(_evidence(p, then, _mask(len(p), drawn[:size]), top, uniform).bound())
    return found


def plain_bound(labels: int, checks: int, share: float) -> float:
    """Return the bound after so many uniform checks alone, if they find their share of wrong labels."""
    return _most(labels, checks, round(share * checks), round(share * checks), checks) / max(1, labels)


def recalibrate(p: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Return p (n) corrected by the decisions (n): 0 and 1 where decided, `calibrate` elsewhere."""
    return np.where(np.isfinite(wrong) & np.isfinite(p), wrong, calibrate(p, wrong))


def calibrate(p: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Return p (n) corrected by the decisions (n) on rows of similar p; rows keep their order.

    The model counts as `BELIEVED` decisions everywhere, so that one decision does not overturn a list, and decisions on
    suspects say nothing of rows that are no suspects.
    """
    decided = np.isfinite(wrong) & np.isfinite(p)
    if not decided.any():
        return p
    grid = np.linspace(_logit(FLOOR), _logit(1 - FLOOR), POINTS)
    near = np.exp(-0.5 * ((grid[:, None] - _logit(p[decided])) / WIDTH) ** 2)  # (points, decided)
    share = (BELIEVED * _expit(grid) + near @ wrong[decided]) / (BELIEVED + near.sum(1))
    rising = (np.maximum.accumulate(share) + np.minimum.accumulate(share[::-1])[::-1]) / 2
    shift = np.interp(_logit(p), grid, _logit(rising, TINY) - grid)
    return _expit(_logit(p, TINY) + shift)


def _logit(p: np.ndarray | float, floor: float = FLOOR) -> np.ndarray:
    clipped = np.clip(p, floor, 1 - floor)
    return np.asarray(np.log(clipped / (1 - clipped)))


def _expit(z: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(z / 2))


def _worked_through(p: np.ndarray, decided: np.ndarray, is_drawn: np.ndarray) -> np.ndarray:
    """The top of the list (n) bool, as far as nearly all of it is decided; random draws do not count, since suspects
    are none."""
    order = np.argsort(-np.where(np.isfinite(p), p, -1.0), kind="stable")
    own = ~is_drawn[order]
    share = np.cumsum(decided[order] & own) / np.maximum(1, np.cumsum(own))
    long_enough = np.flatnonzero(share >= RANKED)
    top = np.zeros(len(p), bool)
    top[order[: long_enough[-1] + 1 if len(long_enough) else 0]] = True
    return top & np.isfinite(p)


def _evidence(
    p: np.ndarray, wrong: np.ndarray, is_drawn: np.ndarray, top: np.ndarray, uniform: np.ndarray
) -> _Evidence:
    """Return the evidence of the uniform draws about the rows below the top.

    The start of the uniform order is a simple random sample of them, as far as it is drawn.
    """
    labeled, decided = np.isfinite(p), np.isfinite(wrong)
    reached = is_drawn[uniform]
    start = uniform[: len(uniform) if reached.all() else int(reached.argmin())]
    rest = labeled & ~top
    sample, known = wrong[start[(rest & decided)[start]]], wrong[rest & decided]
    return _Evidence(
        *(int(labeled.sum()), int((labeled & top & ~decided).sum()), int(rest.sum())),
        *(len(known), int((known > 0.5).sum()), len(sample), int((sample > 0.5).sum())),
    )


def _most(size: int, n: int, k: int, wrong: int, known: int) -> int:
    """How many of `size` labels are still wrong at most: n of them drawn at random had k wrong ones; of `known` in all
    `wrong` are."""
    last = size - known + wrong
    counts = np.unique(np.linspace(wrong, last, min(GRID, last - wrong + 1)).astype(int))
    falling = [_log_falling(size, x, m) for x, m in ((counts, k), (size - counts, n - k), (np.array([size]), n))]
    likelihood = falling[0] + falling[1] - falling[2]
    marginal = _beta_ln(NEAR_ZERO + k, 1 + n - k) - _beta_ln(NEAR_ZERO, 1)
    possible = np.flatnonzero(marginal - likelihood < log(1 / (1 - LEVEL)))
    return int(counts[min(possible[-1] + 1, len(counts) - 1)]) - wrong if len(possible) else 0


def _mask(size: int, rows: np.ndarray) -> np.ndarray:
    mask = np.zeros(size, bool)
    mask[rows] = True
    return mask


def _beta_ln(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


@lru_cache(2)
def _log_factorials(size: int) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, size + 1)))])


def _log_falling(size: int, x: np.ndarray, k: int) -> np.ndarray:
    """log x(x − 1)…(x − k + 1) of x up to `size`, −inf where x < k."""
    table = _log_factorials(size)
    return np.where(x >= k, table[x] - table[np.maximum(x - k, 0)], -np.inf)

"""How many labels are wrong, from a person's decisions: an estimate with an interval, and a stop rule.

No estimate from a model alone can promise coverage, because wrong labels and ambiguous classes look alike. A few
decisions on random rows can. Let p be the model's probability that a label is wrong.

- **Draws.** The first `EQUAL` rows come equally from strata of equal Σ √(p(1−p)), where few checks tell most. Later
  rows are drawn uniformly.
- **Estimate.** Each stratum has a Beta posterior. Its prior is worth `PRIOR` checks at the mean of the recalibrated p.
  Rows that nobody checked are drawn from the posterior.
- **Stop rule.** `bound` is the share of labels that is still wrong at most, once all decisions are applied. It inverts
  the prior-posterior ratio of the uniform draws, a martingale under sampling without replacement (Waudby-Smith &
  Ramdas 2020, arXiv 2006.04347). It holds with 95 % however often somebody looks.
- **Recalibration.** Platt scaling of p by the decisions, with a weak prior on the identity.

`python -m benchmarks.coverage` measures all three.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaln, expit, gammaln, logit

__all__ = ["Audit", "audit", "draw", "recalibrate", "strata_of"]

STRATA = 6
EQUAL = 120  # rows drawn equally from all strata
FLOOR = 1e-3  # of p, so that rows of which the model is certain are sampled too
PRIOR = 2.0  # checks that a stratum's prior is worth
EXTRA_WRONG, EXTRA_RIGHT = 0.05, 0.25  # added to the prior; more would push rare errors up
LEVEL = 0.95
DRAWS = 4000  # from the posterior
GRID = 4000  # counts that the bound tries
RANKED = 0.9  # decided share of the top of the list, down to which it counts as worked through
NEAR_ZERO = 0.05  # of the bound's prior Beta(0.05, 1): few wrong labels are expected where one thinks of stopping


@dataclass(frozen=True)
class Audit:
    """What the decisions on a data set say."""

    number: float  # wrong labels of all, those already decided included
    interval: tuple[float, float]  # 95 %
    bound: float  # share of labels still wrong at most (95 %, at any time); 1 before the first uniform draw
    checked: int  # random rows that were decided
    found: int  # of these, wrong
    probability: np.ndarray  # (n) recalibrated; 0 or 1 where decided


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
    rng, stratum = np.random.default_rng(seed), strata_of(p)
    shuffled = rng.permutation(np.flatnonzero(stratum >= 0))
    turn = np.empty(len(p), int)  # of each row within its stratum
    for h in range(STRATA):
        members = shuffled[stratum[shuffled] == h]
        turn[members] = np.arange(len(members))
    in_turn = shuffled[np.lexsort((stratum[shuffled], turn[shuffled]))]
    return np.concatenate([in_turn[:EQUAL], rng.permutation(in_turn[EQUAL:])])[:size]


def audit(p: np.ndarray, wrong: np.ndarray, drawn: np.ndarray, seed: int = 0) -> Audit:
    """Estimate the number of wrong labels, and bound the share that is left.

    Args: p: (n) the model's probability that a label is wrong, NaN without a label; wrong: (n) 1 where a person found
        the label wrong, 0 right, NaN undecided; drawn: rows of `draw` in their order, decided or not.
    """
    rng, decided = np.random.default_rng(seed), np.isfinite(wrong)
    labeled, hits = np.isfinite(p), np.nan_to_num(wrong) > 0.5
    is_drawn = np.zeros(len(p), bool)
    is_drawn[drawn] = True
    top, probability = _worked_through(p, decided), recalibrate(p, wrong)
    part = 2 * strata_of(p) + (np.nan_to_num(p) > 0.5)  # a stratum of both kinds would hide what p tells
    part[top] = 2 * STRATA  # the top of the list is a part of its own
    number = np.full(DRAWS, float((hits & labeled).sum()))
    for h in range(2 * STRATA + 1):
        rows = part == h
        checks, left = rows & decided & (is_drawn | top), rows & ~decided
        if left.any():
            n, k, mean = checks.sum(), (checks & hits).sum(), probability[left].mean()
            a, b = PRIOR * mean + EXTRA_WRONG + k, PRIOR * (1 - mean) + EXTRA_RIGHT + n - k
            number += rng.binomial(left.sum(), rng.beta(a, b, DRAWS))
    low, high = np.quantile(number, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    random = is_drawn & decided
    return Audit(
        float(number.mean()),
        (float(low), float(high)),
        _bound(wrong, drawn, top, labeled),
        int(random.sum()),
        int((random & hits).sum()),
        probability,
    )


def recalibrate(p: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Return p (n) corrected by the decisions (n): 0 and 1 where decided, Platt scaling elsewhere.

    The slope turns about the logit of the mean of p, because decisions on suspects alone say little about other rows.
    """
    known = np.isfinite(p)
    decided = np.isfinite(wrong) & known
    if not decided.any():
        return p
    pivot = logit(np.clip(p[known].mean(), FLOOR, 1 - FLOOR))
    scores = logit(np.clip(p, FLOOR, 1 - FLOOR)) - pivot
    x, y = scores[decided], wrong[decided]

    def cost(theta: np.ndarray) -> float:
        z = pivot + theta[0] + theta[1] * x
        return float(np.logaddexp(0, z).sum() - (y * z).sum() + theta[0] ** 2 / 8 + (theta[1] - 1) ** 2)

    offset, slope = minimize(cost, np.array([0.0, 1.0]), method="L-BFGS-B", bounds=[(None, None), (0, None)]).x
    return np.where(decided, wrong, expit(pivot + offset + slope * scores))


def _worked_through(p: np.ndarray, decided: np.ndarray) -> np.ndarray:
    """The top of the list (n) bool, as far as nearly all of it is decided: suspects are no random draw."""
    order = np.argsort(-np.where(np.isfinite(p), p, -1.0), kind="stable")
    share = np.cumsum(decided[order]) / np.arange(1, len(p) + 1)
    long_enough = np.flatnonzero(share >= RANKED)
    top = np.zeros(len(p), bool)
    top[order[: long_enough[-1] + 1 if len(long_enough) else 0]] = True
    return top & np.isfinite(p)


def _bound(wrong: np.ndarray, drawn: np.ndarray, top: np.ndarray, labeled: np.ndarray) -> float:
    """The share of labels that is wrong at most after all decisions, from the uniform draws alone.

    Undecided rows of the top and of the first draws count as wrong. Other decided rows are known.
    """
    decided, uniform = np.isfinite(wrong), np.zeros(len(wrong), bool)
    uniform[drawn[EQUAL:]] = True
    first = np.zeros(len(wrong), bool)
    first[drawn[:EQUAL]] = True
    population = labeled & ~top & ~first & (uniform | ~decided)
    sample = population & uniform & decided
    size, n, k = int(population.sum()), int(sample.sum()), int((wrong[sample] > 0.5).sum())
    counts = np.unique(np.linspace(k, size - n + k, min(GRID, size - n + 1)).astype(int))
    marginal = betaln(NEAR_ZERO + k, 1 + n - k) - betaln(NEAR_ZERO, 1)
    likelihood = _log_falling(counts, k) + _log_falling(size - counts, n - k) - _log_falling(np.array([size]), n)
    possible = counts[marginal - likelihood < np.log(1 / (1 - LEVEL))]
    most = possible.max() - k if len(possible) else 0
    unknown = (labeled & ~decided & (top | first)).sum()
    return float((most + unknown) / max(1, labeled.sum()))


def _log_falling(x: np.ndarray, k: int) -> np.ndarray:
    """log x(x − 1)…(x − k + 1), −inf where x < k."""
    return np.where(x >= k, gammaln(x + 1.0) - gammaln(np.maximum(x - k, 0) + 1.0), -np.inf)

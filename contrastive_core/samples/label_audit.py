"""Estimate the number of wrong labels from a person's decisions, with an interval and a stop rule. Torch-free.

No estimate from a model alone can guarantee coverage, because wrong labels and ambiguous classes look alike. A few
decisions on random rows can. Let p be the model's probability that a label is wrong.

- **Draws.** Rows are drawn uniformly, in an order that depends only on their ids: the same for every run of a data set.
- **Evidence.** Only individual decisions by a person on random rows change the estimate. Decisions on suspects count
  only for those rows; decisions on many samples at once do not count as evidence.
- **Estimate.** Each stratum of p has a Beta posterior. Its prior is worth `PRIOR` checks at the mean of the
  recalibrated p. Unchecked rows are drawn from the posterior. Each end of the interval has its own prior, nearer to the
  exact (Clopper-Pearson) one, because p may miss wrong labels.
- **Stop rule.** `bound` is an upper bound of the share of labels still wrong after all decisions. It inverts the
  prior-posterior ratio of the draws, a martingale under sampling without replacement (Waudby-Smith & Ramdas 2020, arXiv
  2006.04347). It holds with 95 % at any number of checks.
- **Recalibration.** The share of wrong labels among the checked rows of similar p, shrunk towards p.

`python -m benchmarks.coverage` measures all three. NumPy alone, because the app imports it: SciPy takes a second."""

import bisect
import hashlib
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from math import lgamma, log

import numpy as np

from contrastive_core.base.messages import Message, message
from contrastive_core.runs.run import Run
from contrastive_core.samples.annotations import Mark, Marks
from contrastive_core.samples.sample_lists import LISTS, RANDOM
from contrastive_core.samples.sample_table import SampleTable

GONE_THROUGH = 0.75  # decided share of the first rows of the draw, which counts as a sample
STRATA = 6
FLOOR = 1e-3  # of p, so that rows of which the model is certain are sampled too
PRIOR = 2.0  # checks that a stratum's prior is worth
EXTRA = {"number": (0.05, 0.25), "low": (1e-3, 0.75), "high": (0.15, 0.25)}  # wrong and right ones added to the prior
LEVEL = 0.95
DRAWS = 4000  # from the posterior
GRID = 4000  # counts that the bound tries
RANKED = 0.9  # decided share of the top of the list, down to which it counts as worked through
NEAR_ZERO = 0.05  # of the bound's prior Beta(0.05, 1): few wrong labels are expected where one thinks of stopping
CLEAN = 0.01  # share of wrong labels below which a person may stop
LABEL_LISTS = ("", "ambiguous", *(one.key for one in LISTS.values() if one.of_labels))  # "ambiguous" of version 0.2
BELIEVED, WIDTH = 4.0, 1.0  # checks the model is worth where it is corrected; logits within which rows are alike
POINTS, TINY = 200, 1e-9  # of the correction; p that is still told from 0
LEFT = (0.1, 0.05, 0.01)  # shares of wrong labels that a person may want
FEW = 600  # labels, or right rows, beyond which suspects are the better way to a low bound


@dataclass(frozen=True)
class Audit:
    """Estimate of wrong labels from the decisions on a data set."""

    number: float  # wrong labels of all, those already decided included
    interval: tuple[float, float]  # 95 %
    bound: float  # share of labels still wrong at most (95 %, at any time); 1 before the first uniform draw
    checked: int  # random rows that were decided
    found: int  # of these, wrong
    probability: np.ndarray  # (n) by the checks; 0 or 1 where decided
    remaining: int | None  # random checks until the bound is below CLEAN, if all are right; None: more than there are
    reviews: dict[float, int]  # of the likeliest suspects, until about such a share of labels is wrong


@dataclass(frozen=True, eq=False)
class LabelAudit:
    """The label decisions of one split and the estimate from them."""

    p: np.ndarray  # (n) as the encoder has it; NaN without a label, and where it was settled before the training
    wrong: np.ndarray  # (n) 1, 0, NaN where nobody decided by itself
    order: np.ndarray  # random rows, in the order to check them
    reached: int  # so many of them were gone through
    found: Audit

    @property
    def labels(self) -> int:
        return int(np.isfinite(self.p).sum())

    @property
    def estimate(self) -> str:
        """Describe the number of wrong labels with its interval; "" before the first random check."""
        if not self.found.checked:
            return ""
        low, high = self.found.interval
        return message(
            "About {number} of {labels} labels are wrong (95 % CI: {low} to {high}). Random checks: {checks}, of them "
            "wrong: {wrong}.",
            number=f"{self.found.number:,.0f}",
            labels=f"{self.labels:,}",
            low=f"{low:,.0f}",
            high=f"{high:,.0f}",
            checks=f"{self.found.checked:,}",
            wrong=f"{self.found.found:,}",
        )

    @property
    def advice(self) -> list[Message]:
        """Describe whether the person may stop, or how to get there, with the decisions applied."""
        found, left = self.found, int((np.isfinite(self.p) & np.isnan(self.wrong)).sum())
        if found.bound < CLEAN:
            return [
                message("You can stop: 95 % sure that fewer than 1 % of labels are wrong, with your decisions applied.")
            ]
        told = []
        if found.bound < 1:
            bound = f"{100 * found.bound:.1f} %"
            told.append(message("With your decisions applied, at most {bound} are still wrong (95 %).", bound=bound))
        more = found.remaining
        if more is not None and more <= min(left, FEW) and found.found * more <= found.checked:
            told.append(message("You can stop once {count} more random rows are right.", count=f"{more:,}"))
        elif left <= FEW and (more is None or more > left):
            told.append(message("This set is small: decide on all rows."))
        else:
            told.append(message("Decide on the likely mislabeled samples: that lowers the bound fastest."))
        if reviews := [f"{number:,} (≤ {100 * share:.0f} %)" for share, number in found.reviews.items() if number]:
            told.append(
                message(
                    "Suspects to review until about this share of labels is wrong: {numbers}.",
                    numbers=", ".join(reviews),
                )
            )
        return told


def audit_table(table: SampleTable, marks: Marks, run: Run | None = None) -> LabelAudit | None:
    """Audit a table by the decisions of its split; None without labels. If the run was trained on corrected labels,
    earlier decisions are ignored: they say nothing about the remaining labels."""
    p, wrong = np.array(table.columns["mislabeled"], np.float64), np.full(len(table), np.nan)
    if not np.isfinite(p).any():
        return None
    is_cleaned = run is not None and bool(run.config.get("exclude") or run.config.get("relabel"))
    trained = datetime.fromisoformat(str(run.manifest["created"])).timestamp() if run and is_cleaned else 0.0
    checked = np.zeros(len(table), bool)
    for sample, mark in marks.items():
        if (row := table.row(sample)) is not None:
            wrong[row], checked[row] = is_wrong(mark), mark.get("list") == RANDOM
            if float(mark.get("time", 0.0)) < trained:
                p[row] = wrong[row] = np.nan
    order = draw(table.columns["id"], np.isfinite(p))
    share = np.cumsum(np.isfinite(wrong[order])) / np.arange(1, len(order) + 1)
    reached = int(np.flatnonzero(checked[order] & (share >= GONE_THROUGH)).max(initial=-1)) + 1
    return LabelAudit(p, wrong, order, reached, audit(p, wrong, order[:reached]))


def is_wrong(mark: Mark) -> float:
    """Return 1 if a decision marks the label as wrong, 0 if right. NaN if it does not judge the label or was made on
    many samples at once."""
    what, judges = mark.get("what"), str(mark.get("list") or "") in LABEL_LISTS
    if mark.get("many"):
        return np.nan
    if what == "relabel":
        return float(mark.get("label") != mark.get("given"))
    return {"keep": 0.0, "drop": 1.0}.get(str(what), np.nan) if judges else np.nan


def strata_of(p: np.ndarray) -> np.ndarray:
    """Return the stratum (n) of each row, 0 the least suspicious; −1 where p is NaN."""
    stratum, known = np.full(len(p), -1), np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    clipped = np.clip(p[order], FLOOR, 1 - FLOOR)
    total = np.cumsum(np.sqrt(clipped * (1 - clipped)))
    if len(total):
        stratum[order] = np.minimum((STRATA * total / total[-1] - 1e-9).astype(int), STRATA - 1)
    return stratum


def draw(ids: np.ndarray, labeled: np.ndarray) -> np.ndarray:
    """Return the labeled rows in a random order that depends only on their ids (n)."""
    rows = np.flatnonzero(labeled)
    keys = [hashlib.blake2b(str(name).encode(), digest_size=8).digest() for name in ids[rows]]
    return rows[np.argsort(np.array(keys, "S8"), kind="stable")]


def audit(p: np.ndarray, wrong: np.ndarray, drawn: np.ndarray) -> Audit:
    """Estimate the number of wrong labels, and bound the share that remains.

    Args: p: (n) the model's probability that a label is wrong, NaN without a label; wrong: (n) 1 if a person found
        the label wrong, 0 right, NaN undecided; drawn: the first random rows of a draw, decided or not."""
    rng, decided = np.random.default_rng(0), np.isfinite(wrong)
    hits, is_drawn = np.nan_to_num(wrong) > 0.5, np.isin(np.arange(len(p)), drawn)
    order = np.argsort(-np.where(np.isfinite(p), p, -1.0), kind="stable")
    own = ~is_drawn[order]  # draws are no suspects
    share = np.cumsum(decided[order] & own) / np.maximum(1, np.cumsum(own))
    top = np.zeros(len(p), bool)  # of the list, down to where nearly all are decided
    top[order[: np.flatnonzero(share >= RANKED).max(initial=-1) + 1]] = True
    top &= np.isfinite(p)
    probability = np.where(decided & np.isfinite(p), wrong, calibrate(p, np.where(is_drawn, wrong, np.nan)))
    part = 2 * strata_of(p) + (np.nan_to_num(p) > 0.5)  # a stratum of both kinds would hide what p tells
    part[top] = 2 * STRATA  # the top of the list is a part of its own
    known = float((hits & np.isfinite(p)).sum())
    number, ends = known, {end: np.full(DRAWS, known) for end in ("low", "high")}
    for h in range(2 * STRATA + 1):
        checks, open_rows = (part == h) & decided & is_drawn, (part == h) & ~decided
        if left := int(open_rows.sum()):
            n, k, mean = checks.sum(), (checks & hits).sum(), probability[open_rows].mean()
            a, b = PRIOR * mean + k, PRIOR * (1 - mean) + n - k
            expected = (a + EXTRA["number"][0]) / (a + b + sum(EXTRA["number"]))
            number += left * expected
            probability[open_rows] = np.minimum(1, probability[open_rows] * expected / max(mean, TINY))
            for end, draws in ends.items():
                draws += rng.binomial(left, rng.beta(a + EXTRA[end][0], b + EXTRA[end][1], DRAWS))
    low, high = np.quantile(ends["low"], (1 - LEVEL) / 2), np.quantile(ends["high"], (1 + LEVEL) / 2)
    suspects = np.flatnonzero(np.isfinite(p) & ~decided)
    suspects = suspects[np.argsort(-p[suspects], kind="stable")]
    left_wrong = (number - known) - np.concatenate([[0.0], np.cumsum(probability[suspects])])
    labels = max(1, int(np.isfinite(p).sum()))
    bound, remaining = _stop_rule(p, wrong, is_drawn, top)
    return Audit(
        number=number,
        interval=(float(low), float(high)),
        bound=bound,
        checked=int((is_drawn & decided).sum()),
        found=int((is_drawn & decided & hits).sum()),
        probability=probability,
        remaining=remaining,
        reviews={s: min(int(np.searchsorted(-left_wrong, -s * labels)), len(suspects)) for s in LEFT},
    )


def calibrate(p: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Return p (n) corrected by the decisions (n) on random rows of similar p, without a change of order. The model
    counts as `BELIEVED` decisions everywhere, so a single decision does not reorder a list."""
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


def _stop_rule(p: np.ndarray, wrong: np.ndarray, is_drawn: np.ndarray, top: np.ndarray) -> tuple[float, int | None]:
    """Return the upper bound of the share still wrong, and the further random checks without a wrong label until it is
    below CLEAN; None if out of reach. The draws are a simple random sample of the rows below the top; undecided rows of
    the top count as wrong."""
    labeled, decided = np.isfinite(p), np.isfinite(wrong)
    rest = labeled & ~top
    size, open_top = int(rest.sum()), int((labeled & top & ~decided).sum())
    sample, known = wrong[rest & decided & is_drawn], wrong[rest & decided]
    n, k, hits = len(sample), int((sample > 0.5).sum()), int((known > 0.5).sum())

    def bound(more: int) -> float:
        most = _most(size, n + more, k, hits, len(known) + more)
        return (most + open_top) / max(1, int(labeled.sum()))

    high = size - len(known)
    if bound(high) >= CLEAN:
        return bound(0), None
    return bound(0), bisect.bisect_left(range(high), True, key=lambda more: bound(more) < CLEAN)


def _most(size: int, n: int, k: int, wrong: int, known: int) -> int:
    """Return the largest plausible number of wrong labels left among `size`: of n random rows k were wrong, and of all
    `known` rows `wrong` were."""
    last = size - known + wrong
    counts = np.unique(np.linspace(wrong, last, min(GRID, last - wrong + 1)).astype(int))
    table, falling = _log_factorials(size), []
    for x, m in ((counts, k), (size - counts, n - k), (np.array([size]), n)):  # log x(x − 1)…(x − m + 1)
        falling.append(np.where(x >= m, table[x] - table[np.maximum(x - m, 0)], -np.inf))
    likelihood = falling[0] + falling[1] - falling[2]
    marginal = _beta_ln(NEAR_ZERO + k, 1 + n - k) - _beta_ln(NEAR_ZERO, 1)
    possible = np.flatnonzero(marginal - likelihood < log(1 / (1 - LEVEL)))
    return int(counts[min(possible[-1] + 1, len(counts) - 1)]) - wrong if len(possible) else 0


def _beta_ln(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


@lru_cache(2)
def _log_factorials(size: int) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, size + 1)))])

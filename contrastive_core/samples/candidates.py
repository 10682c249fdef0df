"""Losses over a large set, estimated from some candidates of each anchor, and how far off they are.

Exact losses cost n²·d products. Of a large set a loss whose formula takes weights (`Loss.takes_weights`: the softmax
losses, pairs, all triplets) is estimated instead (losses.py says when): the same formula over candidates that each
stand for w_ij, as in

    −mean_P ℓ + log Σ_j w_ij e^{ℓ_ij}    for    −mean_P ℓ + log Σ_j e^{ℓ_ij},

where mean_P ℓ is exact: a product with the mean of a class. Every anchor i meets candidates of three strata (Cochran
1977, Sampling Techniques, ch. 5), each of which counts for w_ij candidates:

- its `NEAR` nearest, whatever they are: w = 1;
- of its other positives `POSITIVES` at random, all where there are no more: w = how many other
  positives there are, over how many of them were drawn;
- of its other negatives those among `DRAWN` random candidates: w likewise.

So Σ_j w_ij f(s_ij) is Σ_j f(s_ij) over all positives, or all negatives, in expectation, and exactly that where the
draws reach every candidate. A softmax loss takes the logarithm of such sums: its estimate is consistent, and lies below
by half the sum's relative variance. The nearest are what makes the variance small: they hold most of the sum. The error
is no bound but measured, on `CHECKED` samples whose losses are taken exactly too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from contrastive_core.losses import Loss
from contrastive_core.messages import N_
from contrastive_core.ops.neighbors import Approximation, Neighbors, nearest_together
from contrastive_core.ops.recall import lowest_recall
from contrastive_core.ops.similarity import compare, full_precision
from contrastive_core.pairs.types import NO_GROUP, Masks, Pairs
from contrastive_core.progress import OnFraction, ignore_fraction

NEAR, DRAWN = 64, 8192
LIKELY = Approximation.of_rows(16_384)  # at least, among which the nearest of many rows are looked for
POSITIVES = 128  # more than NEAR: of a larger group some are always drawn that are not near
ANCHORS = 256  # that meet the same random candidates: one matrix product, no rows gathered for each
CHECKED = 512  # samples whose losses are taken exactly too


def near(x: np.ndarray, metric: str, device: str = "auto", on_fraction: OnFraction = ignore_fraction) -> Neighbors:
    """The `NEAR` nearest of each row of x (n, d) among the others, by "cosine" or "euclidean"; of many rows among some
    `LIKELY` ones: the estimate is right whichever are near, and only the surer the nearer they are."""
    k = min(NEAR, len(x) - 1)
    if k < 1:
        return Neighbors(np.empty((len(x), 0), np.int32), np.empty((len(x), 0), np.float32), metric)
    found = nearest_together(x, None, k, metric, on_fraction, device, LIKELY)
    return replace(found, index=found.index.astype(np.int32))  # half as much to hold


def estimate(
    settings: Sequence[Loss],
    pairs: Pairs,
    nearest: np.ndarray,
    anchors: slice = slice(None),
    seed: int = 0,
    on_fraction: OnFraction = ignore_fraction,
    drawn: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Estimated loss and weight (g, b) of some anchors by a loss at each of g settings that compare the same scores;
    pairs: every row with all others; nearest: (n, k) others of each; drawn: how many candidates are, beside these."""
    one = settings[0]
    if problem := one.check(pairs):
        raise ValueError(problem)
    first, last, _ = anchors.indices(len(pairs))
    value = np.zeros((len(settings), last - first))
    weight = np.zeros_like(value)
    with torch.no_grad(), full_precision(pairs.anchors.device):
        pairs = one.rows(pairs)
        one.refuse_overflow(pairs)
        near, means = torch.from_numpy(nearest).to(pairs.anchors.device), one.positive_means(pairs)
        for sample in Candidates(pairs, near, seed, drawn).of(anchors):
            at = slice(sample.anchors.start - first, sample.anchors.stop - first)
            scores = torch.cat([compare(p, one.score) for p in (sample.listed, sample.drawn)], 1)
            for g, loss in enumerate(settings):
                mean = None if means is None else means[sample.anchors]
                losses, weights = loss.from_some(scores, sample.masks, sample.listed, mean)
                weight[g, at] = weights.cpu().numpy()
                value[g, at] = torch.where(weights > 0, losses, 0.0).cpu().numpy()
            on_fraction(at.stop / (last - first))
    return value, weight


def candidates_of(n: int, positives: int) -> int:
    """About how many candidates stand for the others of n rows (views), with `positives` in the largest group."""
    return min(NEAR, n - 1) + min(DRAWN, n) + min(POSITIVES, positives)


def estimate_facts(
    near: Sequence[Neighbors], positives: int, estimated: np.ndarray, exact: np.ndarray
) -> dict[str, float]:
    """How many candidates stand for the others of a row, the recall of the nearest where these are approximate, and how
    far the estimates of some rows are off. Args: as of `candidates_of`, `error_of`."""
    recall = lowest_recall(one.recall for one in near)
    facts = {"candidates": candidates_of(len(near[0].index), positives), "recall": recall}
    return {k: v for k, v in (facts | error_of(estimated, exact)).items() if v is not None}


def error_of(estimated: np.ndarray, exact: np.ndarray) -> dict[str, float]:
    """How far estimates (n) are off where both are defined: `bias`, the mean difference; `off`, the 95th percentile of
    its size; `correlation` of ranks (Spearman; NaN where all are alike)."""
    both = np.isfinite(estimated) & np.isfinite(exact)
    a, b = estimated[both], exact[both]
    if not len(a):
        return {"checked": 0}
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = float(np.corrcoef(rankdata(a), rankdata(b))[0, 1]) if len(a) > 1 else np.nan
    off = float(np.quantile(np.abs(a - b), 0.95))
    return {"checked": len(a), "bias": float((a - b).mean()), "off": off, "correlation": correlation}


@dataclass(frozen=True, eq=False)
class Sample:
    """Candidates of b anchors: `listed` ones of each anchor's own (k), then `drawn` ones (r) that all of them meet.
    Masks hold how many candidates each stands for: positive (b, k), negative (b, k + r)."""

    anchors: slice
    listed: Pairs
    drawn: Pairs
    masks: Masks


class Candidates:
    """Who stands for all, for each anchor of pairs in which every row meets all others."""

    def __init__(self, pairs: Pairs, nearest: Tensor, seed: int = 0, drawn: int | None = None) -> None:
        """`nearest`: (n, k) others of each row; `drawn`: how many (default: `DRAWN`). Raises: ValueError for others."""
        if not pairs.symmetric or pairs.across:
            raise ValueError(
                N_("losses can be estimated from candidates only if every row is compared with all others")
            )
        self.pairs, self.nearest, n = pairs, nearest, len(pairs)
        self.drawn = DRAWN if drawn is None else drawn
        groups, device = pairs.anchor_groups, pairs.anchors.device
        draw = torch.Generator().manual_seed(seed)
        self.shuffled, mixed = (torch.randperm(n, generator=draw).to(device) for _ in range(2))
        number, size = groups.unique(return_inverse=True, return_counts=True)[1:]
        self.grouped = groups != NO_GROUP
        self.number = int(self.grouped.sum())
        self.size = torch.where(self.grouped, size[number], 0) if n else groups
        # Rows of a group side by side, at random: who follow a row are random others of its group.
        self.order = mixed[number[mixed].argsort(stable=True)]
        self.first = (size.cumsum(0) - size)[number] if n else groups
        self.place = self.order.argsort() - self.first
        self.positives = min(POSITIVES, max(0, int(self.size.max()) - 1 if n else 0))

    def of(self, anchors: slice = slice(None)) -> Iterator[Sample]:
        """The candidates of some anchors, in blocks that start where they do for all anchors."""
        first, last, _ = anchors.indices(len(self.pairs))
        for start in range(first // ANCHORS * ANCHORS, last, ANCHORS):
            yield self._block(max(start, first), min(start + ANCHORS, last), start // ANCHORS)

    def _block(self, first: int, last: int, number: int) -> Sample:
        rows, near = slice(first, last), self.nearest[first:last].long()
        positive, is_positive = self._followers(rows)
        steps = torch.arange(min(self.drawn, len(self.shuffled)), device=self.shuffled.device)
        drawn = self.shuffled[(number * self.drawn + steps) % len(self.shuffled)]  # the next of all, in a circle
        near_positive, near_negative = self._relations(rows, near)
        is_positive &= ~(positive[:, :, None] == near[:, None, :]).any(-1)
        is_negative = self._relations(rows, drawn[None])[1] & ~self._among(near, drawn)
        positives, negatives = self.size[rows] - 1, self.number - self.size[rows]  # |P|, |N|
        w_positive = self._weight(positives - near_positive.sum(1), is_positive)
        w_negative = self._weight(negatives - near_negative.sum(1), is_negative)
        none = torch.zeros_like(w_positive)
        part = self.pairs.take_anchors(rows)
        negative = torch.cat([near_negative.to(none), none, w_negative], 1)
        return Sample(
            rows,
            replace(part, columns=torch.cat([near, positive], 1)),
            part.take_candidates(drawn),
            Masks(torch.cat([near_positive.to(none), w_positive], 1), negative, negative < 0),
        )

    def _weight(self, rest: Tensor, drawn: Tensor) -> Tensor:
        """How many candidates each drawn one (b, c) stands for: the rest (b) over their number."""
        each = rest / drawn.sum(1).clamp_min(1)
        return drawn * each[:, None].to(self.pairs.anchors.dtype)

    def _relations(self, rows: slice, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Which columns (b, c) are positives and which negatives of the rows, themselves aside."""
        groups = self.pairs.anchor_groups
        related = self.grouped[rows, None] & self.grouped[columns]
        same = groups[columns] == groups[rows, None]
        return related & same, related & ~same

    def _followers(self, rows: slice) -> tuple[Tensor, Tensor]:
        """Random others of each row's group: (b, p), and which of them there are."""
        size = self.size[rows, None].clamp_min(1)
        steps = torch.arange(1, self.positives + 1, device=size.device)
        at = self.first[rows, None] + (self.place[rows, None] + steps) % size
        return self.order[at], steps < size

    def _among(self, near: Tensor, drawn: Tensor) -> Tensor:
        """Which of the drawn (r) are among each row's nearest (b, k): (b, r)."""
        rising, order = drawn.sort()
        at = torch.searchsorted(rising, near).clamp_max(len(drawn) - 1)
        column = torch.where(rising[at] == near, order[at], len(drawn))
        found = torch.zeros(len(near), len(drawn) + 1, dtype=torch.bool, device=drawn.device)
        return found.scatter_(1, column, True)[:, :-1]

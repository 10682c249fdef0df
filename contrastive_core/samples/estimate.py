"""Losses over a large set, estimated from some candidates of each anchor, and how far off they are.

Exact losses cost n²·d products. Above `ESTIMATED_FROM` of these a loss whose formula takes weights
(`Loss.takes_weights`: the softmax losses, pairs, all triplets) is estimated instead: the same
formula over candidates that each stand for w_ij (candidates.py), as in

    −mean_P ℓ + log Σ_j w_ij e^{ℓ_ij}    for    −mean_P ℓ + log Σ_j e^{ℓ_ij},

where mean_P ℓ is exact: a product with the mean of a class. The error is no bound but measured, on
`CHECKED` samples whose losses are taken exactly too. A loss that the hardest pair alone decides, or
that needs its positives' own negatives, has no such estimate: it is exact up to `EXACT_ONLY_UP_TO`
products, and left out above. An accelerator is fast enough to be exact always.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from scipy.stats import rankdata

from contrastive_core.device import pick_device
from contrastive_core.losses._base import Loss
from contrastive_core.ops.neighbors import APPROXIMATE_FROM
from contrastive_core.ops.recall import lowest_recall
from contrastive_core.ops.similarity import compare, full_precision
from contrastive_core.pairs.types import Pairs
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.samples import candidates
from contrastive_core.samples.candidates import Candidates, Near

__all__ = ["CHECKED", "about", "candidates_of", "error_of", "estimate", "exact_up_to", "is_estimated", "near_of"]

ESTIMATED_FROM = APPROXIMATE_FROM  # products of one loss: 20 s to a minute of two cores
EXACT_ONLY_UP_TO = 10 * ESTIMATED_FROM
CHECKED = 512  # samples


def is_estimated(loss: Loss, n: int, width: int, device: str = "auto") -> bool:
    """Whether the losses of n rows (views) of this width are estimated here."""
    large = float(n) ** 2 * width > ESTIMATED_FROM
    return large and loss.takes_weights and pick_device(device).type == "cpu"


def exact_up_to(loss: Loss, width: int, device: str = "auto") -> int | None:
    """Rows (views) of this width up to which the loss is taken at all; None: however many."""
    if loss.takes_weights or pick_device(device).type != "cpu":
        return None
    return math.isqrt(int(EXACT_ONLY_UP_TO / width))


def near_of(loss: Loss, z: np.ndarray, device: str = "auto", on_fraction: OnFraction = ignore_fraction) -> Near:
    """The nearest of all rows z (n, d) as the loss compares them; for products of raw rows by
    cosine, which finds most of the largest."""
    by_angle = loss.normalize or loss.score == "dot"
    return candidates.near(z, "cosine" if by_angle else "euclidean", device, on_fraction)


def estimate(
    settings: Sequence[Loss],
    pairs: Pairs,
    nearest: np.ndarray,
    anchors: slice = slice(None),
    seed: int = 0,
    on_fraction: OnFraction = ignore_fraction,
    drawn: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Estimated loss and weight (g, b) of some anchors by a loss at each of g settings that compare
    the same scores; pairs: every row with all others; nearest: (n, k) others of each; drawn: how
    many candidates are, beside these."""
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


def about(near: Sequence[Near], positives: int) -> dict[str, float]:
    """How many candidates of each kind stand for the others of a row, and the recall of the nearest
    where these are approximate. positives: that a row of the largest group has."""
    number = candidates_of(len(near[0].index), positives)
    recall = lowest_recall(one.recall for one in near)
    return {"candidates": number, **({} if recall is None else {"recall": recall})}


def candidates_of(n: int, positives: int) -> int:
    """About how many candidates stand for the others of each of n rows (views)."""
    drawn = min(candidates.DRAWN, n) + min(candidates.POSITIVES, positives)
    return min(candidates.NEAR, n - 1) + drawn


def error_of(estimated: np.ndarray, exact: np.ndarray) -> dict[str, float]:
    """How far estimates (n) are off where both are defined: `bias`, the mean difference; `off`, the
    95th percentile of its size; `correlation` of ranks (Spearman; NaN where all are alike)."""
    both = np.isfinite(estimated) & np.isfinite(exact)
    a, b = estimated[both], exact[both]
    if not len(a):
        return {"checked": 0}
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = float(np.corrcoef(rankdata(a), rankdata(b))[0, 1]) if len(a) > 1 else np.nan
    off = float(np.quantile(np.abs(a - b), 0.95))
    bias = float((a - b).mean())
    return {"checked": len(a), "bias": bias, "off": off, "correlation": correlation}

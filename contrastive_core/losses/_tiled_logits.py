"""Logits of many pairs, by the tiled engine: what a formula asks of them, without their matrix."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

import torch
from torch import Tensor

from contrastive_core.losses._group_sums import mean_of_positives, relation_counts
from contrastive_core.ops import similarity
from contrastive_core.ops.differentiation import recomputed
from contrastive_core.ops.similarity import masked_logsumexp, masked_mean
from contrastive_core.ops.tiled_logsumexp import Logits, by_group, tiled_logsumexp
from contrastive_core.pairs.types import Pairs
from contrastive_core.progress import OnFraction, ignore_fraction

__all__ = ["TiledLogits"]

WINDOW = 1 << 20  # scores of one group held at once: 4 MB in float32


class TiledLogits:
    """`MatrixLogits` of pairs related by id, in memory that grows with n + m."""

    def __init__(
        self, pairs: Pairs, score: str, scale: float, unit: bool, on_fraction: OnFraction = ignore_fraction
    ) -> None:
        self.pairs, self.on_fraction = pairs, on_fraction
        self.logits = Logits(score, scale, unit)

    @cached_property
    def positives(self) -> Tensor:
        """|P(i)| (n)."""
        return relation_counts(self.pairs)[0]

    def logsumexp(self, relation: str) -> Tensor:
        """log Σ e^ℓ (n) over "positive", "negative" or "compared" candidates (both)."""
        if relation == "positive":
            return self._over_groups(lambda logits, positive, _: masked_logsumexp(logits, positive))
        if relation == "compared":
            return tiled_logsumexp(self.pairs, self.logits, relation, self.on_fraction)
        pairs, order = self._by_group
        return tiled_logsumexp(pairs, self.logits, relation, self.on_fraction)[order.argsort()]

    def positive_mean(self) -> Tensor:
        """mean_P ℓ (n)."""
        if self.logits.score == "dot":
            return mean_of_positives(self.pairs, self.logits.scale, self.positives)
        return self._over_groups(lambda logits, positive, _: masked_mean(logits, positive))

    def mean_cross_entropy(self, denominator: Callable[[Tensor, Tensor], Tensor], rest: Tensor) -> Tensor:
        """mean over p ∈ P(i) of denominator(ℓ_ip, rest_i) − ℓ_ip; (n)."""

        def of_window(logits: Tensor, positive: Tensor, rest: Tensor) -> Tensor:
            each = torch.where(positive, logits, 0.0)
            return masked_mean(denominator(each, rest[:, None].expand_as(each)) - each, positive)

        return self._over_groups(of_window, rest)

    @cached_property
    def _by_group(self) -> tuple[Pairs, Tensor]:
        return by_group(self.pairs)

    def _over_groups(self, formula: Callable[[Tensor, Tensor, Tensor], Tensor], rest: Tensor | None = None) -> Tensor:
        """`formula(ℓ, positive, rest)` (n), asked of each group alone.

        Blocks of anchors meet the window of candidates that their groups span; the backward pass
        computes each block again.
        """
        pairs, order = self._by_group
        rest = pairs.anchors.new_zeros(len(pairs)) if rest is None else rest[order]
        parts = []
        for rows, cols in _windows(pairs):
            part = pairs.take_anchors(rows).take_candidates(cols)
            task = partial(self._window, formula, part)
            parts.append(recomputed(task, part.anchors, part.candidates, rest[rows]))
        values = torch.cat(parts) if parts else pairs.anchors.sum(1)
        return values[order.argsort()]

    def _window(
        self, formula: Callable[[Tensor, Tensor, Tensor], Tensor], part: Pairs, a: Tensor, c: Tensor, rest: Tensor
    ) -> Tensor:
        logits = self.logits.scale * getattr(similarity, self.logits.score)(a, c)
        return formula(logits, part.masks().positive, rest)


def _windows(pairs: Pairs) -> list[tuple[slice, slice]]:
    """Blocks of anchors, and the candidates of the same groups, for pairs sorted by group."""
    groups = pairs.candidate_groups.contiguous()
    low = torch.searchsorted(groups, pairs.anchor_groups).tolist()
    high = torch.searchsorted(groups, pairs.anchor_groups, right=True).tolist()
    windows, start, n = [], 0, len(pairs)
    while start < n:
        stop = start + 1
        while stop < n and (stop + 1 - start) * (high[stop] - low[start]) <= WINDOW:
            stop += 1
        windows.append((slice(start, stop), slice(low[start], high[stop - 1])))
        start = stop
    return windows

"""Why a sample has the loss it has: the pairs behind it, its margin, its neighbors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contrastive_core.records.cards import Kernel

__all__ = ["Explanation", "PairShare"]


@dataclass(frozen=True)
class PairShare:
    """Another sample: what the loss compares, and its part of all pull or push on the anchor."""

    id: str
    label: int  # −1: none
    score: float
    share: float  # of Σ|∂L_i/∂score|
    column: int  # among all that the loss compares


@dataclass(frozen=True, eq=False)
class Explanation:
    """One sample's loss taken apart."""

    loss: float  # NaN where it is undefined
    score_kind: str
    hardest_negatives: list[PairShare]
    weakest_positives: list[PairShare]
    pull: float  # share of the gradient that positives have; the rest pushes
    margin: float  # cosine to the nearest positive less that to the nearest negative; NaN: no pair
    neighbors: list[PairShare]  # the nearest by cosine, whatever their relation
    scores: np.ndarray  # (m) float32, what the loss compares
    mask: np.ndarray  # (m) uint8: 0 not comparable, 1 positive, 2 negative, 3 self
    kernel: Kernel | None  # how the browser computes the loss; None: it cannot

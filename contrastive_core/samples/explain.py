"""Why a sample has the loss it has: the pairs behind it, its margin, its neighbors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.samples.losses import pairs_of

__all__ = ["PairShare", "Why", "why"]


@dataclass(frozen=True)
class PairShare:
    """Another sample: what the loss compares, and its part of all pull or push on the anchor."""

    id: str
    label: int  # −1: none
    score: float
    share: float  # of Σ|∂L_i/∂score|
    column: int  # among all that the loss compares


@dataclass(frozen=True, eq=False)
class Why:
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
    kernel: dict[str, Any] | None  # how the browser computes the loss; None: it cannot


def why(
    rows: EmbeddingSet,
    sample: int,
    loss: str,
    knobs: dict[str, Any] | None = None,
    views: np.ndarray | None = None,
    most: int = 8,
) -> Why:
    """Take the loss of row `sample` (its first view) against the whole set apart.

    Raises: ValueError as `per_sample` does; IndexError for a row that is not there.
    """
    from contrastive_core import losses

    if not 0 <= sample < len(rows):
        raise IndexError(f"there is no row {sample} among {len(rows)}")
    v = 1 if views is None else views.shape[1]
    anchor = pairs_of(rows, views).take_anchors(slice(sample * v, sample * v + 1))
    criterion = losses.create(loss, **(knobs or {}))
    anatomy = criterion.anatomy(anchor)
    score, grad = (x[0].double().numpy() for x in (anatomy.scores, anatomy.grad_scores))
    positive, negative = (x[0].numpy() for x in (anatomy.positive, anatomy.negative))
    share = np.abs(grad) / max(float(np.abs(grad).sum()), 1e-30)
    mask = positive + 2 * negative + 3 * anatomy.self_pair[0].numpy()
    near = _cosines(anchor)
    nearness = score if anatomy.score_kind == "dot" else -score

    def listed(mask: np.ndarray, by: np.ndarray) -> list[PairShare]:
        columns = np.flatnonzero(mask)
        return [_pair(rows, int(j), v, score, share) for j in columns[np.argsort(by[columns])]]

    other = np.arange(len(near)) // v != sample
    defined = bool(anatomy.output.weight[0] > 0)
    return Why(
        loss=float(anatomy.output.per_anchor[0]) if defined else float("nan"),
        score_kind=anatomy.score_kind,
        hardest_negatives=listed(negative, -nearness)[:most],
        weakest_positives=listed(positive, nearness)[:most],
        pull=float(share[positive].sum()),
        margin=_highest(near, positive) - _highest(near, negative),
        neighbors=listed(other, -near)[:most],
        scores=score.astype(np.float32),
        mask=mask.astype(np.uint8),
        kernel=criterion.kernel(),
    )


def _pair(rows: EmbeddingSet, j: int, v: int, score: np.ndarray, share: np.ndarray) -> PairShare:
    label = -1 if rows.labels is None else int(rows.labels[j // v])
    return PairShare(rows.ids[j // v], label, float(score[j]), float(share[j]), j)


def _cosines(anchor: Any) -> np.ndarray:
    """Cosine (m) of the one anchor with all candidates."""
    from contrastive_core.ops.similarity import normalize

    unit, others = normalize(anchor.anchors)[0], normalize(anchor.candidates)
    return np.asarray((others @ unit).double().numpy())


def _highest(near: np.ndarray, mask: np.ndarray) -> float:
    return float(near[mask].max()) if mask.any() else float("nan")

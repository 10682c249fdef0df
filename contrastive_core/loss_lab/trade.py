"""What a temperature trades on a batch: how far its push is spread, and whom it pushes.

Wang and Liu (https://arxiv.org/abs/2012.09740): a low τ pushes the nearest rows, which spreads the
embedding (uniformity) and tears alike rows apart (tolerance); a high one pushes all alike and keeps
them together. On a batch both can be read off the softmax over negatives at each τ.
"""

from __future__ import annotations

import numpy as np

from contrastive_core.messages import N_
from contrastive_core.records.lab_view import Trade

TEMPERATURES = tuple(float(f"{t:.3g}") for t in np.geomspace(0.02, 2.0, 25))


def trade(
    scores: np.ndarray,
    negative: np.ndarray,
    same_class: np.ndarray | None,
    temperatures: tuple[float, ...] = TEMPERATURES,
) -> list[Trade]:
    """Args: scores (n, w) similarities; negative (n, w) bool; same_class (n, w) bool, or None
    without labels. Raises ValueError where no anchor has a negative."""
    from scipy.special import entr, softmax

    anchors = negative.any(1)
    if not anchors.any():
        raise ValueError(N_("no anchor of this batch has a negative"))
    s = np.where(negative, scores.astype(np.float64), -np.inf)[anchors]  # (m, w)
    count = negative[anchors].sum(1)  # (m)
    found = []
    for t in temperatures:
        p = softmax(s / t, axis=1)
        entropy = entr(p).sum(1)
        own = None if same_class is None else float((p * same_class[anchors]).sum(1).mean())
        found.append(Trade(t, float((np.exp(entropy) / count).mean()), own, float(p.max(1).mean())))
    return found

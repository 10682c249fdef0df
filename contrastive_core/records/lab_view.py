"""A loss on a batch of the Loss Lab, as the browser draws it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from contrastive_core.messages import N_
from contrastive_core.records.cards import Kernel
from contrastive_core.storage.json_files import JsonObject

SOURCES = {
    "z": N_("After the head (z)"),
    "h": N_("Encoder output (h)"),
    "random": N_("Untrained encoder"),
    "pixels": N_("Raw pixels"),
    "file": N_("A file of vectors"),
}
PAIRINGS = {
    "views": N_("Views of one image"),
    "classes": N_("Images of one class"),
    "queue": N_("Key and queue (MoCo)"),
    "bank": N_("Memory bank (Inst Disc)"),
}

POSITIVE, NEGATIVE = 1, 2  # of a view's mask

DERIVATIVES = {  # of losses on distances, which papers and notes leave to the reader
    "pair_contrastive": r"""\frac{\partial L}{\partial x_1} = \begin{cases}
        x_1-x_2 & \text{positive}\\
        -\frac{\varepsilon-D}{D}\,(x_1-x_2) & \text{negative, } 0<D<\varepsilon\\
        0 & \text{negative, } D\ge\varepsilon \text{ or } D=0
        \end{cases}\qquad D=\lVert x_1-x_2\rVert"""
}


@dataclass(frozen=True, eq=False)
class LabView:
    """A loss on a batch, as the browser draws it."""

    scores: np.ndarray  # (n, w) float32
    mask: np.ndarray  # (n, w) uint8: 0 not comparable, 1 positive, 2 negative, 3 self
    kernel: Kernel | None
    row_thumbs: list[int]
    column_thumbs: list[int]
    names: list[str]
    column_names: list[str]
    score_name: str
    value: float
    n_valid: int
    per_anchor: np.ndarray
    weight: np.ndarray  # (n, w) on pairs
    grad: np.ndarray  # (n, w)
    extras: JsonObject = field(default_factory=dict)
    reason: str = ""
    note: str = ""  # what is to be known of the rows

    def with_knob(self, name: str, value: float) -> LabView:
        """The view with another value of the knob that its kernel computes with."""
        kernel = Kernel(**{**(self.kernel or {}), name: value})  # type: ignore[misc]
        return replace(self, kernel=kernel)


@dataclass(frozen=True)
class Trade:
    """At one τ, the means over anchors that have negatives."""

    temperature: float
    spread: float  # effective negatives over their number: 1 pushes all alike
    own_class: float | None  # share of the push on rows of the anchor's class; None without labels
    hardest: float  # share of the push on the hardest negative


def confusable_anchor(view: LabView) -> int:
    """The anchor whose nearest negative is nearest, compared with its nearest positive; 0 where no anchor has both."""
    near = -view.scores if "distance" in view.score_name else view.scores
    positive = np.where(view.mask == POSITIVE, near, -np.inf).max(1, initial=-np.inf)  # (n)
    negative = np.where(view.mask == NEGATIVE, near, -np.inf).max(1, initial=-np.inf)
    both = np.isfinite(positive) & np.isfinite(negative)
    if not both.any():
        return 0
    gap = np.full(len(near), -np.inf)
    gap[both] = (negative - positive)[both]
    return int(gap.argmax())

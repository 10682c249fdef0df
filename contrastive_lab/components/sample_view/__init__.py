"""Live breakdown of one sample's loss: the share of each pair as a knob is dragged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from contrastive_lab.components.shared.mount import NO_THUMBNAILS, SliderKnob, ThumbnailSheet, mount, pack


@dataclass(frozen=True)
class ShownPair:
    """A displayed pair, with its column in the scores."""

    name: str
    column: int
    positive: bool


@dataclass(frozen=True, eq=False)
class SampleView:
    """One sample's scores, and the loss that the browser computes on them."""

    content: str  # changes when the arrays change
    scores: np.ndarray  # (m), what the loss compares
    mask: np.ndarray  # (m): 0 not comparable, 1 positive, 2 negative, 3 self
    kernel: Mapping[str, object]  # the loss's `kernel()`
    pairs: Sequence[ShownPair]
    thumbnails: ThumbnailSheet = NO_THUMBNAILS  # of the pairs
    knob: SliderKnob | None = None


def draw_sample_view(view: SampleView, key: str = "sample") -> None:
    """Draw the view; everything in it is computed in the browser."""
    mount("sample_view", pack(view), None, key)

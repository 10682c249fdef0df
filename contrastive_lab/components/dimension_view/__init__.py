"""A loss over dimensions, live: the matrix of samples, the matrix of dimensions, and the contribution of each term.
main.js mounts the view, ../shared/dimensions.js computes matrices and terms, matrices.js draws them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contrastive_lab.components.shared.mount import mount
from contrastive_lab.components.shared.transport import SliderKnob, pack


@dataclass(frozen=True, eq=False)
class DimensionView:
    """Content of the live view of a loss over dimensions."""

    content: str  # changes when the rows do
    form: str  # "correlation" (Barlow Twins), "covariance" (VICReg) or "gaussian" (LeJEPA's projections)
    views: np.ndarray  # (b, 2, d) first and second views
    names: Sequence[str]  # (2b) of both views, image by image
    name: str  # of the loss; comes back as `of`
    title: str
    knobs: Sequence[SliderKnob] = ()
    heard: int | None = None  # the number, `report`, of the last report; answers to older ones move nothing
    lesson: Mapping[str, object] | None = None  # what its panel shows (../shared/lesson.js)
    forward: Mapping[str, object] | None = None  # the next step: its `text`, and the `number` of a lesson
    export: Sequence[Any] = ("", 0)  # "png" or "csv", and how many were asked for before


def draw_dimension_view(view: DimensionView, key: str, on_change: Callable[[], None] | None = None) -> None:
    """Draw the view; the last choices are reported as `chosen`: `of`, `more` (values of knobs), `report`."""
    mount("dimension_view", pack(view), "chosen", key, first={}, on_change=on_change)

"""The live loss view: a star, a matrix with bars or curves, an inspector, and a knob. The browser computes the drag:
main.js mounts the view, drag.js follows the knob, ../shared/kernels computes the loss, stages.js draws it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contrastive_lab.components.shared.mount import NO_THUMBNAILS, SliderKnob, ThumbnailSheet, mount, pack


@dataclass(frozen=True, eq=False)
class LossSetting:
    """A loss with its knobs on one batch of pairs."""

    content: str  # changes when the arrays change (a content hash)
    scores: np.ndarray | None = None  # (n, w), what the loss compares; None: `reason` says why
    mask: np.ndarray | None = None  # (n, w): 0 not comparable, 1 positive, 2 negative, 3 self
    kernel: Mapping[str, object] | None = None  # the loss's `kernel()`; None: drawn as `computed`
    computed: Mapping[str, np.ndarray] | None = None  # `pair` (n, w) weights, `grad` (n, w) and `loss` (n)
    knob: SliderKnob | None = None
    loss: float | None = None  # of the batch, as the library has it
    score_name: str = "similarity"
    reason: str = ""  # why the batch cannot be compared, in a sentence
    more: Sequence[SliderKnob] = ()  # knobs that are dragged below the first


@dataclass(frozen=True, eq=False)
class PairAxes:
    """Names of anchors and candidates, and the thumbnail index of each (-1: none)."""

    names: Sequence[str]
    column_names: Sequence[str]
    thumbnails: ThumbnailSheet = NO_THUMBNAILS
    row_thumbs: Sequence[int] = ()
    column_thumbs: Sequence[int] = ()
    towers: Sequence[str] = ()  # names of the anchors' tower and of the candidates'
    texts: Sequence[str] = ()  # what the anchors say; () for nothing
    column_texts: Sequence[str] = ()
    given: Sequence[int] = ()  # places (row · w + column) of negatives given for their anchor

    @classmethod
    def of(cls, view: Any, sheet: ThumbnailSheet) -> PairAxes:
        """Return the axes of a `LabView`, with thumbnails if the sheet has any."""
        has_pictures = bool(sheet.picture)
        return cls(
            names=view.names,
            column_names=view.column_names,
            thumbnails=sheet,
            row_thumbs=view.row_thumbs if has_pictures else (),
            column_thumbs=view.column_thumbs if has_pictures else (),
            towers=view.towers,
            texts=view.texts,
            column_texts=view.column_texts,
            given=view.given,
        )


@dataclass(frozen=True, eq=False)
class LossView:
    """Content of the live loss view. `second` is the alternative named by `choice`."""

    first: LossSetting
    axes: PairAxes
    name: str = ""  # of the loss; comes back as `of`
    title: str = ""  # what a saved picture calls the loss
    anchor: int = 0
    start: Mapping[str, object] = field(default_factory=dict)  # to begin with, of what is reported
    losses: Sequence[tuple[str, str]] = ()  # second settings that the host can compute, as (choice, text)
    other_rows: Sequence[tuple[str, str]] = ()  # the same loss on other rows
    choice: str = ""
    second: LossSetting | None = None
    lesson: Mapping[str, object] | None = None  # what its panel shows (../shared/lesson.js)
    stage: str = ""  # star, matrix or curves, as the host's toolbar says; "": the view has buttons of its own
    forward: Mapping[str, object] | None = None  # the next step: its `text`, and the `number` of a lesson
    export: Sequence[Any] = ("", 0)  # "png" or "csv", and how many were asked for before
    heard: int | None = None  # the number, `report`, of the last report; answers to older ones move nothing


def draw_loss_view(view: LossView, key: str = "live", on_change: Callable[[], None] | None = None) -> dict[str, object]:
    """Draw the view; `on_change` is called for each report. Returns the last released values: `value`, `anchor`,
    `view`, `stage`, `order`, `masks`, `second`, `second_value`, `more` (further knobs), and `of`, the `name` for which
    they were chosen."""
    return dict(mount("loss_view", pack(view), "chosen", key, first={}, on_change=on_change) or {})
